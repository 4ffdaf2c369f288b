// Coded texts for tests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <tambour/bytes/buffer.h>
#include <tambour/http/coding.h>

#include "http/coding/body_decoder.h"
#include "http/coding/codec.h"

namespace tambour::test {

/// A text that can be compressed, but not to a few bytes.
inline std::string text_of_bytes(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; text.size() < size; ++i)
    text += "line " + std::to_string(i * i % 7919) + " of the text\n";
  text.resize(size);
  return text;
}

inline std::string encoded(http::Coding coding, std::string_view text) {
  Buffer output;
  http::detail::coding::make_encoder(coding, 4)->encode(
      Buffer(text), http::detail::coding::Encoder::Mode::finish, output);
  return output.to_string();
}

/// An empty text if the body is not coded correctly.
inline std::string decoded_body(http::Coding coding, std::string_view text) {
  http::detail::coding::BodyDecoder decoder({coding}, {.bytes_max = SIZE_MAX, .ratio_max = 0});
  decoder.append(Buffer(text));
  Buffer output;
  for (;;) {
    const auto got = decoder.read(output, 65536);
    if (!got) return "";
    if (*got == 0) break;
  }
  return decoder.end() ? output.to_string() : "";
}

}  // namespace tambour::test
