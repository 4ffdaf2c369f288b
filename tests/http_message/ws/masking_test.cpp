// Masking compared with the definition of RFC 6455, and payloads that are masked where they are.
#include "http_message/ws/masking.h"

#include <cstddef>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bytes/buffer_memory.h"
#include "support/blocks.h"

namespace tambour::masking_test {
namespace {

using http::detail::ws::mask_copy;
using http::detail::ws::masked_in_place_bytes_min;
using http::detail::ws::MaskKey;
using http::detail::ws::move_masked;

constexpr MaskKey key = {std::byte{0x12}, std::byte{0x80}, std::byte{0xFF}, std::byte{0x01}};

std::string random_text(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

/// RFC 6455, section 5.3.
std::string masked(std::string text, std::size_t offset = 0) {
  for (std::size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>(text[i] ^ std::to_integer<char>(key[(offset + i) % 4]));
  return text;
}

TEST(Masking, masks_every_size_at_every_offset_and_alignment) {
  for (std::size_t size = 0; size < 700; ++size) {
    const std::size_t step = size < 200 ? 1 : 3;
    for (std::size_t place = 0; place < 16; place += step) {
      const std::string text = random_text(size + place);
      const auto bytes = std::as_bytes(std::span(text)).subspan(place);
      std::string copy(size + 2, '*');
      mask_copy(bytes, std::as_writable_bytes(std::span(copy)).data() + 1, key, place);
      ASSERT_EQ(copy, '*' + masked(text.substr(place), place) + '*') << size << " at " << place;
    }
  }
}

TEST(Masking, masks_in_place) {
  for (const std::size_t size : {1, 15, 16, 31, 32, 127, 128, 511, 512, 1000, 70000}) {
    std::string text = random_text(size);
    const std::string expected = masked(text, 3);
    const auto bytes = std::as_writable_bytes(std::span(text));
    mask_copy(bytes, bytes.data(), key, 3);
    EXPECT_EQ(text, expected);
  }
}

std::string moved(Buffer& from, std::size_t size, std::size_t offset, std::string& visited) {
  Buffer to("before");
  move_masked(from, to, size, key, offset, [&](std::span<const std::byte> bytes) {
    visited.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  to.consume(6);
  return to.to_string();
}

TEST(Masking, moves_payloads_of_several_blocks) {
  for (const std::size_t size : {0, 1, 100, 5000, 50000}) {
    const std::string text = random_text(size);
    Buffer from;
    for (std::size_t at = 0; at < size; at += 1 + size / 7)
      test::append_block(from, text.substr(at, 1 + size / 7));
    from.append("rest");
    std::string visited;
    EXPECT_EQ(moved(from, size, 1, visited), masked(text, 1));
    EXPECT_EQ(visited, masked(text, 1));
    EXPECT_EQ(from, "rest");
  }
}

TEST(Masking, moves_large_blocks_without_copying) {
  Buffer from(random_text(20000));
  const std::byte* const before = from.front().data();
  ASSERT_EQ(from.front().size(), 20000U);
  Buffer to;
  move_masked(from, to, 20000, key, 0, [](std::span<const std::byte>) {});
  EXPECT_EQ(to.front().data(), before);
  EXPECT_EQ(to, masked(random_text(20000)));
}

TEST(Masking, leaves_shared_bytes_unchanged) {
  const std::string text = random_text(200000);
  Buffer from(text);
  const Buffer other = from.slice();
  EXPECT_TRUE(tambour::detail::BufferMemory::writable_front(from).empty());
  std::string visited;
  EXPECT_EQ(moved(from, text.size(), 0, visited), masked(text));
  EXPECT_EQ(other, text);

  const auto owner = std::make_shared<const std::string>(text);
  from.append_shared(std::as_bytes(std::span(*owner)), owner);
  EXPECT_TRUE(tambour::detail::BufferMemory::writable_front(from).empty());
  EXPECT_EQ(moved(from, text.size(), 0, visited), masked(text));
  EXPECT_EQ(*owner, text);
}

TEST(Masking, writable_memory_is_that_of_the_only_owner) {
  Buffer buffer;
  EXPECT_TRUE(tambour::detail::BufferMemory::writable_front(buffer).empty());
  buffer.append(random_text(5000));
  EXPECT_EQ(tambour::detail::BufferMemory::writable_front(buffer).data(), buffer.front().data());
  // A search continues where the last one has ended, so it must begin anew after a change.
  buffer = Buffer("abcdef");
  EXPECT_FALSE(buffer.search('x'));
  tambour::detail::BufferMemory::writable_front(buffer)[2] = std::byte{'x'};
  EXPECT_EQ(buffer.search('x'), 2U);
}

}  // namespace
}  // namespace tambour::masking_test
