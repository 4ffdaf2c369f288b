// Framing: which messages are taken from a buffer, which are incomplete and which are rejected,
// however the bytes are divided.
#include <tambour/net/codec.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/blocks.h"
#include "support/process.h"
#include "support/random.h"
#include "support/scale.h"

namespace tambour::codec_test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

/// The messages that were taken from a buffer, and the error at the end.
struct Taken {
  std::vector<std::string> messages;
  Error error;
  bool operator==(const Taken&) const = default;
};

template <class Take>
void take_all(Buffer& buffer, Take take, Taken& taken) {
  while (!taken.error) {
    Result<std::optional<Buffer>> message = take(buffer);
    if (!message) {
      taken.error = message.error();
    } else if (*message) {
      taken.messages.push_back((*message)->to_string());
    } else {
      return;
    }
  }
}

/// Appends the bytes in pieces of random sizes up to `limit`, each in a block of its own or not.
template <class Take>
Taken in_pieces(std::string_view bytes, Take take, std::size_t limit, test::Random& random) {
  Buffer buffer;
  Taken taken;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), random.below(limit) + 1);
    if (random.below(2) == 0) {
      buffer.append(bytes.substr(0, size));
    } else {
      test::append_block(buffer, bytes.substr(0, size));
    }
    bytes.remove_prefix(size);
    take_all(buffer, take, taken);
  }
  return taken;
}

template <class Take>
void expect(std::string_view bytes, Take take, const Taken& expected) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  for (const std::size_t limit : {std::size_t{1}, std::size_t{3}, bytes.size() + 1}) {
    const Taken taken = in_pieces(bytes, take, limit, random);
    EXPECT_EQ(taken.messages, expected.messages);
    EXPECT_EQ(taken.error, expected.error);
  }
}

auto lines(std::size_t limit) {
  return [limit](Buffer& from) { return take_line(from, {.bytes_max = limit}); };
}

TEST(Lines, end_with_a_line_feed_and_an_optional_carriage_return) {
  expect("one\ntwo\r\n\n\r\nfi\rve\n\r\r\nrest", lines(100),
         {{"one", "two", "", "", "fi\rve", "\r"}, {}});
  expect("nul\0l\n"s, lines(100), {{"nul\0l"s}, {}});
}

TEST(Lines, are_rejected_if_they_are_too_long) {
  const Error too_long = system_error(EMSGSIZE);
  expect("12345\n12345\r\n", lines(5), {{"12345", "12345"}, {}});
  expect("1\n123456\n1\n", lines(5), {{"1"}, too_long});
  expect("1\n123456", lines(5), {{"1"}, too_long});
  expect("12345\r", lines(5), {{}, {}});
  expect("12345\r6\n", lines(5), {{}, too_long});
  expect("\n\r\n", lines(0), {{"", ""}, {}});
  expect("x", lines(0), {{}, too_long});
  expect("12345\n", lines(SIZE_MAX), {{"12345"}, {}});
}

TEST(Lines, that_are_too_long_leave_the_buffer_as_it_was) {
  Buffer buffer("123456\n1\n");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(take_line(buffer, {.bytes_max = 5}).error(), system_error(EMSGSIZE));
    EXPECT_EQ(buffer, "123456\n1\n");
  }
}

