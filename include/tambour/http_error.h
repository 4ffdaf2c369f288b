// The errors of HTTP: of URLs, fields, messages, servers and clients.
//
// They form an error category of their own and can be compared with an Error:
// `if (error == HttpError::body_too_large)`. Each rejected message has an error that names the rule
// it breaks; status_for() returns the status with which a server answers it.
#pragma once

#include <system_error>
#include <type_traits>

#include <tambour/result.h>

namespace tambour {

enum class HttpError : int {
  // URLs: RFC 3986.
  url_bad_character = 1,  ///< A character that the component must not contain unencoded.
  url_bad_encoding,       ///< A percent sign that is not followed by two hexadecimal digits.
  url_bad_scheme,         ///< The text before the first colon is not a scheme.
  url_bad_host,           ///< Not a name, IPv4 address, or IPv6 address in brackets.
  url_bad_port,           ///< Not a number between 0 and 65535.
  url_ambiguous_path,     ///< The path would be read as another component.
  url_not_absolute,       ///< A URL with a scheme is required.
  url_too_long,           ///< More than Url::size_max bytes.

  // Names and values that a program sets.
  bad_method_name,   ///< Not a token, or more than Method::size_max bytes.
  bad_field_name,    ///< Not a token: RFC 9110, section 5.1.
  bad_field_value,   ///< A control character, for example a line end or a null byte.
  bad_status,        ///< Not between 100 and 999.
  bad_reason,        ///< A control character in a reason phrase.
  fields_too_large,  ///< More than Fields::bytes_max bytes.
};

const std::error_category& http_category() noexcept;

[[nodiscard]] inline Error make_error_code(
    HttpError error) noexcept {  // NOLINT: the standard's own name.
  return {static_cast<int>(error), http_category()};
}

}  // namespace tambour

template <>
struct std::is_error_code_enum<tambour::HttpError> : std::true_type {};
