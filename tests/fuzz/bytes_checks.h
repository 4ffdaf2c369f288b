// What reads bytes of strangers, and buffers that hold them, against plain models: one check for
// each, which libFuzzer and the tests give inputs to.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tambour::fuzz {

using Bytes = std::span<const std::uint8_t>;

/// What a check throws where the library and the model do not agree.
struct Wrong {
  std::string what;
};

inline void expect(bool holds, std::string_view what) {
  if (!holds) throw Wrong{std::string(what)};
}

inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Calls on four buffers, which share blocks, against strings.
void check_buffer(Bytes bytes);
/// Text and socket addresses as endpoints, against inet_pton(3).
void check_endpoint(Bytes bytes);
/// Messages in a stream, cut in several ways, against a plain reading of all of it.
void check_codec(Bytes bytes);
/// Headers of the PROXY protocol, out of bytes as they are, and written from what the bytes say.
void check_proxy(Bytes bytes);

}  // namespace tambour::fuzz
