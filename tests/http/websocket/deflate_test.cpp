// permessage-deflate: messages that are compressed and decompressed, the examples of RFC 7692, and
// limits.
#include "http/websocket/deflate.h"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "http_message/ws/error.h"
#include "support/blocks.h"

namespace tambour::deflate_test {
namespace {

#ifndef TAMBOUR_NO_ZLIB

using http::WebSocketError;
using http::detail::websocket::Deflater;
using http::detail::websocket::DeflateSettings;
using http::detail::websocket::InflateLimits;
using http::detail::websocket::Inflater;
using http::detail::websocket::InflateSettings;
using namespace std::string_literals;

constexpr InflateLimits no_limits{.message_bytes_max = UINT64_MAX, .ratio_max = 0};

std::string compressed(Deflater& deflater, std::string_view message) {
  Buffer output;
  deflater.compress(Buffer(message), true, output);
  return output.to_string();
}

/// Gives the message in pieces, and takes the result in pieces.
Result<std::string> decompressed(Inflater& inflater, std::string_view message,
                                 std::size_t piece_bytes = SIZE_MAX,
                                 std::size_t bytes_max = SIZE_MAX) {
  Buffer input;
  Buffer output;
  do {
    const std::string_view piece = message.substr(0, piece_bytes);
    message.remove_prefix(piece.size());
    test::append_block(input, piece);
    for (;;) {
      const auto progress = inflater.decompress(input, message.empty(), output, bytes_max);
      if (!progress) return std::unexpected(progress.error());
      EXPECT_LE(progress->added, bytes_max);
      EXPECT_TRUE(message.empty() || !progress->is_done);
      if (progress->is_done) return output.to_string();
      if (progress->added < bytes_max) break;
    }
    EXPECT_TRUE(input.empty());
  } while (!message.empty());
  ADD_FAILURE() << "the message has not ended";
  return "";
}

std::string random_text(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < size) text += "word" + std::to_string(random() % 1000) + " ";
  text.resize(size);
  return text;
}

/// Section 7.2.3.
TEST(Deflate, decompresses_the_examples_of_the_rfc) {
  Inflater inflater({});
  EXPECT_EQ(decompressed(inflater, "\xF2\x48\xCD\xC9\xC9\x07\x00"s), "Hello");
  // With reference to the first message.
  EXPECT_EQ(decompressed(inflater, "\xF2\x00\x11\x00\x00"s), "Hello");
  // A block without compression; a block that is marked as the last; two blocks.
  EXPECT_EQ(decompressed(inflater, "\x00\x05\x00\xFA\xFFHello\x00"s), "Hello");
  EXPECT_EQ(decompressed(inflater, "\xF3\x48\xCD\xC9\xC9\x07\x00\x00"s), "Hello");
  EXPECT_EQ(decompressed(inflater, "\xF2\x48\x05\x00\x00\x00\xFF\xFF\xCA\xC9\xC9\x07\x00"s),
            "Hello");
  EXPECT_EQ(decompressed(inflater, "\0"s), "");
}

TEST(Deflate, a_block_that_is_marked_as_the_last_keeps_the_context) {
  for (const std::size_t piece : {1, 3, 100}) {
    Inflater inflater({});
    EXPECT_EQ(decompressed(inflater, "\xF3\x48\xCD\xC9\xC9\x07\x00\x00"s, piece), "Hello");
    EXPECT_EQ(decompressed(inflater, "\xF2\x00\x11\x00\x00"s, piece), "Hello");
    // The empty block after it is missing.
    EXPECT_EQ(decompressed(inflater, "\xF3\x48\xCD\xC9\xC9\x07\x00"s, piece), "Hello");
    EXPECT_EQ(decompressed(inflater, "\xF2\x00\x11\x00\x00"s, piece), "Hello");
  }
}

TEST(Deflate, empty_blocks_that_are_marked_as_the_last_have_a_limit) {
  const auto blocks = [](int count) {
    std::string message;
    for (int i = 0; i < count; ++i) message += "\x03\x00"s;
    return message;
  };
  Inflater inflater({}, no_limits);
  EXPECT_EQ(decompressed(inflater, blocks(4097)), "");
  EXPECT_EQ(decompressed(inflater, blocks(4097)), "") << "the limit is one of a message";
  EXPECT_EQ(decompressed(inflater, blocks(4098)).error(), WebSocketError::bad_deflate);
}

TEST(Deflate, writes_the_examples_of_the_rfc) {
  Deflater deflater({});
  EXPECT_EQ(compressed(deflater, "Hello"), "\xF2\x48\xCD\xC9\xC9\x07\x00"s);
  EXPECT_EQ(compressed(deflater, "Hello"), "\xF2\x00\x11\x00\x00"s);
  EXPECT_EQ(compressed(deflater, ""), "\0"s);
  EXPECT_EQ(compressed(deflater, ""), "\0"s);
}

TEST(Deflate, messages_survive_with_every_setting) {
  for (int bits = 8; bits <= 15; ++bits) {
    for (const bool has_context : {false, true}) {
      for (const int level : {0, 1, 6, 9}) {
        Deflater deflater(
            {.window_bits = bits, .has_context_takeover = has_context, .level = level});
        Inflater inflater({.window_bits = bits, .has_context_takeover = has_context}, no_limits);
        unsigned seed = 0;
        for (const std::size_t size : {5, 0, 100, 0, 0, 5000, 70000, 3, 300}) {
          const std::string message =
              ++seed % 3 == 0 ? std::string(size, 'z') : random_text(size, seed / 2);
          const std::string coded = compressed(deflater, message);
          ASSERT_EQ(decompressed(inflater, coded, 1 + size / 5, 1 + size / 3), message)
              << bits << " bits, level " << level << ", " << size << " bytes";
        }
      }
    }
  }
}

TEST(Deflate, every_size_at_the_end_of_the_output_survives) {
  // The size of the coded message passes through the ends of the compressor's steps.
  Deflater deflater({.level = 0});
  Inflater inflater({}, no_limits);
  for (std::size_t size = 4050; size < 4150; ++size) {
    const std::string message = random_text(size, 1);
    ASSERT_EQ(decompressed(inflater, compressed(deflater, message)), message) << size;
  }
}

TEST(Deflate, parts_of_a_message_can_be_decompressed_when_they_arrive) {
  for (const bool has_context : {false, true}) {
    Deflater deflater({.has_context_takeover = has_context});
    Inflater inflater({.has_context_takeover = has_context}, no_limits);
    for (int message = 0; message < 3; ++message) {
      Buffer input;
      Buffer output;
      std::string expected;
      for (const std::size_t size : {10, 0, 5000, 7}) {
        expected += random_text(size, 7);
        deflater.compress(Buffer(random_text(size, 7)), false, input);
        const auto progress = inflater.decompress(input, false, output, SIZE_MAX);
        ASSERT_TRUE(progress);
        EXPECT_FALSE(progress->is_done);
        EXPECT_EQ(output, expected);
      }
      deflater.compress(Buffer(message == 0 ? "" : "end"), true, input);
      const auto progress = inflater.decompress(input, true, output, SIZE_MAX);
      ASSERT_TRUE(progress) << progress.error().message();
      EXPECT_TRUE(progress->is_done);
      EXPECT_EQ(output, expected + (message == 0 ? "" : "end"));
    }
  }
}

TEST(Deflate, context_takeover_makes_similar_messages_small) {
  Deflater with_context({});
  Deflater without_context({.has_context_takeover = false});
  const std::string message = random_text(500, 3);
  const std::size_t first = compressed(with_context, message).size();
  EXPECT_EQ(compressed(without_context, message).size(), first);
  EXPECT_LT(compressed(with_context, message).size(), first / 5);
  EXPECT_EQ(compressed(without_context, message).size(), first);
}

/// A broadcast is compressed once. It may be sent to a connection with a context of its own if that
/// begins anew afterwards.
TEST(Deflate, a_broadcast_may_be_sent_between_messages_with_context) {
  Deflater shared({.has_context_takeover = false});
  Deflater deflater({});
  Inflater inflater({});
  const std::string message = random_text(500, 3);
  EXPECT_EQ(decompressed(inflater, compressed(deflater, message)), message);
  const std::string broadcast = random_text(5000, 4);
  EXPECT_EQ(decompressed(inflater, compressed(shared, broadcast)), broadcast);
  deflater.forget_context();
  EXPECT_EQ(decompressed(inflater, compressed(deflater, message)), message);
  EXPECT_EQ(decompressed(inflater, compressed(deflater, message)), message);
  Buffer output;
  deflater.compress(Buffer("part"), false, output);
  EXPECT_DEATH(deflater.forget_context(), "within a message");
}

TEST(Deflate, memory_can_be_released_between_messages) {
  Deflater deflater({.has_context_takeover = false});
  Inflater inflater({.has_context_takeover = false});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(decompressed(inflater, compressed(deflater, "abc")), "abc");
    deflater.release_memory();
    inflater.release_memory();
  }
}

