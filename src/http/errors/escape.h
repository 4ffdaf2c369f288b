// Untrusted text inside JSON and HTML.
#pragma once

#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>

namespace tambour::http {

/// Appends `text` as a string of JSON (RFC 8259, section 7) with its quotes. A byte that is not
/// part of a character of UTF-8 becomes U+FFFD. Throws std::bad_alloc.
void append_json_string(std::string& to, std::string_view text);

/// Appends `text` to the contents of an HTML element. Invalid bytes become U+FFFD, too. Throws
/// std::bad_alloc.
void append_html_text(std::string& to, std::string_view text);

}  // namespace tambour::http
