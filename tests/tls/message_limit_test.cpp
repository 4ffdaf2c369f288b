// The limit of handshake messages after the handshake, with times that the test sets.
#include "tls/message_limit.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace tambour::message_limit_test {
namespace {

using tls::detail::MessageLimit;

constexpr std::int64_t start_ns = MessageLimit::window_ns * 1000;
constexpr std::uint32_t messages_max = MessageLimit::messages_max;

TEST(MessageLimit, is_exceeded_by_a_flood) {
  MessageLimit limit;
  EXPECT_FALSE(limit.any());
  for (std::uint32_t i = 0; i < messages_max; ++i) {
    limit.count(start_ns + i);
    limit.note_data(1);
    EXPECT_TRUE(limit.any());
    EXPECT_FALSE(limit.exceeded());
  }
  limit.count(start_ns + messages_max);
  EXPECT_TRUE(limit.exceeded());
}

TEST(MessageLimit, is_not_exceeded_by_new_keys_each_hour) {
  MessageLimit limit;
  for (std::uint32_t i = 0; i < 10 * messages_max; ++i) {
    limit.count(start_ns + i * 60 * MessageLimit::window_ns);
    EXPECT_FALSE(limit.exceeded());
  }
}

TEST(MessageLimit, is_not_exceeded_by_new_keys_with_each_megabyte) {
  MessageLimit limit;
  for (std::uint32_t i = 0; i < 10 * messages_max; ++i) {
    limit.count(start_ns + i);
    EXPECT_FALSE(limit.exceeded());
    limit.note_data(MessageLimit::window_bytes);
  }
}

}  // namespace
}  // namespace tambour::message_limit_test