TEST(Deflate, malformed_messages_are_rejected) {
  const auto error_of = [](std::string_view message, std::size_t piece) {
    Inflater inflater({});
    const auto result = decompressed(inflater, message, piece);
    return result ? Error() : result.error();
  };
  Deflater deflater({});
  const std::string good = compressed(deflater, random_text(300, 5));
  for (const std::size_t piece : {1, 2, 1000}) {
    EXPECT_EQ(error_of("\xFF", piece), WebSocketError::bad_deflate);
    EXPECT_EQ(error_of("", piece), WebSocketError::bad_deflate);
    EXPECT_EQ(error_of("Hello", piece), WebSocketError::bad_deflate);
    // A reference to a byte before the first one.
    EXPECT_EQ(error_of("\xF2\x00\x11\x00\x00"s, piece), WebSocketError::bad_deflate);
    EXPECT_EQ(error_of(good, piece), Error());
    for (std::size_t size = 0; size < good.size(); ++size)
      EXPECT_EQ(error_of(std::string_view(good).substr(0, size), piece),
                WebSocketError::bad_deflate)
          << size << " of " << good.size();
  }
}

/// The number of bytes that were decompressed before the limit.
std::size_t bytes_before_error(std::string_view coded, const InflateLimits& limits) {
  Inflater inflater({}, limits);
  Buffer input(coded);
  Buffer output;
  const auto result = inflater.decompress(input, true, output, SIZE_MAX);
  EXPECT_FALSE(result);
  EXPECT_EQ(result ? Error() : result.error(), WebSocketError::inflated_too_large);
  EXPECT_EQ(static_cast<int>(http::detail::ws::close_code_for(WebSocketError::inflated_too_large)),
            1009);
  return output.size();
}

