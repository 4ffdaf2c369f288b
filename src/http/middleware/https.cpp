// redirect_to_https() and strict_transport_security().
#include <tambour/http/https.h>

#include <algorithm>
#include <utility>

#include <tambour/net/socket_stream.h>

#include "http_message/url_syntax.h"

namespace tambour::http {
namespace {

constexpr std::uint16_t https_port = 443;

void redirect(const HttpsRedirectOptions& options, const Request& request, Response& response) {
  const RequestHead& head = request.head();
  std::string location = "https://";
  if (!options.host.empty()) {
    location += options.host;
  } else if (const auto authority = parse_host_and_port(head.authority)) {
    const bool is_ipv6 = authority->host.find(':') != std::string_view::npos;
    location.append(is_ipv6 ? "[" : "").append(authority->host).append(is_ipv6 ? "]" : "");
  }
  if (location.ends_with("//") || head.method == Method::connect) {
    static_cast<void>(response.send_error(Status::bad_request, "the request names no host"));
    return;
  }
  if (options.port != https_port) location.append(":").append(std::to_string(options.port));
  location += head.target == "*" ? "/" : head.target;
  static_cast<void>(response.headers().set("Location", location));
  static_cast<void>(response.send(options.status));
}

}  // namespace

Handler redirect_to_https(HttpsRedirectOptions options) {
  return [options = std::move(options)](Request& request, Response& response) {
    redirect(options, request, response);
  };
}

Middleware strict_transport_security(StrictTransportOptions options) {
  std::string value = "max-age=";
  value += std::to_string(std::max<std::int64_t>(options.max_age.count(), 0));
  if (options.include_subdomains) value += "; includeSubDomains";
  if (options.preload) value += "; preload";
  return [value](Request& request, Response& response, const Handler& next) -> Task<> {
    // Browsers ignore the field over HTTP, and a server must not send it: RFC 6797, section 7.2.
    if (request.connection().tls() != nullptr)
      static_cast<void>(response.headers().set("Strict-Transport-Security", value));
    return next.start(request, response);
  };
}

}  // namespace tambour::http
