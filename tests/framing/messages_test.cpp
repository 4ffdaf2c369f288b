// Awaiting messages, on every backend.
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/codec.h>
#include <tambour/net/tcp.h>
#include <tambour/task/combinators.h>

#include "support/on_every_backend.h"
#include "support/scale.h"
#include "support/streams.h"

namespace tambour::messages_test {
namespace {

using namespace std::chrono_literals;

class Messages : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    OnEveryBackend::SetUp();
    if (IsSkipped()) return;
    test::StreamEnds ends = test::open_stream_ends(loop());
    near = std::move(ends.near);
    far = std::move(ends.far);
  }
  void TearDown() override {
    near.close();
    far.close();
    OnEveryBackend::TearDown();
  }
  void far_sends(std::string_view text) {
    ASSERT_EQ(::send(far.fd(), text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
  }

  Stream near, far;
  Buffer buffer;
};

/// Reads lines until an error occurs, and appends the error.
Task<> note_lines(Stream& stream, Buffer& buffer, std::vector<std::string>& notes) {
  for (;;) {
    auto line = co_await read_line(stream, buffer, {.bytes_max = 20});
    notes.push_back(line ? line->to_string() : line.error().message());
    if (!line) co_return;
  }
}

TAMBOUR_ON_EVERY_BACKEND(Messages);

TEST_P(Messages, are_returned_when_they_are_complete) {
  std::vector<std::string> notes;
  TaskScope scope(loop());
  scope.spawn(note_lines(near, buffer, notes));
  run_iterations();
  // While it waits, it holds no memory.
  EXPECT_TRUE(buffer.empty());
  for (const char byte : std::string("one\r\n\nthree\n")) {
    far_sends({&byte, 1});
    run_iterations();
  }
  EXPECT_EQ(notes, (std::vector<std::string>{"one", "", "three"}));
  far_sends("four\nfi");
  far_sends("ve\n");
  EXPECT_TRUE(run_until([&] { return notes.size() == 5; }));
  EXPECT_EQ(notes.back(), "five");
}

TEST_P(Messages, eof_between_messages_differs_from_eof_within_a_message) {
  std::vector<std::string> notes;
  far_sends("one\n");
  ASSERT_EQ(::shutdown(far.fd(), SHUT_WR), 0);
  run(note_lines(near, buffer, notes));
  EXPECT_EQ(notes, (std::vector<std::string>{"one", "End of stream"}));
  notes.clear();
  buffer.append("two\nthr");
  run(note_lines(near, buffer, notes));
  EXPECT_EQ(notes, (std::vector<std::string>{"two", "End of stream within a message"}));
  EXPECT_EQ(buffer, "thr");
}

TEST_P(Messages, that_are_too_long_are_rejected_before_they_are_read) {
  std::vector<std::string> notes;
  far_sends("short\n" + std::string(1000, 'x'));
  run(note_lines(near, buffer, notes));
  EXPECT_EQ(notes, (std::vector<std::string>{"short", system_error(EMSGSIZE).message()}));
}

TEST_P(Messages, of_any_size_arrive_unchanged) {
  std::vector<std::string> sent;
  for (const std::size_t size : {0UL, 1UL, 4096UL, 65536UL, test::scaled(3'000'000), 5UL})
    sent.emplace_back(size, char('a' + sent.size()));
  TaskScope scope(loop());
  scope.spawn([](Stream& stream, const std::vector<std::string>& texts) -> Task<> {
    Buffer out;
    for (const std::string& text : texts) EXPECT_TRUE(append_message(out, text));
    EXPECT_TRUE(co_await stream.write(out));
    EXPECT_TRUE(co_await stream.shutdown_write());
  }(far, sent));
  run([](Stream& stream, Buffer& in, const std::vector<std::string>& texts) -> Task<> {
    for (const std::string& text : texts) {
      auto message = co_await read_message(stream, in);
      EXPECT_TRUE(message);
      if (!message) co_return;
      EXPECT_TRUE(*message == text) << message->size() << " of " << text.size();
    }
    EXPECT_EQ((co_await read_message(stream, in)).error(), StreamError::eof);
  }(near, buffer, sent));
}

TEST_P(Messages, of_a_fixed_size_leave_the_following_bytes) {
  far_sends("headbody");
  ASSERT_EQ(::shutdown(far.fd(), SHUT_WR), 0);
  run([](Stream& stream, Buffer& in) -> Task<> {
    auto nothing = co_await read_exactly(stream, in, 0);
    EXPECT_TRUE(nothing && nothing->empty());
    auto head = co_await read_exactly(stream, in, 4);
    EXPECT_TRUE(head && *head == "head");
    EXPECT_EQ(in, "body");
    EXPECT_EQ((co_await read_exactly(stream, in, 5)).error(), StreamError::truncated);
    auto body = co_await read_exactly(stream, in, 4);
    EXPECT_TRUE(body && *body == "body");
    EXPECT_EQ((co_await read_exactly(stream, in, 1)).error(), StreamError::eof);
  }(near, buffer));
}

TEST_P(Messages, a_time_limit_loses_nothing) {
  far_sends("on");
  run([](Stream& stream, Buffer& in) -> Task<> {
    auto late = co_await timeout(5ms, read_line(stream, in));
    EXPECT_EQ(late.error(), system_error(ETIMEDOUT));
  }(near, buffer));
  EXPECT_EQ(buffer, "on");
  far_sends("e\n");
  run([](Stream& stream, Buffer& in) -> Task<> {
    auto line = co_await timeout(1h, read_line(stream, in));
    EXPECT_TRUE(line && *line == "one");
  }(near, buffer));
  EXPECT_TRUE(buffer.empty());
}

TEST_P(Messages, a_closed_stream_returns_buffered_messages_and_then_its_error) {
  buffer.append("one\ntwo");
  near.close();
  run([](Stream& stream, Buffer& in) -> Task<> {
    auto line = co_await read_line(stream, in);
    EXPECT_TRUE(line && *line == "one");
    EXPECT_EQ((co_await read_line(stream, in)).error(), system_error(EBADF));
  }(near, buffer));
}

TEST_P(Messages, are_decoded_in_callbacks_as_they_arrive) {
  std::vector<std::string> lines;
  Error error;
  Connection::start(std::move(near),
                    std::make_shared<const ConnectionCallbacks>(
                        ConnectionCallbacks{.on_message = [&](Connection& connection, Buffer& in) {
                          Result<std::optional<Buffer>> line;
                          while ((line = take_line(in, {.bytes_max = 5})) && *line)
                            lines.push_back((*line)->to_string());
                          if (line) return;
                          error = line.error();
                          connection.close();
                        }}));
  far_sends("one\ntw");
  run_iterations();
  far_sends("o\nfar too long");
  EXPECT_TRUE(run_until([&] { return bool(error); }));
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(error, system_error(EMSGSIZE));
  loop().run();
}

}  // namespace
}  // namespace tambour::messages_test
