// Proxies of clients: which one is used, and their errors.
//
// A proxy is named by a URL without a path:
//
//   http://proxy.example:3128     opens a tunnel (CONNECT: RFC 9110, section 9.3.6)
//   https://proxy.example:3129    the same, over TLS between the client and the proxy
//   socks5://proxy.example:1080   SOCKS 5 (RFC 1928); "socks5h" means the same
//
// The proxy resolves host names itself. The default ports are 8080, 443 and 1080. A user and a
// password, percent-encoded, are sent to the proxy only: "http://user:password@proxy.example:3128".
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <tambour/base/result.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Why a proxy has not connected the client.
enum class ProxyError : int {
  bad_url = 1,              ///< The proxy is not a URL as above.
  authentication_required,  ///< 407, or a SOCKS proxy that rejects the user.
  refused,                  ///< Another status than 2xx in answer to CONNECT.
  bad_answer,               ///< The proxy does not follow its protocol, or ends early.
  bad_host,                 ///< The host cannot be named to the proxy.
  // The replies of SOCKS 5: RFC 1928, section 6.
  socks_failure = 11,           ///< 1: "general failure", or an unknown reply.
  socks_not_allowed,            ///< 2: by the rules of the proxy.
  socks_network_unreachable,    ///< 3
  socks_host_unreachable,       ///< 4: also names that do not exist.
  socks_connection_refused,     ///< 5: by the origin.
  socks_expired,                ///< 6: "TTL expired".
  socks_command_not_supported,  ///< 7
  socks_address_not_supported,  ///< 8
};

/// The category "tambour.proxy", whose values are those of ProxyError. Any thread.
const std::error_category& proxy_category() noexcept;

/// Converts to an Error, also implicitly: `error == ProxyError::refused`.
[[nodiscard]] inline Error make_error_code(
    ProxyError error) noexcept {  // NOLINT: the standard's own name.
  return {static_cast<int>(error), proxy_category()};
}

/// What a client connects to.
struct ProxyTarget {
  /// "http" or "https" if an HTTP client connects; otherwise empty.
  std::string scheme{};
  std::string host{};  ///< An IPv6 address without brackets.
  std::uint16_t port = 0;
};

/// Proxies by scheme, and hosts that are reached without one. Each is the URL of a proxy, or empty.
struct ProxySettings {
  std::string http{};   ///< For the scheme http.
  std::string https{};  ///< For the scheme https.
  std::string all{};    ///< For other protocols, and where the other two are empty.
  /// A list with commas or spaces: host names, which include the hosts below them ("*.name": only
  /// those), addresses in any spelling, networks ("192.168.0.0/16", "fd00::/8"), each except
  /// networks with an optional port, or "*" for every host. Names never match addresses.
  std::string except{};

  /// The values of the environment variables http_proxy, https_proxy, all_proxy and no_proxy. Those
  /// in upper case are read, too, where the first are not set, except HTTP_PROXY: a CGI program
  /// gets it from its client (CVE-2016-5385). Values without a scheme are of HTTP proxies.
  [[nodiscard]] static ProxySettings from_environment();
};

/// Chooses a proxy for each connection.
///
///   options.proxy = "socks5://127.0.0.1:1080";
///   options.proxy = ProxyChoice::from_environment();
///   options.proxy = [](const ProxyTarget& target) -> std::string { ... };
///
/// Copied with the options, so that a function must be copyable.
class ProxyChoice {
 public:
  /// No proxy.
  ProxyChoice() noexcept = default;
  /// One proxy for everything. An empty URL: no proxy.
  ProxyChoice(std::string url);  // NOLINT(google-explicit-constructor): so that it can be assigned.
  /// Null, as getenv(3) returns it: no proxy.
  ProxyChoice(const char* url)  // NOLINT(google-explicit-constructor)
      : ProxyChoice(std::string(url != nullptr ? url : "")) {}
  ProxyChoice(ProxySettings settings);  // NOLINT(google-explicit-constructor)
  /// A function that returns the URL of the proxy, or an empty text: no proxy. Invoked for each
  /// attempt.
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, ProxyChoice> &&
             std::is_invocable_r_v<std::string, F&, const ProxyTarget&>)
  ProxyChoice(F choose) : choose_(std::move(choose)) {}  // NOLINT(google-explicit-constructor)

  /// ProxySettings::from_environment().
  [[nodiscard]] static ProxyChoice from_environment();

  /// False if there is never a proxy.
  explicit operator bool() const noexcept { return choose_ != nullptr; }
  /// The URL of the proxy; empty: none.
  [[nodiscard]] std::string operator()(const ProxyTarget& target) const {
    return choose_ ? choose_(target) : std::string();
  }

 private:
  std::function<std::string(const ProxyTarget&)> choose_;
};

}  // namespace tambour

template <>
struct std::is_error_code_enum<tambour::ProxyError> : std::true_type {};

#pragma GCC visibility pop
