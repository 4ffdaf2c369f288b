// The error category of proxies.
#include <string>

#include <tambour/proxy.h>

namespace tambour {
namespace {

class ProxyCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "tambour.proxy"; }
  [[nodiscard]] std::string message(int value) const override { return text(ProxyError(value)); }

 private:
  static const char* text(ProxyError error) noexcept {
    switch (error) {
      case ProxyError::bad_url:
        return "The proxy is not a URL of a supported kind";
      case ProxyError::authentication_required:
        return "The proxy requires a user and a password, or rejects them";
      case ProxyError::refused:
        return "The proxy refuses to open a tunnel";
      case ProxyError::bad_answer:
        return "The proxy does not follow its protocol";
      case ProxyError::bad_host:
        return "The host cannot be named to the proxy";
      case ProxyError::socks_failure:
        return "SOCKS: general failure of the proxy";
      case ProxyError::socks_not_allowed:
        return "SOCKS: not allowed by the rules of the proxy";
      case ProxyError::socks_network_unreachable:
        return "SOCKS: the proxy cannot reach the network";
      case ProxyError::socks_host_unreachable:
        return "SOCKS: the proxy cannot reach the host";
      case ProxyError::socks_connection_refused:
        return "SOCKS: the host refuses the connection";
      case ProxyError::socks_expired:
        return "SOCKS: the time to live has expired";
      case ProxyError::socks_command_not_supported:
        return "SOCKS: the proxy does not support connections";
      case ProxyError::socks_address_not_supported:
        return "SOCKS: the proxy does not support the type of the address";
    }
    return "Unknown error of a proxy";
  }
};

}  // namespace

const std::error_category& proxy_category() noexcept {
  static const ProxyCategory category;
  return category;
}

}  // namespace tambour
