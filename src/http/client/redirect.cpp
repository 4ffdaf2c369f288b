// Which request follows a redirect, and the origins and user names of URLs.
#include "http/client/redirect.h"

#include "http/client/encode_url.h"
#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http::detail::client {
namespace {

/// A reference that is valid keeps its text.
Result<Url> parse_reference(std::string_view text) {
  auto url = Url::parse(text);
  return url ? url : Url::parse(encode_url(text));
}

/// Only of the schemes http and https, with a host and a port.
Result<Url> check_request_url(Url url) {
  if (!url.is_absolute()) return failure(http::ErrorCode::url_not_absolute);
  if (!equal_ignoring_case(url.scheme(), "http") && !equal_ignoring_case(url.scheme(), "https"))
    return failure(http::ErrorCode::url_bad_scheme);
  if (url.host().empty()) return failure(http::ErrorCode::url_bad_host);
  if (url.port_or_default() == 0) return failure(http::ErrorCode::url_bad_port);
  return url;
}

}  // namespace

Result<Url> parse_request_url(std::string_view text) {
  auto url = parse_reference(text);
  if (!url) return url;
  return check_request_url(std::move(*url));
}

Origin origin_of(const Url& url) {
  return {.host = base::lower_case(std::string(url.host())),
          .port = url.port_or_default(),
          .is_secure = equal_ignoring_case(url.scheme(), "https")};
}

std::string to_string(const Origin& origin) {
  const std::string_view scheme = origin.is_secure ? "https" : "http";
  const bool is_ipv6 = origin.host.contains(':');
  std::string text(scheme);
  text.append(is_ipv6 ? "://[" : "://").append(origin.host).append(is_ipv6 ? "]" : "");
  if (origin.port != default_port(scheme)) text.append(":").append(std::to_string(origin.port));
  return text;
}

std::string authority_of(const Url& url) {
  std::string authority;
  if (url.has_ip_literal()) authority += '[';
  authority += url.host();
  if (url.has_ip_literal()) authority += ']';
  if (url.port_or_default() != default_port(url.scheme())) {
    authority += ':';
    authority += std::to_string(url.port_or_default());
  }
  return authority;
}

Result<std::optional<Redirect>> redirect_of(const Url& from, const Method& method,
                                            const ResponseHead& head, const RedirectRules& rules) {
  Redirect redirect{.url = {}, .method = method};
  switch (head.status) {
    case Status::moved_permanently:
    case Status::found:
      redirect.keeps_body = method != Method::post;
      break;
    case Status::see_other:
      redirect.keeps_body = false;
      break;
    case Status::temporary_redirect:
    case Status::permanent_redirect:
      redirect.keeps_body = true;
      break;
    default:
      return std::nullopt;
  }
  if (!redirect.keeps_body && method != Method::head) redirect.method = Method::get;
  if (redirect.keeps_body && rules.had_source) return std::nullopt;
  const auto location = head.fields.get("Location");
  if (!location || location->empty()) return std::nullopt;
  const auto reference = parse_reference(*location);
  if (!reference) return failure(http::ErrorCode::bad_location);
  auto resolved = from.resolve(*reference);
  if (!resolved) return failure(http::ErrorCode::bad_location);
  auto url = check_request_url(std::move(*resolved));
  if (url && rules.hsts != nullptr) url = rules.hsts->secure(*url, rules.now);
  if (!url) return failure(http::ErrorCode::bad_location);
  if (origin_of(from).is_secure && !origin_of(*url).is_secure) return std::nullopt;
  redirect.url = std::move(*url);
  return redirect;
}

void remove_credentials(Fields& fields) noexcept {
  for (const char* const name : {"Authorization", "Cookie", "Proxy-Authorization"})
    fields.remove(name);
}

void remove_body_fields(Fields& fields) noexcept {
  for (const char* const name :
       {"Content-Encoding", "Content-Language", "Content-Location", "Content-Type", "Digest",
        "Content-Digest", "Last-Modified", "Expect"})
    fields.remove(name);
}

}  // namespace tambour::http::detail::client
