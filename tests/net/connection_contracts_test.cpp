// Misuse of connections and buffers aborts with a message that names the function, the values and
// the fix.
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/streams.h"

namespace tambour::connection_contracts_test {
namespace {

using namespace std::chrono_literals;

class ConnectionContracts : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  /// Expects an abort if `function` of a connection is called on another thread.
  void expect_check(const std::string& function, const std::function<void(Connection&)>& call) {
    EXPECT_DEATH(std::thread([&] { call(connection); }).join(),
                 "Connection::" + function + ": connection fd [0-9]+ .*thread [0-9]+.*post");
  }

  EventLoop loop;
  test::StreamEnds ends = test::open_stream_ends(loop);
  Connection& connection =
      Connection::start(std::move(ends.near), std::make_shared<const ConnectionCallbacks>());
};

TEST_F(ConnectionContracts, a_connection_is_used_on_the_thread_of_its_loop) {
  expect_check("send", [](Connection& other) { other.send("x"); });
  expect_check("send", [](Connection& other) { other.send(Buffer("x")); });
  expect_check("close", [](Connection& other) { other.close(); });
  expect_check("close_after_write", [](Connection& other) { other.close_after_write(); });
  expect_check("pause_reading", [](Connection& other) { other.pause_reading(); });
  expect_check("resume_reading", [](Connection& other) { other.resume_reading(); });
  expect_check("set_idle_timeout", [](Connection& other) { other.set_idle_timeout(1s); });
  expect_check("set_deadline", [](Connection& other) { other.set_deadline(1s); });
  expect_check("handle", [](Connection& other) { static_cast<void>(other.handle()); });
  expect_check("move_to", [](Connection& other) { other.move_to(other.loop()); });
}

TEST_F(ConnectionContracts, const_functions_are_called_on_the_thread_of_the_loop) {
  expect_check("unsent", [](Connection& other) { static_cast<void>(other.unsent()); });
  expect_check("is_open", [](Connection& other) { static_cast<void>(other.is_open()); });
  expect_check("context", [](Connection& other) { other.context() = 1; });
  expect_check("descriptor", [](Connection& other) { static_cast<void>(other.fd()); });
  expect_check("proxy_header", [](Connection& other) { static_cast<void>(other.proxy_header()); });
  expect_check("local_endpoint",
               [](Connection& other) { static_cast<void>(other.local_endpoint()); });
  expect_check("peer_endpoint",
               [](Connection& other) { static_cast<void>(other.peer_endpoint()); });
}

TEST_F(ConnectionContracts, a_stream_is_constructed_on_the_thread_of_its_loop) {
  EXPECT_DEATH(std::thread([this] { const SocketStream other(loop, ends.far.fd()); }).join(),
               "SocketStream::SocketStream.*thread [0-9]+.*post");
}

TEST_F(ConnectionContracts, a_connection_is_started_on_the_thread_of_its_loop) {
  const auto start = [this] {
    Connection::start(std::move(ends.far), std::make_shared<const ConnectionCallbacks>());
  };
  EXPECT_DEATH(std::thread(start).join(), "Connection::start.*thread [0-9]+.*post");
}

TEST_F(ConnectionContracts, another_thread_may_post_to_the_loop) {
  std::thread([this] { connection.loop().post([this] { connection.send("x"); }); }).join();
  loop.run_once();
  std::array<char, 2> got{};
  EXPECT_EQ(::recv(ends.far.fd(), got.data(), got.size(), 0), 1);
}

void read_twice_at_a_time(EventLoop& loop, Stream& stream) {
  TaskScope scope(loop);
  const auto read = [](Stream& from) -> Task<> {
    Buffer buffer;
    static_cast<void>(co_await from.read(buffer));
  };
  scope.spawn(read(stream));
  scope.spawn(read(stream));
}

TEST_F(ConnectionContracts, a_connection_has_callbacks) {
  EXPECT_DEATH(Connection::start(std::move(ends.far), nullptr),
               "Connection::start\\(\\) was called with null callbacks .* descriptor [0-9]+");
}

TEST_F(ConnectionContracts, a_default_constructed_stream_has_no_loop) {
  EXPECT_DEATH(Connection::start(TcpStream(), std::make_shared<const ConnectionCallbacks>()),
               "Connection::start\\(\\) was called with a default-constructed stream");
  EXPECT_DEATH(move_to(loop, UdpSocket(), [](const UdpSocket&) {}),
               "move_to\\(\\) .* with a default-constructed stream or socket");
}

TEST_F(ConnectionContracts, one_task_at_a_time_reads_a_stream) {
  EXPECT_DEATH(read_twice_at_a_time(loop, ends.far),
               "read of fd [0-9]+: another task is already waiting to read it");
}

using BufferContracts = ConnectionContracts;

TEST_F(BufferContracts, no_more_is_consumed_than_there_is) {
  Buffer buffer("abc");
  EXPECT_DEATH(buffer.consume(4), "Buffer::consume\\(4\\): the buffer holds 3 bytes");
  EXPECT_DEATH(Buffer().consume(1), "Buffer::consume\\(1\\): the buffer holds 0 bytes");
}

TEST_F(BufferContracts, no_more_is_committed_than_was_prepared) {
  Buffer buffer;
  EXPECT_DEATH(
      {
        static_cast<void>(buffer.prepare(10));
        buffer.commit(100'000);
      },
      "Buffer::commit\\(100000\\): prepare\\(\\) returned [0-9]+ bytes");
  EXPECT_DEATH(buffer.commit(1), "Buffer::commit\\(1\\): prepare\\(\\) returned 0 bytes");
  buffer.append("abc");
  EXPECT_DEATH(
      {
        static_cast<void>(buffer.prepare(10));
        buffer.commit(100'000);
      },
      "Buffer::commit\\(100000\\)");
}

TEST_F(BufferContracts, an_index_is_within_the_buffer) {
  const Buffer buffer("abc");
  EXPECT_DEATH(static_cast<void>(buffer[3]), "Buffer::operator\\[\\]\\(3\\): .* 3 bytes");
}

TEST_F(BufferContracts, the_length_of_a_message_has_1_to_8_bytes) {
  Buffer buffer("abc");
  EXPECT_DEATH(static_cast<void>(take_message(buffer, {.length_bytes = 9})),
               "LengthOptions::length_bytes is 9");
}

}  // namespace
}  // namespace tambour::connection_contracts_test
