// dns::over_tls(): opens the streams over which a resolver asks its servers.
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/dns/error.h>
#include <tambour/dns/over_tls.h>
#include <tambour/net/connector.h>
#include <tambour/tls/session.h>

#include "base/check.h"

namespace tambour::dns {

namespace {

class DnsOverTls final : public Transport {
 public:
  DnsOverTls(tls::ClientContext context, std::string server_name) noexcept
      : context_(std::move(context)), server_name_(std::move(server_name)) {}

  Task<Result<SocketStream>> connect(Endpoint server) override {
    ConnectOptions options(context_);
    options.tls_host = server_name_;
    options.timeout = Duration::zero();  // The resolver has one.
    std::vector<Endpoint> addresses(1, server);
    auto connected = co_await tambour::connect(std::move(addresses), std::move(options));
    if (!connected) co_return std::unexpected<Error>(connected.error());
    SocketStream stream(std::move(*connected));
    // RFC 7301, section 3.2: another protocol that both ends support must not be answered with DNS.
    const std::string_view protocol = stream.tls()->alpn();
    if (!protocol.empty() && protocol != "dot")
      co_return std::unexpected<Error>(ErrorCode::insecure_server);
    co_return stream;
  }
  std::uint16_t port() const noexcept override { return over_tls_port; }

 private:
  tls::ClientContext context_;
  std::string server_name_;
};

}  // namespace

std::shared_ptr<Transport> over_tls(tls::ClientContext context, std::string server_name) {
  detail::base::check(static_cast<bool>(context),
                      "dns::over_tls() was called with an empty context; create one with "
                      "tls::ClientContext::create()");
  return std::make_shared<DnsOverTls>(std::move(context), std::move(server_name));
}

}  // namespace tambour::dns
