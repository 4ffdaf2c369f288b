// Cross-origin resource sharing: which pages of other origins may read the responses. See the Fetch
// Standard, section 3.2 ("CORS protocol").
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/method.h>
#include <tambour/http/router.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// What cors() allows pages of other origins.
struct CorsOptions {
  /// The origins that are allowed, as browsers send them: "https://example.org", with a port if it
  /// is not the default one, without "/" at the end. "*" allows every origin, but not together with
  /// credentials. "null" is the origin of local files and of sandboxed frames, which any page can
  /// create.
  std::vector<std::string> origins{};
  std::vector<Method> methods = {Method::get, Method::head, Method::post};
  /// Request fields that pages may set, besides those that need no permission. "*": all of them
  /// except Authorization, and only without credentials.
  std::vector<std::string> fields{};
  /// Response fields that pages may read, besides those that need no permission.
  std::vector<std::string> exposed_fields{};
  /// Allows requests with cookies, HTTP authentication and client certificates.
  bool credentials = false;
  /// The time for which browsers may keep the answer to a preflight request; they have maxima of
  /// their own. Zero: they ask before each request.
  std::chrono::seconds max_age = std::chrono::seconds(5);
};

/// Middleware that adds the fields of CORS to responses for the listed origins, and answers
/// preflight requests (OPTIONS with Access-Control-Request-Method) itself: 204, or 403 if the
/// origin is not listed.
///
///   router.use(or_throw(http::cors({.origins = {"https://example.org"}, .credentials = true})));
///
/// Requests of other origins are passed on without the fields: the browser keeps the response from
/// the page, but the handler has run. CORS does not protect a server against requests.
///
/// An origin is compared as a whole, and never reflected unless it is listed. Fails with
/// http::ErrorCode::bad_origin, with http::ErrorCode::bad_field_name, and with
/// http::ErrorCode::credentials_for_any_origin if "*" is combined with credentials, because every
/// page could use them.
[[nodiscard]] Result<Middleware> cors(CorsOptions options);

}  // namespace tambour::http

#pragma GCC visibility pop
