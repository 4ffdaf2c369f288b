// next_read_size(): grows the read buffer when more data arrives, and shrinks it gradually.
#include "bytes/read_size.h"

#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>

namespace tambour::detail::bytes::read_size_test {
namespace {

TEST(NextReadSize, a_read_that_fits_into_a_small_block_requests_no_larger_one) {
  EXPECT_EQ(next_read_size(0, small_block_bytes, 1), 0U);
  EXPECT_EQ(next_read_size(0, small_block_bytes, small_block_bytes - 1), 0U);
  EXPECT_EQ(next_read_size(0, large_block_bytes, small_block_bytes), 0U);
}

TEST(NextReadSize, a_read_that_filled_its_block_is_followed_by_the_next_larger_size) {
  EXPECT_EQ(next_read_size(0, small_block_bytes, small_block_bytes), large_block_bytes);
  EXPECT_EQ(next_read_size(0, 1, 1), large_block_bytes);
  EXPECT_EQ(next_read_size(large_block_bytes, large_block_bytes, large_block_bytes),
            huge_block_bytes);
  EXPECT_EQ(next_read_size(huge_block_bytes, huge_block_bytes, huge_block_bytes), huge_block_bytes);
}

TEST(NextReadSize, a_read_that_did_not_fill_its_block_requests_the_size_it_needed) {
  EXPECT_EQ(next_read_size(0, huge_block_bytes, small_block_bytes + 1), large_block_bytes);
  EXPECT_EQ(next_read_size(0, huge_block_bytes, large_block_bytes), large_block_bytes);
  EXPECT_EQ(next_read_size(0, huge_block_bytes, large_block_bytes + 1), huge_block_bytes);
}

TEST(NextReadSize, the_small_end_of_a_large_message_does_not_shrink_the_next_block) {
  EXPECT_EQ(next_read_size(huge_block_bytes, huge_block_bytes, 1), huge_block_bytes / 8 * 7);
  EXPECT_EQ(next_read_size(large_block_bytes, large_block_bytes, 1), large_block_bytes / 8 * 7);
  // The next size is never less than the number of bytes received.
  EXPECT_EQ(next_read_size(large_block_bytes, huge_block_bytes, large_block_bytes + 1),
            huge_block_bytes);
}

TEST(NextReadSize, repeated_small_messages_shrink_the_block) {
  for (const std::size_t first : {large_block_bytes, huge_block_bytes}) {
    auto size = static_cast<std::uint32_t>(first);
    int reads = 0;
    for (; size != 0 && reads < 100; ++reads) {
      const std::uint32_t next = next_read_size(size, size, 1);
      ASSERT_LT(next, size);
      // No intermediate size that fits no pooled block well.
      ASSERT_TRUE(next == 0 || next >= large_block_bytes / 4) << next;
      size = next;
    }
    EXPECT_EQ(size, 0U);
    EXPECT_GE(reads, first == large_block_bytes ? 10 : 20);
  }
}

}  // namespace
}  // namespace tambour::detail::bytes::read_size_test
