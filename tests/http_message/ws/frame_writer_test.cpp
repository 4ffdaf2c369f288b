// Frames that are sent, byte by byte and read again by the parser.
#include "http_message/ws/frame_writer.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "http_message/ws/frames.h"

namespace tambour::frame_writer_test {
namespace {

using http::CloseCode;
using http::WebSocketError;
using http::detail::ws::FrameWriter;
using http::detail::ws::MessageOptions;
using http::detail::ws::Opcode;
using http::detail::ws::Role;
using namespace std::string_literals;

/// Not random, so that the tests know it.
void fill(std::span<std::byte> bytes) {
  static unsigned next = 0;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(++next * 37);
}

constexpr MessageOptions text{.opcode = Opcode::text};

std::string written(std::string_view payload, const MessageOptions& options = text) {
  Buffer buffer;
  FrameWriter(Role::server).append_message(buffer, Buffer(payload), options);
  return buffer.to_string();
}

/// The events that the peer finds.
std::vector<std::string> received(Role sender, std::string_view bytes) {
  test::FrameReader reader(sender == Role::client ? Role::server : Role::client, {}, true);
  reader.add(bytes);
  test::Received result = reader.finish();
  EXPECT_EQ(result.error, Error()) << result.error.message();
  EXPECT_EQ(result.incomplete, "");
  return result.events;
}

TEST(FrameWriter, writes_sizes_in_the_fewest_bytes) {
  EXPECT_EQ(written("Hello"), "\x81\x05Hello");
  EXPECT_EQ(written(""), "\x81\0"s);
  const std::pair<std::size_t, std::string> headers[] = {{125, "\x82\x7D"},
                                                         {126, "\x82\x7E\0\x7E"s},
                                                         {65535, "\x82\x7E\xFF\xFF"},
                                                         {65536, "\x82\x7F\0\0\0\0\0\1\0\0"s}};
  for (const auto& [size, header] : headers)
    EXPECT_EQ(written(std::string(size, 'x'), {}), header + std::string(size, 'x'));
}

TEST(FrameWriter, writes_what_the_peer_reads) {
  for (const Role role : {Role::server, Role::client}) {
    FrameWriter writer(role, fill);
    for (const std::size_t size : {0, 1, 125, 126, 1024, 1025, 5000, 65535, 65536, 300000}) {
      for (const std::size_t fragment_bytes : {0, 1, 100, 4096, 100000}) {
        if (fragment_bytes > 0 && size / fragment_bytes > 1000) continue;
        std::string payload(size, 'a');
        for (std::size_t i = 0; i < size; i += 97) payload[i] = static_cast<char>('a' + i % 26);
        Buffer buffer;
        writer.append_message(buffer, Buffer(payload),
                              {.opcode = Opcode::text, .fragment_bytes_max = fragment_bytes});
        EXPECT_EQ(received(role, buffer.to_string()), std::vector{"text " + payload})
            << size << " in fragments of " << fragment_bytes;
      }
    }
  }
}

TEST(FrameWriter, divides_messages_into_fragments) {
  EXPECT_EQ(written("abcde", {.opcode = Opcode::text, .fragment_bytes_max = 2}),
            "\x01\x02"s + "ab" + "\0\x02"s + "cd" + "\x80\x01"s + "e");
  EXPECT_EQ(written("ab", {.opcode = Opcode::text, .fragment_bytes_max = 2}), "\x81\x02"s + "ab");
  EXPECT_EQ(written("abc", {.is_compressed = true, .fragment_bytes_max = 2}),
            "\x42\x02"s + "ab" + "\x80\x01"s + "c");
}

TEST(FrameWriter, streams_messages_with_control_frames_between_parts) {
  FrameWriter writer(Role::server);
  Buffer buffer;
  writer.append_part(buffer, Buffer("a"), false, {.opcode = Opcode::text, .is_compressed = true});
  EXPECT_TRUE(writer.is_within_message());
  EXPECT_TRUE(writer.append_ping(buffer, "p"));
  writer.append_part(buffer, Buffer("b"), false, {});
  writer.append_part(buffer, Buffer(), true, {});
  EXPECT_FALSE(writer.is_within_message());
  EXPECT_EQ(buffer.to_string(), "\x41\x01"s + "a" + "\x89\x01p" + "\0\x01"s + "b" + "\x80\0"s);
  EXPECT_DEATH(
      {
        writer.append_part(buffer, Buffer("a"), false, {});
        writer.append_message(buffer, Buffer("b"), {});
      },
      "within a streamed message");
  EXPECT_DEATH(static_cast<void>(FrameWriter(Role::client)), "without a source of random bytes");
}

TEST(FrameWriter, masks_each_frame_of_a_client_with_another_key) {
  FrameWriter writer(Role::client, fill);
  Buffer buffer;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(writer.append_ping(buffer, "same"));
  const std::string bytes = buffer.to_string();
  ASSERT_EQ(bytes.size(), 20U);
  EXPECT_NE(bytes.substr(2, 4), bytes.substr(12, 4));
  EXPECT_NE(bytes.substr(6, 4), "same");
  EXPECT_NE(bytes.substr(6, 4), bytes.substr(16, 4));
  EXPECT_EQ(received(Role::client, bytes), (std::vector{"ping same"s, "ping same"s}));
}

TEST(FrameWriter, copies_only_what_others_share) {
  const std::string payload(20000, 'x');
  Buffer first(payload);
  const std::byte* const memory = first.front().data();
  Buffer buffer;
  FrameWriter(Role::server).append_message(buffer, first.slice(), {});
  buffer.consume(4);
  EXPECT_EQ(buffer.front().data(), memory);
  buffer.clear();

  FrameWriter client(Role::client, fill);
  client.append_message(buffer, first.slice(), {});
  EXPECT_EQ(first, payload);  // Another buffer has the bytes.
  EXPECT_EQ(received(Role::client, buffer.to_string()), std::vector{"binary " + payload});
  buffer.clear();
  client.append_message(buffer, std::move(first), {});
  buffer.consume(8);
  EXPECT_EQ(buffer.front().data(), memory);
}

TEST(FrameWriter, writes_close_frames) {
  const auto closed = [](CloseCode code, std::string_view reason) {
    Buffer buffer;
    EXPECT_TRUE(FrameWriter(Role::server).append_close(buffer, code, reason));
    return buffer.to_string();
  };
  EXPECT_EQ(closed(CloseCode::no_status, ""), "\x88\0"s);
  EXPECT_EQ(closed(CloseCode::normal, ""), "\x88\x02\x03\xE8");
  EXPECT_EQ(closed(static_cast<CloseCode>(4999), "bye"),
            "\x88\x05\x13\x87"
            "bye");
  EXPECT_EQ(closed(CloseCode::going_away, std::string(123, 'x')).size(), 127U);
}

TEST(FrameWriter, rejects_bad_control_frames) {
  FrameWriter writer(Role::server);
  Buffer buffer;
  const auto error_of = [](const Result<>& result) { return result ? Error() : result.error(); };
  const std::string long_text(126, 'x');
  EXPECT_EQ(error_of(writer.append_ping(buffer, long_text)),
            WebSocketError::control_frame_too_large);
  EXPECT_EQ(error_of(writer.append_pong(buffer, long_text)),
            WebSocketError::control_frame_too_large);
  EXPECT_EQ(error_of(writer.append_close(buffer, CloseCode::normal, long_text.substr(2))),
            WebSocketError::control_frame_too_large);
  EXPECT_EQ(error_of(writer.append_close(buffer, CloseCode::abnormal)),
            WebSocketError::bad_close_code);
  EXPECT_EQ(error_of(writer.append_close(buffer, CloseCode::no_status, "reason")),
            WebSocketError::bad_close_code);
  EXPECT_EQ(error_of(writer.append_close(buffer, CloseCode::normal, "\xFF")),
            WebSocketError::invalid_utf8);
  EXPECT_TRUE(buffer.empty());
}

}  // namespace
}  // namespace tambour::frame_writer_test
