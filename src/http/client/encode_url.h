// Text that programs and servers use as URLs, made a URL of RFC 3986.
#pragma once

#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>

namespace tambour::http::detail::client {

/// Encodes what RFC 3986 does not allow, mostly as the URL Standard (url.spec.whatwg.org) does:
///
/// - Blanks at both ends, and tabs anywhere, are removed.
/// - In paths, queries, fragments and userinfo, characters that must not occur are percent-encoded,
///   as is a percent sign without two digits.
/// - For http and https, a backslash before the query is a slash.
/// - The userinfo ends at the last "@".
/// - A colon after text that is no scheme belongs to a relative path.
///
/// Hosts, and control characters other than tabs, stay as they are, so that Url::parse() rejects
/// what is wrong with them. Throws std::bad_alloc.
[[nodiscard]] std::string encode_url(std::string_view text);

}  // namespace tambour::http::detail::client