TEST(Lines, received_byte_by_byte_are_searched_once) {
  const LineOptions options{.bytes_max = SIZE_MAX};
  const Duration before = test::processor_time();
  Buffer buffer;
  for (std::size_t i = test::scaled(1'000'000); i > 0; --i) {
    buffer.prepare(1)[0] = std::byte('x');
    buffer.commit(1);
    ASSERT_FALSE(take_line(buffer, options)->has_value());
  }
  // Each byte in a block of its own.
  Buffer blocks;
  const auto one = std::make_shared<const char>('x');
  for (std::size_t i = test::scaled(200'000); i > 0; --i) {
    blocks.append_shared(std::as_bytes(std::span(one.get(), 1)), one);
    ASSERT_FALSE(take_line(blocks, options)->has_value());
  }
  EXPECT_LT(test::processor_time() - before, 10s);
}

TEST(Lines, are_appended_with_their_line_ending_or_not_at_all) {
  Buffer buffer;
  EXPECT_TRUE(append_line(buffer, "one"));
  EXPECT_TRUE(append_line(buffer, "", "\r\n"));
  EXPECT_EQ(append_line(buffer, "two\nthree").error(), system_error(EINVAL));
  EXPECT_EQ(append_line(buffer, "two\r").error(), system_error(EINVAL));
  EXPECT_EQ(buffer, "one\n\r\n");
}

TEST(Lines, may_be_appended_from_the_buffer_itself) {
  Buffer buffer("abc");
  EXPECT_TRUE(append_line(buffer, buffer.coalesce()));
  EXPECT_EQ(buffer, "abcabc\n");
}

auto messages(const LengthOptions& options) {
  return [options](Buffer& from) { return take_message(from, options); };
}

TEST(LengthPrefixed, is_decoded_as_it_was_encoded) {
  for (const std::endian order : {std::endian::big, std::endian::little}) {
    for (int bytes = 1; bytes <= 8; ++bytes) {
      const LengthOptions options{.length_bytes = bytes, .byte_order = order};
      Buffer buffer;
      std::string long_one(bytes == 1 ? 255 : 300, 'x');
      EXPECT_TRUE(append_message(buffer, "one", options));
      EXPECT_TRUE(append_message(buffer, "", options));
      EXPECT_TRUE(append_message(buffer, Buffer(long_one), options));
      EXPECT_EQ(buffer.size(), 3 * std::size_t(bytes) + 3 + long_one.size());
      expect(buffer.to_string(), messages(options), {{"one", "", long_one}, {}});
    }
  }
}

TEST(LengthPrefixed, has_its_length_in_the_requested_byte_order) {
  Buffer big, little;
  EXPECT_TRUE(append_message(big, std::string(258, 'x'), {.length_bytes = 2}));
  EXPECT_TRUE(append_message(little, std::string(258, 'x'),
                             {.length_bytes = 4, .byte_order = std::endian::little}));
  EXPECT_EQ(big.take(2), "\x01\x02");
  EXPECT_EQ(little.take(4), "\x02\x01\0\0"s);
}

TEST(LengthPrefixed, is_rejected_as_soon_as_the_length_exceeds_the_limit) {
  const Error too_long = system_error(EMSGSIZE);
  const LengthOptions options{.length_bytes = 1, .bytes_max = 3};
  expect(
      "\x03"
      "abc\0\x04"s,
      messages(options), {{"abc", ""}, too_long});
  Buffer buffer("\x04");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(take_message(buffer, options).error(), too_long);
  EXPECT_EQ(buffer, "\x04");
  for (const std::string limit :
       {"\xff\xff\xff\xff\xff\xff\xff\xff", "\x7f\xff\xff\xff\xff\xff\xff\xff",
        "\x7f\xff\xff\xff\xff\xff\xff\xf8"}) {
    const LengthOptions unlimited{.length_bytes = 8, .bytes_max = SIZE_MAX};
    expect(limit, messages(unlimited), {{}, too_long});
  }
  // The longest message that a buffer can hold together with its length is accepted as incomplete.
  expect("\x7f\xff\xff\xff\xff\xff\xff\xf7 and so on",
         messages({.length_bytes = 8, .bytes_max = SIZE_MAX}), {{}, {}});
}

TEST(LengthPrefixed, is_not_written_if_it_exceeds_a_limit) {
  Buffer buffer("before");
  EXPECT_EQ(append_message(buffer, std::string(256, 'x'), {.length_bytes = 1}).error(),
            system_error(EMSGSIZE));
  Buffer message("four");
  EXPECT_EQ(append_message(buffer, std::move(message), {.bytes_max = 3}).error(),
            system_error(EMSGSIZE));
  EXPECT_EQ(message, "four");  // NOLINT: not moved after an error.
  EXPECT_EQ(buffer, "before");
  const std::span<const std::byte> impossible(reinterpret_cast<const std::byte*>("x"),
                                              Buffer::max_size() - 4);
  EXPECT_EQ(append_message(buffer, impossible, {.bytes_max = SIZE_MAX}).error(),
            system_error(EMSGSIZE));
}

TEST(LengthPrefixed, returns_the_bytes_without_copying) {
  Buffer buffer;
  EXPECT_TRUE(append_message(buffer, std::string(100'000, 'x')));
  const auto* const bytes = buffer.front().data();
  const auto message = take_message(buffer);
  ASSERT_TRUE(message && *message);
  EXPECT_EQ((*message)->front().data(), bytes + 4);
}

TEST(Sizes, are_exact) {
  expect("aabbc",
         [](Buffer& from) -> Result<std::optional<Buffer>> { return take_exactly(from, 2); },
         {{"aa", "bb"}, {}});
  Buffer empty;
  EXPECT_TRUE(take_exactly(empty, 0));
  EXPECT_FALSE(take_exactly(empty, SIZE_MAX));
}

TEST(StreamErrors, distinguish_a_clean_end_from_a_truncated_message) {
  const Error end = StreamError::eof;
  EXPECT_TRUE(end);
  EXPECT_EQ(end, StreamError::eof);
  EXPECT_NE(end, make_error_code(StreamError::truncated));
  EXPECT_NE(end, system_error(1));
  EXPECT_EQ(end.message(), "End of stream");
  EXPECT_EQ(make_error_code(StreamError::truncated).message(), "End of stream within a message");
  EXPECT_EQ(Error(3, stream_category()).message(), "Unknown end of stream");
  EXPECT_STREQ(end.category().name(), "tambour.stream");
}

}  // namespace
}  // namespace tambour::codec_test
