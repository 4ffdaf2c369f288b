// llhttp, the parser of Node.js, as an oracle.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "http/support/messages.h"

namespace tambour::test {

/// False if the tests were built without llhttp.
bool has_reference_parser() noexcept;

struct ReferenceVerdict {
  /// Complete messages, and then at most one incomplete one. Of `start`, the method or status and
  /// the target are set, separated by a space.
  std::vector<Message> messages{};
  bool upgraded = false;  ///< The last message ends HTTP on its connection.
  bool failed = false;
  std::string reason{};  ///< Why llhttp has rejected the text.

  bool operator==(const ReferenceVerdict&) const = default;
};

/// Parses a text in pieces of which each ends at one of `ends`, and one more, in llhttp's strict
/// mode. Stops after a message that does not allow another one on its connection.
ReferenceVerdict read_with_reference(std::string_view text, bool has_requests,
                                     const std::vector<std::size_t>& ends = {});

}  // namespace tambour::test
