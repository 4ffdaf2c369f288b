// The error category of proxies.
#include <string>

#include <tambour/net/proxy.h>

#include "base/error_table.h"

namespace tambour {
namespace {

constexpr detail::base::ErrorText<ProxyError> texts[] = {
    {ProxyError::bad_url, "The proxy is not a URL of a supported kind"},
    {ProxyError::authentication_required,
     "The proxy requires a user and a password, or rejects them"},
    {ProxyError::refused, "The proxy refuses to open a tunnel"},
    {ProxyError::bad_answer, "The proxy does not follow its protocol"},
    {ProxyError::bad_host, "The host cannot be named to the proxy"},
    {ProxyError::socks_failure, "SOCKS: general failure of the proxy"},
    {ProxyError::socks_not_allowed, "SOCKS: not allowed by the rules of the proxy"},
    {ProxyError::socks_network_unreachable, "SOCKS: the proxy cannot reach the network"},
    {ProxyError::socks_host_unreachable, "SOCKS: the proxy cannot reach the host"},
    {ProxyError::socks_connection_refused, "SOCKS: the host refuses the connection"},
    {ProxyError::socks_expired, "SOCKS: the time to live has expired"},
    {ProxyError::socks_command_not_supported, "SOCKS: the proxy does not support connections"},
    {ProxyError::socks_address_not_supported,
     "SOCKS: the proxy does not support the type of the address"},
};

}  // namespace

const std::error_category& proxy_category() noexcept {
  static constinit const detail::base::ErrorTable category("tambour.proxy",
                                                           "Unknown error of a proxy", texts);
  return category;
}

}  // namespace tambour