TEST(Deflate, bombs_end_at_the_limits) {
  Deflater deflater({.window_bits = 15, .level = 9});
  const std::string bomb = compressed(deflater, std::string(10 << 20, '\0'));
  EXPECT_LT(bomb.size(), 20000U);
  EXPECT_LE(bytes_before_error(bomb, {.message_bytes_max = 100000, .ratio_max = 0}), 104096U);
  EXPECT_LE(bytes_before_error(bomb, {.message_bytes_max = UINT64_MAX, .ratio_max = 200}),
            65536 + 200 * bomb.size() + 4096);
  Inflater inflater({}, {.message_bytes_max = 10 << 20, .ratio_max = 0});
  EXPECT_TRUE(decompressed(inflater, bomb));
}

TEST(Deflate, the_ratio_is_that_of_decompressed_to_received_bytes) {
  Deflater deflater({.window_bits = 15});
  const std::string message(4 << 20, '\0');
  const std::string coded = compressed(deflater, message);
  const auto ratio = static_cast<std::uint32_t>(message.size() / coded.size());
  bytes_before_error(coded, {.message_bytes_max = UINT64_MAX, .ratio_max = ratio * 9 / 10});
  Inflater inflater({}, {.message_bytes_max = UINT64_MAX, .ratio_max = ratio * 11 / 10});
  EXPECT_TRUE(decompressed(inflater, coded));
}

/// zlib forgets that it is between two blocks if it is called without input.
TEST(Deflate, a_message_may_end_in_a_call_that_adds_nothing) {
  for (std::size_t bytes_max = 1; bytes_max < 7; ++bytes_max) {
    Inflater inflater({});
    // The last four bytes of the block are those that senders remove.
    EXPECT_EQ(decompressed(inflater, "\0\x05\0\xFA\xFFx"s, SIZE_MAX, bytes_max), "x\0\0\xFF\xFF"s)
        << bytes_max;
  }
}

TEST(Deflate, a_limit_counts_each_message_alone) {
  Deflater deflater({});
  Inflater inflater({}, {.message_bytes_max = 1000});
  for (int i = 0; i < 5; ++i) {
    const std::string message = random_text(1000, 1);
    EXPECT_EQ(decompressed(inflater, compressed(deflater, message), 10), message);
  }
}

#else

TEST(Deflate, needs_zlib) { GTEST_SKIP() << "built without zlib"; }

#endif

}  // namespace
}  // namespace tambour::deflate_test
