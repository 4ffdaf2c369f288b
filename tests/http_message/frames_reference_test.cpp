// Frames of libnghttp2: what its client sends is read, and what the library writes is accepted by
// its server.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "http_message/h2/frame_writer.h"
#include "http_message/h2/head_writer.h"
#include "http_message/h2/hpack_decoder.h"
#include "http_message/h2/message.h"
#include "http_message/support/frames.h"

#ifdef TAMBOUR_HAS_NGHTTP2
#include <nghttp2/nghttp2.h>

namespace tambour::frames_reference_test {
namespace {

using http::detail::h2::FrameKind;

std::string text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

/// A session of libnghttp2, and what it has received.
class Session {
 public:
  explicit Session(bool is_server) {
    nghttp2_session_callbacks* callbacks = nullptr;
    if (nghttp2_session_callbacks_new(&callbacks) != 0) std::abort();
    nghttp2_session_callbacks_set_on_frame_recv_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
          static_cast<Session*>(user)->received += std::to_string(frame->hd.type) + ' ';
          return 0;
        });
    nghttp2_session_callbacks_set_on_header_callback(
        callbacks,
        [](nghttp2_session*, const nghttp2_frame*, const std::uint8_t* name, std::size_t name_size,
           const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
          static_cast<Session*>(user)->received +=
              frames_reference_test::text_of(name, name_size) + '=' +
              frames_reference_test::text_of(value, value_size) + ' ';
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks, [](nghttp2_session*, std::uint8_t, std::int32_t, const std::uint8_t* data,
                      std::size_t size, void* user) {
          static_cast<Session*>(user)->received += frames_reference_test::text_of(data, size) + ' ';
          return 0;
        });
    const int count = is_server ? nghttp2_session_server_new(&session_, callbacks, this)
                                : nghttp2_session_client_new(&session_, callbacks, this);
    if (count != 0) std::abort();
    nghttp2_session_callbacks_del(callbacks);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { nghttp2_session_del(session_); }

  [[nodiscard]] nghttp2_session* get() const { return session_; }
  std::string send() {
    std::string sent;
    const std::uint8_t* bytes = nullptr;
    while (true) {
      const auto size = nghttp2_session_mem_send(session_, &bytes);
      if (size <= 0) return sent;
      sent += frames_reference_test::text_of(bytes, static_cast<std::size_t>(size));
    }
  }
  /// Returns false if the session refuses the bytes.
  bool receive(const std::string& bytes) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
    return nghttp2_session_mem_recv(session_, begin, bytes.size()) ==
           static_cast<ssize_t>(bytes.size());
  }

  std::string received;

 private:
  nghttp2_session* session_ = nullptr;
};

nghttp2_nv field(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

ssize_t read_body(nghttp2_session*, std::int32_t, std::uint8_t* to, std::size_t,
                  std::uint32_t* flags, nghttp2_data_source*, void*) {
  std::string_view("hello").copy(reinterpret_cast<char*>(to), 5);
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  return 5;
}

TEST(FramesReference, frames_of_libnghttp2_are_read) {
  Session client(false);
  const std::array<nghttp2_settings_entry, 2> settings = {
      {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20}}};
  nghttp2_submit_settings(client.get(), 0, settings.data(), settings.size());
  std::string large(20'000, '!');
  const std::vector<nghttp2_nv> fields = {
      field(":method", "POST"), field(":scheme", "https"), field(":authority", "a.example"),
      field(":path", "/p"),     field("cookie", "a=1"),    field("cookie", "b=2"),
      field("x-large", large)};
  nghttp2_data_provider body{};
  body.read_callback = read_body;
  nghttp2_priority_spec priority;
  nghttp2_priority_spec_init(&priority, 0, 16, 1);
  nghttp2_submit_request(client.get(), &priority, fields.data(), fields.size(), &body, nullptr);
  nghttp2_submit_ping(client.get(), 0, nullptr);
  nghttp2_submit_window_update(client.get(), 0, 0, 1000);
  nghttp2_submit_rst_stream(client.get(), 0, 1, NGHTTP2_CANCEL);
  nghttp2_submit_goaway(client.get(), 0, 0, NGHTTP2_NO_ERROR, nullptr, 0);
  Buffer input(client.send());
  http::detail::h2::FrameParser parser(http::detail::h2::FrameParser::Role::server);
  http::detail::h2::HpackDecoder decoder;
  const http::detail::h2::FieldLimits limits;
  http::detail::h2::Frame frame;
  std::vector<FrameKind> kinds;
  while (true) {
    const auto parsed = parser.next(input, frame);
    ASSERT_TRUE(parsed) << text_of(parsed.error());
    if (!*parsed) break;
    kinds.push_back(frame.kind);
    if (frame.kind != FrameKind::headers) continue;
    http::detail::h2::FieldSection section(limits);
    ASSERT_TRUE(decoder.decode(frame.text, section));
    http::RequestHead head;
    std::string protocol;
    ASSERT_TRUE(make_request(section, {}, head, protocol));
    EXPECT_EQ(head.fields.get("cookie"), "a=1; b=2");
    EXPECT_EQ(head.fields.get("x-large"), large);
  }
  EXPECT_TRUE(parser.is_between_frames(input));
  EXPECT_NE(std::ranges::find(kinds, FrameKind::settings), kinds.end());
  EXPECT_NE(std::ranges::find(kinds, FrameKind::ping), kinds.end());
  EXPECT_NE(std::ranges::find(kinds, FrameKind::goaway), kinds.end());
}

TEST(FramesReference, libnghttp2_accepts_what_the_library_writes) {
  http::detail::h2::HpackEncoder encoder;
  Buffer to{std::string(http::detail::h2::client_preface)};
  http::detail::h2::append_settings(to, {});
  http::RequestHead head;
  head.method = http::Method::post;
  head.target = "/p";
  head.authority = "a.example";
  ASSERT_TRUE(head.fields.add("X-Large", std::string(20'000, '!')));
  ASSERT_TRUE(append_head(to, encoder, head, {.stream_id = 1}));
  http::detail::h2::append_data(to, 1, Buffer("hello"), false);
  http::Fields trailers;
  ASSERT_TRUE(trailers.add("checksum", "1"));
  ASSERT_TRUE(append_trailers(to, encoder, trailers, {.stream_id = 1}));
  http::detail::h2::append_ping(to, "12345678", false);
  http::detail::h2::append_window_update(to, 0, 1000);
  ASSERT_TRUE(append_head(to, encoder, head, {.stream_id = 3}));
  http::detail::h2::append_rst_stream(to, 3, http::detail::h2::ErrorCode::cancel);
  http::detail::h2::append_goaway(to, 0, http::detail::h2::ErrorCode::no_error, "bye");
  Session server(true);
  nghttp2_submit_settings(server.get(), 0, nullptr, 0);
  EXPECT_TRUE(server.receive(to.to_string()));
  const std::string fields = ":method=POST :scheme=https :authority=a.example :path=/p x-large=" +
                             std::string(20'000, '!') + ' ';
  EXPECT_EQ(server.received, "4 " + fields + "1 hello 0 checksum=1 1 6 8 " + fields + "1 3 7 ");
}

}  // namespace
}  // namespace tambour::frames_reference_test

#else

TEST(FramesReference, frames_of_libnghttp2_are_read) { GTEST_SKIP() << "built without libnghttp2"; }

#endif
