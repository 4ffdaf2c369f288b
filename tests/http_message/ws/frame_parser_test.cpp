// Frames that are received: RFC 6455, section 5. Each text is parsed at once, in two pieces in
// every way, and byte by byte.
#include "http_message/ws/frame_parser.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "http_message/ws/frames.h"
#include "support/scale.h"

namespace tambour::frame_parser_test {
namespace {

using http::CloseCode;
using http::WebSocketError;
using http::detail::ws::close_code_for;
using test::FrameLimits;
using test::FrameReader;
using test::Received;
using test::Role;
using namespace std::string_literals;

// The first byte of frames.
constexpr unsigned text = 0x81;
constexpr unsigned binary = 0x82;
constexpr unsigned first_text = 0x01;
constexpr unsigned first_binary = 0x02;
constexpr unsigned more = 0x00;
constexpr unsigned last = 0x80;
constexpr unsigned close = 0x88;
constexpr unsigned ping = 0x89;
constexpr unsigned pong = 0x8A;
constexpr unsigned compressed = 0x40;

struct Options {
  FrameLimits limits{};
  bool allows_compressed = false;
};

/// The events without parts of messages that are not complete: these depend on the division.
Received read_in_every_way(Role role, const std::string& input, const Options& options = {}) {
  const auto read = [&](const std::vector<std::size_t>& ends, bool in_blocks,
                        std::size_t bytes_max) {
    FrameReader reader(role, options.limits, options.allows_compressed, bytes_max);
    test::add_in_pieces(reader, input, ends, in_blocks);
    Received received = reader.finish();
    if (received.error) received.incomplete.clear();
    return received;
  };
  const Received whole = read({}, false, SIZE_MAX);
  std::vector<std::size_t> all;
  for (std::size_t i = 1; i < input.size(); ++i) {
    all.push_back(i);
    EXPECT_EQ(read({i}, false, SIZE_MAX), whole) << "divided at " << i;
    EXPECT_EQ(read({i}, true, 3), whole) << "in blocks, divided at " << i;
  }
  EXPECT_EQ(read(all, false, SIZE_MAX), whole) << "byte by byte";
  EXPECT_EQ(read(all, true, 1), whole) << "in blocks, byte by byte";
  return whole;
}

struct Part {
  unsigned first_byte;
  std::string payload;
};

std::string frames_for(Role role, const std::vector<Part>& parts) {
  std::string input;
  for (const Part& part : parts) input += test::frame_for(role, part.first_byte, part.payload);
  return input;
}

void expect_events(const std::vector<Part>& parts, const std::vector<std::string>& events,
                   const std::string& incomplete = "", const Options& options = {}) {
  for (const Role role : {Role::server, Role::client}) {
    const Received received = read_in_every_way(role, frames_for(role, parts), options);
    EXPECT_EQ(received.events, events);
    EXPECT_EQ(received.error, Error()) << received.error.message();
    EXPECT_EQ(received.incomplete, incomplete);
  }
}

void expect_error(const std::vector<Part>& parts, WebSocketError error, int code,
                  const std::vector<std::string>& events = {}, const Options& options = {}) {
  for (const Role role : {Role::server, Role::client}) {
    const Received received = read_in_every_way(role, frames_for(role, parts), options);
    EXPECT_EQ(received.events, events);
    EXPECT_EQ(received.error, error) << received.error.message();
    EXPECT_EQ(static_cast<int>(close_code_for(received.error)), code);
  }
}

TEST(FrameParser, reads_messages) {
  expect_events({{text, "Hello"}, {binary, "\x01\xFF"}, {text, ""}, {binary, ""}},
                {"text Hello", "binary \x01\xFF", "text ", "binary "});
}

/// RFC 6455, section 5.7.
TEST(FrameParser, reads_the_examples_of_the_rfc) {
  EXPECT_EQ(read_in_every_way(Role::client, "\x81\x05Hello").events, std::vector{"text Hello"s});
  EXPECT_EQ(read_in_every_way(Role::server, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58").events,
            std::vector{"text Hello"s});
  EXPECT_EQ(read_in_every_way(Role::client, "\x01\x03Hel\x80\x02lo").events,
            std::vector{"text Hello"s});
  EXPECT_EQ(read_in_every_way(Role::client, "\x89\x05Hello").events, std::vector{"ping Hello"s});
}

TEST(FrameParser, reads_fragments_with_control_frames_between_them) {
  expect_events({{first_text, "a"}, {more, ""}, {ping, "1"}, {more, "bc"}, {pong, ""}, {last, "d"}},
                {"ping 1", "pong ", "text abcd"});
  expect_events({{first_binary, ""}, {last, ""}}, {"binary "});
  expect_events({{first_text, "abc"}, {more, "d"}, {ping, "x"}}, {"ping x"}, "abcd");
}

TEST(FrameParser, reads_every_size_form_at_every_split) {
  for (const std::size_t size : {125, 126, 65535, 65536}) {
    const std::string payload(size, 'x');
    for (const Role role : {Role::server, Role::client}) {
      const std::string input = test::frame_for(role, binary, payload);
      const std::size_t step = test::sanitized ? 997 : role == Role::client ? 7 : 1;
      for (std::size_t at = 0; at < input.size(); at += at < 20 ? 1 : step) {
        FrameReader reader(role);
        test::add_in_pieces(reader, input, {at}, at % 2 == 0);
        const Received received = reader.finish();
        ASSERT_EQ(received.events.size(), 1U) << size << " divided at " << at;
        ASSERT_EQ(received.events[0].size(), 7 + size);
        ASSERT_TRUE(received.events[0].ends_with(payload)) << size << " divided at " << at;
      }
    }
  }
}

TEST(FrameParser, rejects_sizes_that_are_not_minimal) {
  for (const Role role : {Role::server, Role::client}) {
    for (const auto& [size, size_bytes] :
         {std::pair{0, 2}, {125, 2}, {125, 8}, {126, 8}, {65535, 8}}) {
      const std::string payload(static_cast<std::size_t>(size), 'x');
      const std::string input =
          test::frame_for(role, binary, payload, static_cast<std::size_t>(size_bytes));
      FrameReader reader(role);
      reader.add(input);
      EXPECT_EQ(reader.finish().error, WebSocketError::size_not_minimal) << size;
    }
  }
  EXPECT_EQ(read_in_every_way(Role::client, "\x82\x7F\x80\0\0\0\0\0\0\0"s).error,
            WebSocketError::size_out_of_range);
}

TEST(FrameParser, rejects_reserved_bits_and_opcodes) {
  for (const unsigned bit : {0x40U, 0x20U, 0x10U}) {
    for (const unsigned first_byte : {text, binary, close, ping, pong})
      expect_error({{first_byte | bit, ""}}, WebSocketError::reserved_bits, 1002);
    expect_error({{first_text, "a"}, {last | bit, ""}}, WebSocketError::reserved_bits, 1002);
  }
  for (const unsigned opcode : {3, 4, 5, 6, 7, 11, 12, 13, 14, 15})
    expect_error({{text, "a"}, {0x80 | opcode, ""}}, WebSocketError::reserved_opcode, 1002,
                 {"text a"});
}

TEST(FrameParser, accepts_the_bit_of_a_negotiated_extension_in_first_frames_only) {
  const Options options{.allows_compressed = true};
  // The text is compressed, so it need not be UTF-8.
  expect_events({{text | compressed, "\xFF"}, {binary, "b"}}, {"compressed text \xFF", "binary b"},
                "", options);
  expect_events({{first_text | compressed, "a"}, {last, "b"}, {text, "c"}},
                {"compressed text ab", "text c"}, "", options);
  expect_error({{first_text | compressed, "a"}, {last | compressed, "b"}},
               WebSocketError::reserved_bits, 1002, {}, options);
  expect_error({{ping | compressed, ""}}, WebSocketError::reserved_bits, 1002, {}, options);
  expect_error({{text | 0x20, ""}}, WebSocketError::reserved_bits, 1002, {}, options);
}

TEST(FrameParser, requires_masks_of_clients_and_rejects_those_of_servers) {
  EXPECT_EQ(read_in_every_way(Role::server, test::frame_for(Role::client, text, "a")).error,
            WebSocketError::unmasked_frame);
  EXPECT_EQ(read_in_every_way(Role::client, test::frame_for(Role::server, text, "a")).error,
            WebSocketError::masked_frame);
}

TEST(FrameParser, rejects_frames_out_of_order) {
  expect_error({{last, "a"}}, WebSocketError::unexpected_continuation, 1002);
  expect_error({{text, "a"}, {more, "b"}}, WebSocketError::unexpected_continuation, 1002,
               {"text a"});
  expect_error({{first_text, "a"}, {text, "b"}}, WebSocketError::missing_continuation, 1002);
  expect_error({{first_text, "a"}, {first_binary, "b"}}, WebSocketError::missing_continuation,
               1002);
}

TEST(FrameParser, rejects_bad_control_frames) {
  for (const unsigned first_byte : {close, ping, pong}) {
    expect_error({{first_byte & 0x7F, ""}}, WebSocketError::fragmented_control_frame, 1002);
    expect_error({{first_byte, std::string(126, 'x')}}, WebSocketError::control_frame_too_large,
                 1002);
  }
  expect_events({{ping, std::string(125, 'x')}}, {"ping " + std::string(125, 'x')});
}

TEST(FrameParser, reads_close_frames_and_discards_what_follows) {
  expect_events({{close, ""}, {text, "a"}}, {"close 1005 "});
  expect_events({{close, "\x03\xE8"}}, {"close 1000 "});
  expect_events({{first_text, "x"}, {close, "\x0F\xA0 \xC3\xA9"}, {last, "\xFF"}},
                {"close 4000  \xC3\xA9"}, "x");
  FrameReader reader(Role::client);
  reader.add("\x88"s);
  EXPECT_FALSE(reader.parser().is_closed());
  reader.add("\0garbage"s);
  EXPECT_TRUE(reader.parser().is_closed());
  reader.add("more");
  EXPECT_EQ(reader.unread_bytes(), 0U);
}

TEST(FrameParser, rejects_bad_close_payloads) {
  expect_error({{close, "\x03"}}, WebSocketError::bad_close_payload, 1002);
  expect_error({{close, "\x03\xE8\xFF"}}, WebSocketError::invalid_utf8, 1007);
  expect_error({{close, "\x03\xE8\xE2\x82"}}, WebSocketError::invalid_utf8, 1007);
}

TEST(FrameParser, accepts_the_close_codes_that_may_be_sent) {
  for (unsigned code = 0; code < 0x10000; ++code) {
    const bool is_valid = (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) ||
                          (code >= 3000 && code <= 4999);
    FrameReader reader(Role::client);
    reader.add(std::string{'\x88', '\x02', static_cast<char>(code >> 8U), static_cast<char>(code)});
    const Received received = reader.finish();
    ASSERT_EQ(received.error, is_valid ? Error() : make_error_code(WebSocketError::bad_close_code))
        << code;
  }
}

TEST(FrameParser, validates_text_across_frames) {
  expect_events({{first_text, "\xF0\x9F"}, {more, "\x98"}, {ping, "\xFF"}, {last, "\x80"}},
                {"ping \xFF", "text \xF0\x9F\x98\x80"});
  expect_error({{text, "\xF0\x9F"}}, WebSocketError::invalid_utf8, 1007);
  expect_error({{first_text, "\xF0\x9F"}, {last, "x"}}, WebSocketError::invalid_utf8, 1007);
  expect_error({{first_text, "ok"}, {more, "\xED\xA0"}}, WebSocketError::invalid_utf8, 1007);
  expect_events({{binary, "\xFF"}, {first_binary, "\xF0"}, {last, ""}, {text, "a"}},
                {"binary \xFF", "binary \xF0", "text a"});
}

TEST(FrameParser, reports_invalid_text_before_the_frame_has_ended) {
  const std::string input = test::frame_for(Role::server, text, "ab\xFF" + std::string(100, 'x'));
  FrameReader reader(Role::server);
  reader.add(std::string_view(input).substr(0, 8));
  EXPECT_EQ(reader.parser().is_within_message(), true);
  reader.add(std::string_view(input).substr(8, 1));
  EXPECT_EQ(reader.finish().error, WebSocketError::invalid_utf8);
}

TEST(FrameParser, limits_frames_and_messages_when_the_header_arrives) {
  const Options options{.limits = {.frame_bytes_max = 4, .message_bytes_max = 6}};
  expect_events({{binary, "abcd"}, {first_binary, "abcd"}, {last, "ef"}},
                {"binary abcd", "binary abcdef"}, "", options);
  expect_error({{binary, "abcde"}}, WebSocketError::frame_too_large, 1009, {}, options);
  expect_error({{first_binary, "abcd"}, {last, "efg"}}, WebSocketError::message_too_large, 1009, {},
               options);
  FrameReader reader(Role::client);
  reader.add("\x82\x7F\0\0\0\0\0\x10\0\1"s);
  EXPECT_EQ(reader.finish().error, WebSocketError::frame_too_large);
}

TEST(FrameParser, limits_fragments_and_counts_empty_ones) {
  const Options options{.limits = {.fragments_max = 3}};
  expect_events({{first_text, ""}, {more, ""}, {last, ""}, {first_text, "a"}, {more, ""}},
                {"text "}, "a", options);
  expect_error({{first_text, ""}, {more, ""}, {more, ""}, {more, ""}},
               WebSocketError::too_many_fragments, 1009, {}, options);
}

TEST(FrameParser, limits_control_frames_without_data_between_them) {
  const Options options{.limits = {.control_frames_max = 2}};
  expect_events({{ping, ""}, {pong, ""}, {text, ""}, {ping, ""}, {pong, ""}},
                {"ping ", "pong ", "text ", "ping ", "pong "}, "", options);
  expect_error({{ping, ""}, {ping, ""}, {ping, ""}}, WebSocketError::too_many_control_frames, 1008,
               {"ping ", "ping "}, options);
  // An empty fragment is no data.
  expect_error({{first_text, ""}, {ping, ""}, {more, ""}, {ping, ""}, {more, ""}, {ping, ""}},
               WebSocketError::too_many_control_frames, 1008, {"ping ", "ping "}, options);
  FrameReader reader(Role::client, options.limits);
  for (int i = 0; i < 10; ++i) {
    reader.parser().restart_control_frames();
    reader.add("\x8A\0"s);
  }
  EXPECT_EQ(reader.finish().events.size(), 10U);
}

TEST(FrameParser, gives_at_most_the_bytes_that_the_caller_wants) {
  const FrameLimits limits;
  http::detail::ws::FrameParser parser(Role::client, limits);
  Buffer input(test::frame_for(Role::client, text, "abcdefgh"));
  Buffer payload;
  using Event = http::detail::ws::FrameParser::Event;
  EXPECT_EQ(parser.parse(input, payload, 3), Event::data);
  EXPECT_EQ(payload, "abc");
  EXPECT_EQ(parser.parse(input, payload, 0), Event::none);
  EXPECT_EQ(parser.parse(input, payload, 4), Event::data);
  EXPECT_EQ(parser.parse(input, payload, 4), Event::message_end);
  EXPECT_EQ(payload, "abcdefgh");
}

TEST(FrameParser, reports_data_before_the_control_frame_that_follows) {
  const FrameLimits limits;
  http::detail::ws::FrameParser parser(Role::client, limits);
  Buffer input(frames_for(Role::client, {{first_text, "a"}, {ping, "p"}, {last, "b"}}));
  Buffer payload;
  using Event = http::detail::ws::FrameParser::Event;
  EXPECT_EQ(parser.parse(input, payload), Event::data);
  EXPECT_EQ(payload, "a");
  EXPECT_EQ(parser.parse(input, payload), Event::ping);
  EXPECT_EQ(payload, "a");
  EXPECT_EQ(parser.parse(input, payload), Event::message_end);
  EXPECT_EQ(payload, "ab");
}

TEST(FrameParser, an_error_is_final) {
  const FrameLimits limits;
  http::detail::ws::FrameParser parser(Role::client, limits);
  Buffer input("\xFF");
  Buffer payload;
  EXPECT_EQ(parser.parse(input, payload).error(), WebSocketError::reserved_opcode);
  input = Buffer(test::frame_for(Role::client, text, "a"));
  EXPECT_EQ(parser.parse(input, payload).error(), WebSocketError::reserved_opcode);
}

TEST(FrameParser, does_not_copy_the_payload_of_a_large_frame) {
  const FrameLimits limits;
  http::detail::ws::FrameParser parser(Role::server, limits);
  Buffer input(test::frame_for(Role::server, text, std::string(50000, 'x')));
  const std::byte* const before = input.front().data();
  Buffer payload;
  EXPECT_EQ(parser.parse(input, payload), http::detail::ws::FrameParser::Event::message_end);
  EXPECT_EQ(payload, std::string(50000, 'x'));
  EXPECT_EQ(payload.front().data(), before + 8);
}

}  // namespace
}  // namespace tambour::frame_parser_test
