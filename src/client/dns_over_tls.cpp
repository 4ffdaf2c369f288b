// dns_over_tls(): opens the streams over which a resolver asks its servers.
#include <tambour/dns_over_tls.h>

#include <string_view>
#include <utility>
#include <vector>

#include <tambour/connector.h>
#include <tambour/dns_error.h>
#include <tambour/tls_session.h>

#include "base/check.h"

namespace tambour {
namespace {

class DnsOverTls final : public DnsTransport {
 public:
  DnsOverTls(TlsClientContext context, std::string server_name) noexcept
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
      co_return std::unexpected<Error>(DnsError::insecure_server);
    co_return stream;
  }
  std::uint16_t port() const noexcept override { return dns_over_tls_port; }

 private:
  TlsClientContext context_;
  std::string server_name_;
};

}  // namespace

std::shared_ptr<DnsTransport> dns_over_tls(TlsClientContext context, std::string server_name) {
  base::check(static_cast<bool>(context),
              "dns_over_tls() was called with an empty context; create one with "
              "TlsClientContext::create()");
  return std::make_shared<DnsOverTls>(std::move(context), std::move(server_name));
}

}  // namespace tambour
