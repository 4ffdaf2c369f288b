// How much memory a program holds that takes small parts out of a buffer and keeps them.
#include <malloc.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/bytes/buffer.h>
#include <tambour/net/codec.h>

#include "support/blocks.h"

namespace tambour::small_takes_test {
namespace {

/// 0 if a sanitizer has replaced malloc(3).
std::size_t heap_bytes() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

constexpr std::size_t count = 2000;

/// The heap bytes that each of `count` parts holds; `take` gets a buffer with one message in a
/// block of its own, as read from a socket.
template <class Take>
std::size_t bytes_each(std::string_view message, Take take) {
  std::vector<Buffer> kept;
  kept.reserve(count);
  const std::size_t before = heap_bytes();
  for (std::size_t i = 0; i < count; ++i) {
    Buffer read;
    const auto room = read.prepare(4096);
    message.copy(reinterpret_cast<char*>(room.data()), message.size());
    read.commit(message.size());
    kept.push_back(take(read));
  }
  const std::size_t after = heap_bytes();
  for (const Buffer& buffer : kept) EXPECT_FALSE(buffer.empty());
  return (after - before) / count;
}

TEST(SmallTakes, a_short_line_does_not_hold_the_block_it_was_read_into) {
  EXPECT_LT(bytes_each("x\n", [](Buffer& from) { return std::move(**take_line(from)); }), 512U);
}

TEST(SmallTakes, a_short_length_prefixed_message_does_not_hold_the_block) {
  const std::string message("\0\0\0\1x", 5);
  EXPECT_LT(bytes_each(message, [](Buffer& from) { return std::move(**take_message(from)); }),
            512U);
}

TEST(SmallTakes, the_last_bytes_of_a_block_do_not_hold_it) {
  EXPECT_LT(bytes_each("x", [](Buffer& from) { return from.take(1); }), 512U);
  EXPECT_LT(bytes_each("xy", [](Buffer& from) { return from.slice(1, 1); }), 512U);
}

TEST(SmallTakes, a_part_of_some_hundred_bytes_holds_little_more) {
  EXPECT_LT(bytes_each(std::string(500, 'x'), [](Buffer& from) { return from.take(500); }), 1024U);
}

TEST(SmallTakes, short_reads_into_large_blocks_share_one) {
  Buffer buffer;
  const std::size_t before = heap_bytes();
  for (int i = 0; i < 100; ++i) {
    static_cast<void>(buffer.prepare(64 * 1024));
    buffer.commit(1);
  }
  EXPECT_EQ(buffer.size(), 100U);
  // One block is being filled, and one is kept for the next read.
  EXPECT_LT(heap_bytes() - before, std::size_t{3} * 64 * 1024);
}

TEST(SmallTakes, combine_the_bytes_of_several_blocks) {
  Buffer buffer("abc");
  test::append_block(buffer, "def");
  test::append_block(buffer, "ghi");
  Buffer shared = buffer.slice(1, 6);
  EXPECT_EQ(shared, "bcdefg");
  EXPECT_EQ(buffer.take(5), "abcde");
  EXPECT_EQ(buffer, "fghi");
  shared.append("!");
  EXPECT_EQ(shared, "bcdefg!");
}

}  // namespace
}  // namespace tambour::small_takes_test
