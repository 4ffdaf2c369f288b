// The frames that libnghttp2 finds, with which tests compare the library's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tambour::test {

/// False if the tests were built without libnghttp2. Then read_reference_frames() must not be used.
[[nodiscard]] bool has_reference_frames() noexcept;

struct ReferenceFrames {
  /// Type and stream of each frame that has begun, such as "0 1". The last one may be incomplete
  /// or invalid. CONTINUATION and types that libnghttp2 does not know are left out.
  std::vector<std::string> begun{};
  /// The session has rejected a frame, as one of the connection or of its stream.
  bool has_rejected = false;
};

/// Gives what a client sends to a server session of libnghttp2.
[[nodiscard]] ReferenceFrames read_reference_frames(std::string_view text);

}  // namespace tambour::test
