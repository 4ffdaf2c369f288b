// Challenges of WWW-Authenticate and Proxy-Authenticate: RFC 9110, section 11.6.1.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/http/fields.h>

namespace tambour::http::detail::auth {

struct Challenge {
  std::string scheme{};
  /// Names in lower case, values without quotes.
  std::vector<std::pair<std::string, std::string>> parameters{};

  /// Null if there is none with this name, in lower case.
  [[nodiscard]] const std::string* find(std::string_view name) const noexcept;
};

/// The challenges of all fields with this name, in their order. A field ends where it is malformed;
/// the challenge of that place is left out. Throws std::bad_alloc.
[[nodiscard]] std::vector<Challenge> parse_challenges(const Fields& fields, std::string_view name);

/// The parameters of a list without a scheme: Authentication-Info, RFC 7615. Throws std::bad_alloc.
[[nodiscard]] Challenge parse_authentication_info(std::string_view value);

}  // namespace tambour::http::detail::auth
