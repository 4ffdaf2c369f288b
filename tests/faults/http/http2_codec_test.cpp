// Each allocation of the codec of HTTP/2 fails once: what may be called again works then.
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/bytes/buffer.h>

#include "faults/allocations.h"
#include "http_message/h2/frame_parser.h"
#include "http_message/h2/frame_writer.h"
#include "http_message/h2/head_writer.h"
#include "http_message/h2/hpack_decoder.h"

namespace tambour::http2_codec_test {
namespace {

using http::detail::h2::FieldSection;
using http::detail::h2::Frame;
using http::detail::h2::FrameParser;
using http::detail::h2::HpackDecoder;
using http::detail::h2::HpackEncoder;
using http::detail::h2::Violation;

/// Calls `function` until it does not throw; at most twice.
template <class Function>
auto repeated(Function function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return function();
  }
}

http::ResponseHead make_head() {
  http::ResponseHead head;
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(head.fields.add("x-name-" + std::to_string(i), std::string(100, 'v')));
    EXPECT_TRUE(head.fields.add("server", "name-" + std::to_string(i)));
  }
  EXPECT_TRUE(head.fields.add("x-large", std::string(40'000, '\xE0')));
  return head;
}

/// Writes two heads and some frames; each function is repeated if it throws.
Buffer write_frames(HpackEncoder& encoder, const http::ResponseHead& head) {
  Buffer to;
  repeated([&] { http::detail::h2::append_settings(to, {}); });
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(repeated([&] { return append_head(to, encoder, head, {.stream_id = 1}); }));
  repeated([&] { http::detail::h2::append_data(to, 1, Buffer(std::string_view("small")), false); });
  repeated([&] { http::detail::h2::append_ping(to, "12345678", true); });
  return to;
}

TEST(Http2Memory, writers_may_be_called_again) {
  const http::ResponseHead head = make_head();
  for (unsigned nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    HpackEncoder encoder;
    test::refuse_memory(nth, 1);
    Buffer frames = write_frames(encoder, head);
    test::grant_memory();
    FrameParser parser(FrameParser::Role::client);
    HpackDecoder decoder;
    Frame frame;
    std::vector<http::detail::h2::FrameKind> kinds;
    while (*parser.next(frames, frame)) {
      kinds.push_back(frame.kind);
      if (frame.kind != http::detail::h2::FrameKind::headers) continue;
      const http::detail::h2::FieldLimits limits{.bytes_max = 100'000};
      FieldSection section(limits);
      ASSERT_TRUE(decoder.decode(frame.text, section));
      http::Fields fields;
      section.move_fields_to(fields);
      EXPECT_TRUE(fields == head.fields);
    }
    using enum http::detail::h2::FrameKind;
    EXPECT_EQ(kinds,
              (std::vector{settings, headers, headers, http::detail::h2::FrameKind::data, ping}));
    if (!test::memory_was_refused() || HasFailure()) break;
  }
}

TEST(Http2Memory, the_parser_may_be_called_again) {
  const http::ResponseHead head = make_head();
  HpackEncoder encoder;
  const std::string text = write_frames(encoder, head).to_string();
  for (unsigned nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    FrameParser parser(FrameParser::Role::client);
    Buffer input;
    Frame frame;
    std::size_t frames = 0;
    std::string data;
    std::size_t block_bytes = 0;
    test::refuse_memory(nth, 1);
    for (std::size_t at = 0; at < text.size(); at += 1000) {
      const std::string_view piece = std::string_view(text).substr(at, 1000);
      repeated([&] { input.append(piece); });
      while (*repeated([&] { return parser.next(input, frame); })) {
        ++frames;
        if (frame.kind == http::detail::h2::FrameKind::headers) block_bytes += frame.text.size();
        if (frame.kind == http::detail::h2::FrameKind::data) data += frame.data.to_string();
      }
    }
    test::grant_memory();
    EXPECT_EQ(frames, 5U);
    EXPECT_EQ(data, "small");
    EXPECT_GT(block_bytes, 80'000U);
    EXPECT_TRUE(parser.is_between_frames(input));
    if (!test::memory_was_refused() || HasFailure()) break;
  }
}

TEST(Http2Memory, the_decoder_fails_for_good) {
  const http::detail::h2::FieldLimits limits;
  std::string block;
  for (char c = 'a'; c <= 'z'; ++c)
    block += std::string("\x40\1") + c + "\x7f\1" + std::string(128, c);
  unsigned refused = 0;
  for (unsigned nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    HpackDecoder decoder;
    http::Fields fields;
    bool has_thrown = false;
    test::refuse_memory(nth, 1);
    try {
      FieldSection section(limits);
      ASSERT_TRUE(decoder.decode(block, section));
    } catch (const std::bad_alloc&) {
      has_thrown = true;
    }
    test::grant_memory();
    FieldSection section(limits);
    const auto decoded = decoder.decode(std::string_view("\x82"), section);
    EXPECT_EQ(decoded.has_value(), !has_thrown);
    if (has_thrown) {
      EXPECT_EQ(decoded.error(), Violation::decoder_failed);
    }
    if (!test::memory_was_refused() || HasFailure()) break;
    ++refused;
  }
  EXPECT_GT(refused, 4U);
}

}  // namespace
}  // namespace tambour::http2_codec_test
