// Frames of HTTP/2: each kind at every split point, and each rule that a frame can break.
#include "http_message/support/frames.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "http_message/h2/frame_parser.h"
#include "http_message/h2/frame_writer.h"

namespace tambour::frames_test {
namespace {

using http::detail::h2::ErrorCode;
using http::detail::h2::FrameLimits;
using http::detail::h2::FrameParser;
using http::detail::h2::Setting;
using http::detail::h2::SettingId;
using http::detail::h2::Violation;
using test::FramesVerdict;
using test::raw_frame;
using test::read_frames;
using Role = FrameParser::Role;

const std::string preface(http::detail::h2::client_preface);
const std::string no_settings = raw_frame(4, 0, 0, "");
constexpr std::string_view five_bytes("\0\0\0\5\7", 5);

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

/// The verdict on what follows the preface and SETTINGS of a client, in every division in two, and
/// byte by byte.
FramesVerdict read_in_every_way(const std::string& frames, Role role = Role::server,
                                const FrameLimits& limits = {}) {
  const std::string text = (role == Role::server ? preface : "") + no_settings + frames;
  const FramesVerdict whole = read_frames(text, role, {}, false, limits);
  for (std::size_t end = 1; end < text.size(); ++end) {
    EXPECT_EQ(read_frames(text, role, {end}, false, limits), whole) << end;
    EXPECT_EQ(read_frames(text, role, {end}, true, limits), whole) << end;
  }
  std::vector<std::size_t> ends;
  for (std::size_t end = 1; end < text.size(); ++end) ends.push_back(end);
  EXPECT_EQ(read_frames(text, role, ends, false, limits), whole);
  EXPECT_EQ(read_frames(text, role, ends, true, limits), whole);
  return whole;
}

std::vector<std::string> frames_of(const std::string& frames, Role role = Role::server) {
  FramesVerdict verdict = read_in_every_way(frames, role);
  EXPECT_EQ(verdict.error, "");
  EXPECT_TRUE(verdict.is_between_frames);
  verdict.frames.erase(verdict.frames.begin());
  return verdict.frames;
}

void expect_violation(const std::string& frames, Violation violation, Role role = Role::server,
                      const FrameLimits& limits = {}) {
  EXPECT_EQ(read_in_every_way(frames, role, limits).error, text_of(violation));
}

using Frames = std::vector<std::string>;

TEST(FrameParser, reads_data_at_every_split) {
  EXPECT_EQ(
      frames_of(raw_frame(0, 0, 1, "hello") + raw_frame(0, 1, 1, "") + raw_frame(0, 1, 3, "end")),
      (Frames{"data 1 5 hello complete", "data 1 0  end complete", "data 3 3 end end complete"}));
  EXPECT_EQ(
      frames_of(raw_frame(0, 8, 1, bytes({3}) + "abcXYZ") + raw_frame(0, 9, 1, bytes({0}) + "de") +
                raw_frame(0, 9, 1, bytes({2, 0, 0}))),
      (Frames{"data 1 7 abc complete", "data 1 3 de end complete", "data 1 3  end complete"}));
}

TEST(FrameParser, reads_field_blocks_at_every_split) {
  // The bits of unknown flags and the reserved bit of the stream are ignored.
  EXPECT_EQ(frames_of(raw_frame(1, 0x4 | 0x1, 0x80000001, "block") + raw_frame(1, 0xD6, 3, "") +
                      raw_frame(1, 0x2C, 5, bytes({2}) + std::string(five_bytes) + "bl\1\2")),
            (Frames{"headers 1 end block", "headers 3 ", "headers 5 bl"}));
  EXPECT_EQ(frames_of(raw_frame(1, 1, 1, "a") + raw_frame(9, 0, 1, "") + raw_frame(9, 0, 1, "b") +
                      raw_frame(9, 4, 1, "c") + raw_frame(1, 8, 3, bytes({1}) + "dX") +
                      raw_frame(9, 4, 3, "e") + raw_frame(1, 4, 5, "f")),
            (Frames{"headers 1 end abc", "headers 3 de", "headers 5 f"}));
}

TEST(FrameParser, reads_frames_of_the_connection_at_every_split) {
  EXPECT_EQ(
      frames_of(raw_frame(4, 0, 0, bytes({0, 1, 0, 0, 16, 0, 0, 99, 0, 0, 0, 7})) +
                raw_frame(4, 1, 0, "") + raw_frame(6, 0, 0, "12345678") +
                raw_frame(6, 1, 0, "abcdefgh") +
                raw_frame(7, 0, 0, bytes({128, 0, 0, 9, 0, 0, 0, 11}) + "debug") +
                raw_frame(7, 0, 0, bytes({0, 0, 0, 9, 0, 0, 0, 0})) +
                raw_frame(8, 0, 0, bytes({128, 0, 0, 1}))),
      (Frames{"settings 0 1=4096 99=7", "settings 0 ack", "ping 0 12345678", "ping 0 ack abcdefgh",
              "goaway 0 9 11 debug", "goaway 0 9 0 ", "window_update 0 1"}));
}

TEST(FrameParser, reads_frames_of_streams_at_every_split) {
  EXPECT_EQ(frames_of(raw_frame(8, 0, 7, bytes({127, 255, 255, 255})) +
                      raw_frame(3, 0, 7, bytes({0, 0, 1, 0})) + raw_frame(2, 0, 9, five_bytes) +
                      raw_frame(16, 0, 0, bytes({0, 0, 0, 7}) + "u=1, i") +
                      raw_frame(200, 255, 0, "anything") + raw_frame(11, 0, 5, "")),
            (Frames{"window_update 7 2147483647", "rst_stream 7 256", "priority 9 5",
                    "priority_update 0 7 u=1, i", "unknown 0 8", "unknown 5 0"}));
}

TEST(FrameParser, goes_on_after_errors_of_streams) {
  EXPECT_EQ(frames_of(raw_frame(8, 0, 7, bytes({0, 0, 0, 0})) + raw_frame(2, 0, 5, "four") +
                      raw_frame(6, 0, 0, "12345678")),
            (Frames{"stream_error 7 WINDOW_UPDATE has an increment of 0",
                    "stream_error 5 PRIORITY does not have 5 bytes", "ping 0 12345678"}));
}

TEST(FrameParser, expects_the_preface_and_settings) {
  EXPECT_EQ(read_frames("GET / HTTP/1.1\r\n", Role::server).error, text_of(Violation::bad_preface));
  EXPECT_EQ(read_frames("PRJ", Role::server).error, text_of(Violation::bad_preface));
  EXPECT_EQ(read_frames("PRI * HTTP/2.0\r\n", Role::server).error, "");
  EXPECT_EQ(read_frames(preface + raw_frame(6, 0, 0, "12345678"), Role::server).error,
            text_of(Violation::no_settings));
  EXPECT_EQ(read_frames(preface + raw_frame(4, 1, 0, ""), Role::server).error,
            text_of(Violation::no_settings));
  EXPECT_EQ(read_frames(raw_frame(4, 1, 0, ""), Role::client).error,
            text_of(Violation::no_settings));
  EXPECT_EQ(read_frames(no_settings, Role::client).frames, (Frames{"settings 0"}));
}

TEST(FrameParser, rejects_bad_sizes) {
  expect_violation(raw_frame(0, 8, 1, ""), Violation::frame_too_short);
  expect_violation(raw_frame(1, 12, 1, ""), Violation::frame_too_short);
  expect_violation(raw_frame(1, 0x24, 1, "four"), Violation::frame_too_short);
  expect_violation(raw_frame(3, 0, 1, "12345"), Violation::bad_rst_stream_size);
  expect_violation(raw_frame(4, 0, 0, "1234567"), Violation::bad_settings_size);
  expect_violation(raw_frame(4, 1, 0, "123456"), Violation::settings_ack_with_payload);
  expect_violation(raw_frame(6, 0, 0, "1234567"), Violation::bad_ping_size);
  expect_violation(raw_frame(7, 0, 0, "1234567"), Violation::frame_too_short);
  expect_violation(raw_frame(8, 0, 0, "12345"), Violation::bad_window_update_size);
  expect_violation(raw_frame(16, 0, 0, "123"), Violation::frame_too_short);
}

TEST(FrameParser, rejects_bad_padding) {
  expect_violation(raw_frame(0, 8, 1, bytes({3}) + "ab"), Violation::bad_padding);
  expect_violation(raw_frame(0, 8, 1, bytes({1})), Violation::bad_padding);
  expect_violation(raw_frame(1, 12, 1, bytes({3}) + "ab"), Violation::bad_padding);
  expect_violation(raw_frame(1, 0x2C, 1, bytes({1}) + std::string(five_bytes)),
                   Violation::bad_padding);
}

TEST(FrameParser, rejects_bad_streams) {
  expect_violation(raw_frame(0, 0, 0, "a"), Violation::frame_on_connection);
  expect_violation(raw_frame(1, 4, 0, "a"), Violation::frame_on_connection);
  expect_violation(raw_frame(2, 0, 0, five_bytes), Violation::frame_on_connection);
  expect_violation(raw_frame(3, 0, 0, "1234"), Violation::frame_on_connection);
  expect_violation(raw_frame(4, 0, 1, ""), Violation::frame_on_stream);
  expect_violation(raw_frame(6, 0, 1, "12345678"), Violation::frame_on_stream);
  expect_violation(raw_frame(7, 0, 1, "12345678"), Violation::frame_on_stream);
  expect_violation(raw_frame(16, 0, 1, "12345678"), Violation::frame_on_stream);
  expect_violation(raw_frame(16, 0, 0, bytes({128, 0, 0, 0})), Violation::bad_prioritized_stream);
  expect_violation(raw_frame(16, 0, 0, "12345678"), Violation::priority_update_from_server,
                   Role::client);
  expect_violation(raw_frame(8, 0, 0, bytes({0, 0, 0, 0})), Violation::zero_window_increment);
  expect_violation(raw_frame(5, 4, 1, "1234"), Violation::unexpected_push_promise);
  expect_violation(raw_frame(5, 4, 1, "1234"), Violation::unexpected_push_promise, Role::client);
}

TEST(FrameParser, rejects_field_blocks_that_are_interrupted) {
  const std::string begin = raw_frame(1, 0, 1, "a");
  expect_violation(raw_frame(9, 4, 1, "a"), Violation::unexpected_continuation);
  expect_violation(begin + raw_frame(9, 4, 3, "a"), Violation::interrupted_field_block);
  expect_violation(begin + raw_frame(0, 0, 1, "a"), Violation::interrupted_field_block);
  expect_violation(begin + raw_frame(77, 0, 1, "a"), Violation::interrupted_field_block);
  expect_violation(begin + raw_frame(1, 4, 1, "a"), Violation::interrupted_field_block);
  expect_violation(begin + raw_frame(9, 4, 1, "") + raw_frame(9, 4, 1, ""),
                   Violation::unexpected_continuation);
  EXPECT_FALSE(read_in_every_way(begin).is_between_frames);
}

TEST(FrameParser, limits_field_blocks) {
  std::string block = raw_frame(1, 0, 1, "a");
  for (int i = 0; i < 8; ++i) block += raw_frame(9, 0, 1, "");
  expect_violation(block + raw_frame(9, 4, 1, ""), Violation::too_many_continuations);
  EXPECT_EQ(code_of(Violation::too_many_continuations), ErrorCode::enhance_your_calm);
  const FrameLimits limits = {.field_block_bytes_max = 10};
  EXPECT_EQ(read_in_every_way(raw_frame(1, 0, 1, "12345") + raw_frame(9, 4, 1, "67890"),
                              Role::server, limits)
                .frames.back(),
            "headers 1 1234567890");
  expect_violation(raw_frame(1, 0, 1, "12345") + raw_frame(9, 4, 1, "678901"),
                   Violation::field_block_too_large, Role::server, limits);
  expect_violation(raw_frame(1, 4, 1, "12345678901"), Violation::field_block_too_large,
                   Role::server, limits);
}

TEST(FrameParser, limits_frames) {
  const FrameLimits limits = {.frame_size_max = 20, .control_frame_size_max = 12};
  expect_violation(raw_frame(0, 0, 1, std::string(21, 'a')), Violation::frame_too_large,
                   Role::server, limits);
  expect_violation(raw_frame(99, 0, 1, std::string(21, 'a')), Violation::frame_too_large,
                   Role::server, limits);
  expect_violation(raw_frame(7, 0, 0, std::string(13, 'a')), Violation::control_frame_too_large,
                   Role::server, limits);
  FrameParser parser(Role::client);
  Buffer input(no_settings + raw_frame(0, 0, 1, std::string(20'000, 'a')));
  http::detail::h2::Frame frame;
  ASSERT_TRUE(*parser.next(input, frame));
  parser.set_frame_size_max(20'000);
  ASSERT_TRUE(parser.next(input, frame));
  EXPECT_EQ(frame.data.size(), 20'000U);
}

TEST(FrameParser, rejects_bad_settings) {
  const auto setting = [](int id, std::initializer_list<int> value) {
    return raw_frame(4, 0, 0, bytes({0, id}) + bytes(value));
  };
  expect_violation(setting(2, {0, 0, 0, 2}), Violation::bad_enable_push);
  expect_violation(setting(2, {0, 0, 0, 1}), Violation::bad_enable_push, Role::client);
  expect_violation(setting(4, {128, 0, 0, 0}), Violation::bad_initial_window_size);
  EXPECT_EQ(code_of(Violation::bad_initial_window_size), ErrorCode::flow_control_error);
  expect_violation(setting(5, {0, 0, 63, 255}), Violation::bad_frame_size_max);
  expect_violation(setting(5, {1, 0, 0, 0}), Violation::bad_frame_size_max);
  expect_violation(setting(8, {0, 0, 0, 2}), Violation::bad_enable_connect_protocol);
  expect_violation(setting(9, {0, 0, 0, 2}), Violation::bad_no_rfc7540_priorities);
  EXPECT_EQ(frames_of(setting(2, {0, 0, 0, 1}) + setting(4, {127, 255, 255, 255}) +
                      setting(5, {0, 255, 255, 255}) + setting(5, {0, 0, 64, 0}) +
                      setting(8, {0, 0, 0, 1}) + setting(9, {0, 0, 0, 0}))
                .size(),
            6U);
}

TEST(FrameParser, fails_again_with_the_same_error) {
  FrameParser parser(Role::server);
  Buffer input("x");
  http::detail::h2::Frame frame;
  EXPECT_EQ(parser.next(input, frame).error(), Violation::bad_preface);
  input.append(preface);
  EXPECT_EQ(parser.next(input, frame).error(), Violation::bad_preface);
}

TEST(FrameParser, moves_data_without_copying) {
  FrameParser parser(Role::client);
  auto body = std::make_shared<std::string>(10'000, 'b');
  Buffer input(no_settings + raw_frame(0, 0, 1, std::string(10'000, 'b')).substr(0, 9));
  input.append_shared(std::as_bytes(std::span(*body)), body);
  http::detail::h2::Frame frame;
  ASSERT_TRUE(*parser.next(input, frame));
  ASSERT_TRUE(*parser.next(input, frame));
  EXPECT_EQ(static_cast<const void*>(frame.data.front().data()), body->data());
}

TEST(FrameWriter, writes_what_the_parser_reads) {
  Buffer to;
  const std::array<Setting, 2> settings = {Setting{SettingId::max_concurrent_streams, 100},
                                           Setting{SettingId::initial_window_size, 65536}};
  http::detail::h2::append_settings(to, settings);
  http::detail::h2::append_settings_ack(to);
  http::detail::h2::append_data(to, 3, Buffer("hello"), false);
  http::detail::h2::append_data(to, 3, Buffer(), true);
  http::detail::h2::append_data_head(to, 5, 3, true);
  to.append("abc");
  http::detail::h2::append_rst_stream(to, 7, ErrorCode::cancel);
  http::detail::h2::append_ping(to, "12345678", false);
  http::detail::h2::append_ping(to, "12345678", true);
  http::detail::h2::append_goaway(to, 9, ErrorCode::enhance_your_calm, "too much");
  http::detail::h2::append_window_update(to, 0, 70'000);
  http::detail::h2::append_priority_update(to, 11, "u=0");
  EXPECT_EQ(read_frames(preface + to.to_string(), Role::server).frames,
            (Frames{"settings 0 3=100 4=65536", "settings 0 ack", "data 3 5 hello complete",
                    "data 3 0  end complete", "data 5 3 abc end complete", "rst_stream 7 8",
                    "ping 0 12345678", "ping 0 ack 12345678", "goaway 0 9 11 too much",
                    "window_update 0 70000", "priority_update 0 11 u=0"}));
}

TEST(Violations, have_texts_and_codes) {
  EXPECT_EQ(name_of(ErrorCode::enhance_your_calm), "ENHANCE_YOUR_CALM");
  EXPECT_EQ(name_of(ErrorCode(77)), "");
  const Error error = Violation::bad_index;
  EXPECT_STREQ(error.category().name(), "tambour.http2");
  EXPECT_EQ(error.message(), text_of(Violation::bad_index));
  EXPECT_EQ(Error(0, http::detail::h2::violation_category()).message(), "Unknown error of HTTP/2");
  for (int i = 0; i <= static_cast<int>(Violation::body_shorter_than_content_length); ++i) {
    EXPECT_FALSE(text_of(Violation(i)).empty());
    EXPECT_FALSE(text_of(Violation(i)).ends_with('.'));
    EXPECT_FALSE(name_of(code_of(Violation(i))).empty());
  }
}

}  // namespace
}  // namespace tambour::frames_test
