// The choice of a coding for a response: RFC 9110, section 12.5.3.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>
#include <tambour/http/coding.h>
#include <tambour/http/fields.h>

namespace tambour::http::detail::coding {

/// How much the client wants the coding, in thousandths: 0 if Accept-Encoding does not name it,
/// neither itself nor, if `any_counts`, by "*".
[[nodiscard]] int quality_of(const Fields& fields, std::string_view coding,
                             bool any_counts) noexcept;

/// The coding that the client prefers; of equal ones, the first of `offered`. No value: none, or
/// the body as it is is preferred.
[[nodiscard]] std::optional<Coding> choose_coding(const Fields& fields,
                                                  std::span<const Coding> offered) noexcept;

/// The codings that this library can decode, as a list for Accept-Encoding.
[[nodiscard]] std::string available_codings();

}  // namespace tambour::http::detail::coding
