#include <tambour/dns_over_tls.h>

#include <string_view>
#include <utility>

#include <tambour/dns_error.h>
#include <tambour/tcp_stream.h>
#include <tambour/tls.h>
#include <tambour/tls_session.h>

#include "base/check.h"

namespace tambour {
namespace {

class DnsOverTls final : public DnsTransport {
 public:
  DnsOverTls(TlsClientContext context, std::string server_name) noexcept
      : context_(std::move(context)), server_name_(std::move(server_name)) {}

  Task<Result<SocketStream>> connect(Endpoint server) override {
    auto connected = co_await TcpStream::connect(server);
    if (!connected) co_return std::unexpected(connected.error());
    SocketStream stream(std::move(*connected));
    std::string name = server_name_.empty() ? server.address() : server_name_;
    const auto secured = co_await tls_connect(stream, context_, std::move(name));
    if (!secured) co_return std::unexpected(secured.error());
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
