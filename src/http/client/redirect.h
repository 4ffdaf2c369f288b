// Where a request goes: origins, and the rules of redirects.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/hsts.h>
#include <tambour/http/message.h>
#include <tambour/http/url.h>

#include "http/client/pool.h"

namespace tambour::http::detail::client {

/// Parses the URL of a request: absolute, with the scheme "http" or "https", a host, and a port.
/// Characters that a URL must not contain are encoded: see encode_url().
/// Fails with the errors of Url::parse(), url_not_absolute, url_bad_scheme, url_bad_host and
/// url_bad_port.
[[nodiscard]] Result<Url> parse_request_url(std::string_view text);

/// The URL must be one of parse_request_url().
[[nodiscard]] Origin origin_of(const Url& url);
/// "https://example.org:8443"; without the port if it is the default.
[[nodiscard]] std::string to_string(const Origin& origin);
/// The value of the Host field: host and port, without a userinfo.
[[nodiscard]] std::string authority_of(const Url& url);

struct Redirect {
  Url url;
  Method method;
  bool keeps_body = false;
};

/// What decides whether a redirect is followed, besides the response.
struct RedirectRules {
  bool had_source = false;          ///< The body cannot be sent again.
  const HstsStore* hsts = nullptr;  ///< May be null.
  WallTime now{};
};

/// Returns no value if the response is not a redirect, or one that must not be followed: without a
/// Location, from https to http, or with a body that cannot be sent again. Fails with
/// http::ErrorCode::bad_location.
[[nodiscard]] Result<std::optional<Redirect>> redirect_of(const Url& from, const Method& method,
                                                          const ResponseHead& head,
                                                          const RedirectRules& rules);

/// Fields that must not be sent to another origin.
void remove_credentials(Fields& fields) noexcept;
/// Fields that describe a body: RFC 9110, section 15.4.
void remove_body_fields(Fields& fields) noexcept;

}  // namespace tambour::http::detail::client
