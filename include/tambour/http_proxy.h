// Proxies of HTTP clients: which one is used for a URL.
//
// A proxy is named by a URL without a path: "http://proxy.example:3128" forwards requests for http,
// and opens tunnels (CONNECT) for https; "socks5://proxy.example:1080" (also "socks5h") opens
// connections for both (RFC 1928), and resolves host names itself. A user and a password, percent-
// encoded, are sent to the proxy only: "http://user:password@proxy.example:3128". The default ports
// are 8080 and 1080.
#pragma once

#include <functional>
#include <string>

#include <tambour/http_url.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// Returns the URL of the proxy for a request to this URL, or an empty text: no proxy. Invoked for
/// each request and each redirect.
using ProxyChoice = std::function<std::string(const Url&)>;

/// One proxy for all requests.
[[nodiscard]] ProxyChoice use_proxy(std::string proxy);

/// Proxies by scheme, and hosts that are reached without one.
struct ProxySettings {
  std::string http{};   ///< For URLs with the scheme http.
  std::string https{};  ///< For URLs with the scheme https.
  std::string all{};    ///< Where the other two are empty.
  /// A list with commas or spaces: host names, which include the hosts below them ("*.name": only
  /// those), addresses in any spelling, networks ("192.168.0.0/16", "fd00::/8"), each except
  /// networks with an optional port, or "*" for every host. Names never match addresses.
  std::string except{};

  /// The values of the environment variables http_proxy, https_proxy, all_proxy and no_proxy. Those
  /// in upper case are read, too, where the first are not set, except HTTP_PROXY: a CGI program
  /// gets it from its client (CVE-2016-5385). Values without a scheme are of HTTP proxies.
  [[nodiscard]] static ProxySettings from_environment();
};

[[nodiscard]] ProxyChoice use_proxies(ProxySettings settings);

}  // namespace tambour::http

#pragma GCC visibility pop
