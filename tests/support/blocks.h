// Buffers with blocks of their own for short text, which append() would copy into one block.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/bytes/buffer.h>

namespace tambour::test {

inline void append_block(Buffer& buffer, std::string_view text) {
  auto owner = std::make_shared<const std::string>(text);
  const auto bytes = std::as_bytes(std::span(*owner));
  buffer.append_shared(bytes, std::move(owner));
}

}  // namespace tambour::test
