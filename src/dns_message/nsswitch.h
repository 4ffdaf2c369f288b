// The sources of host names: the line "hosts:" of nsswitch.conf(5).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/detail/namespaces.h>

namespace tambour::dns::detail {

/// How a source has answered.
enum class Status : std::uint8_t { success, not_found, unavailable, try_again };

struct Source {
  enum class Kind : std::uint8_t {
    files,
    dns,
    local_only,  ///< mdns_minimal and its variants, which know only names below ".local".
    other,
  };
  Kind kind = Kind::dns;
  /// By Status: whether the search ends with this source.
  std::array<bool, 4> returns{true, false, false, false};

  [[nodiscard]] bool ends_with(Status status) const noexcept {
    return returns[static_cast<std::size_t>(status)];
  }
  bool operator==(const Source&) const = default;
};

/// The sources of the text of a file, in order; files and dns if it names none.
[[nodiscard]] std::vector<Source> parse_nsswitch(std::string_view text);

}  // namespace tambour::dns::detail
