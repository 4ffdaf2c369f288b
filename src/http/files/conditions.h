// Preconditions of requests: RFC 9110, section 13.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>
#include <tambour/http/fields.h>

namespace tambour::http {

/// What identifies a version of a resource.
struct Validators {
  std::string tag;  ///< A strong entity tag, with its quotes.
  std::chrono::sys_seconds modified{};
};

enum class Verdict : std::uint8_t { send, not_modified, precondition_failed };

/// The verdict for a GET or HEAD request: section 13.2.2.
[[nodiscard]] Verdict check_conditions(const Fields& request, const Validators& current) noexcept;

/// False if If-Range names another version, so that the Range field does not count.
[[nodiscard]] bool range_counts(const Fields& request, const Validators& current) noexcept;

/// True if a list of entity tags ("*", or tags with commas between them) contains `tag`, which is
/// strong. A weak one ("W/") in the list counts if `weak`. Malformed lists contain nothing from the
/// error on.
[[nodiscard]] bool has_tag(std::string_view list, std::string_view tag, bool weak) noexcept;

}  // namespace tambour::http
