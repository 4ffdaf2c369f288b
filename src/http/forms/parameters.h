// Field values with parameters: RFC 9110, section 5.6.6.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/detail/namespaces.h>

namespace tambour::http::detail::forms {

/// For example: multipart/form-data; boundary="a b".
struct Parameterized {
  std::string_view value{};
  /// Without quotes.
  std::vector<std::pair<std::string_view, std::string>> parameters{};

  /// Null if there is none with this name, whatever the case of its letters.
  [[nodiscard]] const std::string* find(std::string_view name) const noexcept;
};

inline constexpr std::size_t parameters_max = 64;

/// Returns nullopt if the text is malformed, a parameter is repeated, or there are too many. In a
/// quoted value, a backslash counts only before a quote or another backslash, because browsers have
/// sent Windows paths as they are. The result contains views into `text`. Throws std::bad_alloc.
[[nodiscard]] std::optional<Parameterized> parse_parameters(std::string_view text);

}  // namespace tambour::http::detail::forms
