// The timeouts of connections, in virtual time: exact to the millisecond, without real waiting.
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::connection_timeouts_test {
namespace {

using namespace std::chrono_literals;

class ConnectionTimeouts : public testing::Test {
 protected:
  Connection& connect(ConnectionCallbacks callbacks) {
    auto pair = UnixStream::pair(loop).value();
    peer = std::move(pair.second);
    callbacks.on_close = [this](Connection&, Error error) { end = error; };
    return Connection::start(std::move(pair.first),
                             std::make_shared<const ConnectionCallbacks>(std::move(callbacks)));
  }
  void pass(Duration time) { EXPECT_EQ(simulation.run_for(time), sim::End::timeout); }
  [[nodiscard]] bool is_open() const { return !end.has_value(); }
  void peer_sends(std::string_view text) {
    EXPECT_EQ(host.send(peer.fd(), text.data(), text.size(), 0), ssize_t(text.size()));
  }
  std::size_t peer_reads(std::size_t limit) {
    std::string place(limit, '\0');
    const ssize_t got = host.recv(peer.fd(), place.data(), place.size(), MSG_DONTWAIT);
    return got < 0 ? 0 : std::size_t(got);
  }
  /// Makes the kernel's send buffer hold as much as a large TCP window.
  void set_send_buffer(const Connection& connection, int bytes) {
    EXPECT_EQ(host.setsockopt(connection.fd(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
  }
  /// Reads too little for the kernel to accept more. Expects that the connection stays open while
  /// the peer reads, and is closed after at most twice the limit when the peer stops.
  void expect_open_while_the_peer_reads(Duration limit) {
    for (int i = 0; i < 6; ++i) {
      pass(limit - 1s);
      EXPECT_EQ(peer_reads(100'000), 100'000U);
      EXPECT_TRUE(is_open()) << i;
    }
    pass(limit - 1s);
    EXPECT_TRUE(is_open());
    pass(limit + 2s);
    EXPECT_EQ(end, std::optional(system_error(ETIMEDOUT)));
  }
  /// Expects ETIMEDOUT one second from now.
  void expect_timeout_in_one_second() {
    pass(999ms);
    EXPECT_TRUE(is_open());
    pass(2ms);
    EXPECT_EQ(end, std::optional(system_error(ETIMEDOUT)));
  }

  sim::Simulation simulation;
  sim::Host& host = simulation.add_host("server");
  EventLoop loop{{.simulated_host = &host}};
  UnixStream peer;
  std::optional<Error> end;
};

const std::string much(3'000'000, 'x');

/// Consumes the buffer up to the last line feed.
void drop_lines(Connection&, Buffer& bytes) {
  while (take_line(bytes).value()) {
  }
}

TEST_F(ConnectionTimeouts, a_download_with_progress_is_not_idle) {
  Connection& connection = connect({.limits = {.idle_timeout = 10s}});
  EXPECT_TRUE(connection.send(much));
  for (int i = 0; i < 6; ++i) {
    pass(9s);
    EXPECT_EQ(peer_reads(200'000), 200'000U);
    EXPECT_TRUE(is_open());
  }
  pass(9s);
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, a_download_from_the_send_buffer_of_the_kernel_is_not_idle) {
  Connection& connection = connect({.limits = {.idle_timeout = 10s}});
  set_send_buffer(connection, 4'000'000);
  EXPECT_TRUE(connection.send(much));
  EXPECT_EQ(connection.unsent(), 0U);
  expect_open_while_the_peer_reads(10s);
}

TEST_F(ConnectionTimeouts, the_acknowledgement_of_a_short_answer_does_not_extend_the_idle_time) {
  connect({.on_message =
               [](Connection& self, Buffer& bytes) {
                 bytes.clear();
                 EXPECT_TRUE(self.send("answer"));
               },
           .limits = {.idle_timeout = 10s}});
  pass(5s);
  peer_sends("request");
  pass(1s);
  EXPECT_EQ(peer_reads(100), 6U);
  pass(8s);
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, a_slow_download_that_the_kernel_does_not_notice_is_progress) {
  Connection& connection = connect({});
  set_send_buffer(connection, 2'000'000);
  EXPECT_TRUE(connection.send(much));
  EXPECT_GT(connection.unsent(), 0U);
  expect_open_while_the_peer_reads(60s);
}

TEST_F(ConnectionTimeouts, lingering_lasts_while_the_peer_reads_from_the_send_buffer) {
  Connection& connection = connect({});
  set_send_buffer(connection, 4'000'000);
  EXPECT_TRUE(connection.send(much));
  EXPECT_EQ(connection.unsent(), 0U);
  connection.close_after_write();
  expect_open_while_the_peer_reads(10s);
}

TEST_F(ConnectionTimeouts, a_half_closed_connection_does_not_linger) {
  Connection& connection = connect({});
  connection.shutdown_write();
  pass(1h);
  EXPECT_TRUE(is_open());
  peer.close();
  pass(1ms);
  EXPECT_EQ(end, std::optional(Error()));
}

TEST_F(ConnectionTimeouts, resuming_a_connection_that_is_not_paused_does_not_extend_its_time) {
  Connection& connection = connect({.limits = {.read_timeout = 10s}});
  pass(9s);
  connection.resume_reading();
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, an_upload_with_progress_is_not_idle) {
  connect({.limits = {.idle_timeout = 10s}});
  for (int i = 0; i < 3; ++i) {
    pass(9s);
    peer_sends("x");
  }
  pass(9s);
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, the_setter_overrides_the_idle_timeout_of_the_server) {
  Connection& connection = connect({.limits = {.idle_timeout = 10s}});
  connection.set_idle_timeout(0s);
  pass(1h);
  // Starting the timer for another limit does not restore it.
  EXPECT_TRUE(connection.send(much));
  pass(30s);
  EXPECT_TRUE(is_open());
  while (peer_reads(1 << 20) > 0) pass(1ms);
  EXPECT_EQ(connection.unsent(), 0U);
  connection.set_idle_timeout(10s);
  pass(9s);
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, reading_has_a_timeout_of_its_own) {
  Connection& connection = connect({.limits = {.read_timeout = 10s}});
  pass(9s);
  peer_sends("x");
  pass(9s);
  EXPECT_TRUE(connection.send("to write is no progress in reading"));
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, time_without_reading_does_not_count_for_the_read_timeout) {
  Connection& connection = connect({.limits = {.read_timeout = 10s}});
  connection.pause_reading();
  pass(1h);
  EXPECT_TRUE(is_open());
  connection.resume_reading();
  pass(9s);
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, time_without_reading_does_not_count_for_the_message_timeout) {
  Connection& connection = connect({.on_message = drop_lines, .limits = {.message_timeout = 10s}});
  peer_sends("hal");
  pass(1s);
  connection.pause_reading();
  pass(1h);
  EXPECT_TRUE(is_open());
  connection.resume_reading();
  pass(9s);
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, a_peer_that_reads_nothing_is_reset_after_a_minute_by_default) {
  Connection& connection = connect({});
  EXPECT_TRUE(connection.send(much));
  pass(40s);
  EXPECT_EQ(peer_reads(200'000), 200'000U);
  pass(59s);
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, a_write_timeout_needs_unsent_bytes) {
  Connection& connection = connect({});
  EXPECT_TRUE(connection.send(much));
  while (connection.unsent() > 0) {
    peer_reads(1 << 20);
    pass(1ms);
  }
  pass(1h);
  EXPECT_TRUE(is_open());
}

TEST_F(ConnectionTimeouts, a_message_must_be_complete_in_time) {
  connect({.on_message = drop_lines, .limits = {.idle_timeout = 2s, .message_timeout = 10s}});
  for (int i = 0; i < 9; ++i) {
    peer_sends("x");  // A slow loris client.
    pass(1s);
  }
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, each_message_has_its_own_time) {
  connect({.on_message = drop_lines, .limits = {.message_timeout = 10s}});
  for (int i = 0; i < 5; ++i) {
    peer_sends("hal");
    pass(9s);
    EXPECT_TRUE(is_open());
    peer_sends("f\n");
    pass(9s);
  }
  pass(1h);
  EXPECT_TRUE(is_open());
  // The end of one message and the beginning of the next in one segment.
  peer_sends("hal");
  pass(9s);
  peer_sends("f\nnext");
  pass(9s);
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, received_bytes_extend_the_time_of_a_message) {
  connect({.on_message = drop_lines, .limits = {.message_timeout = 10s, .message_rate_min = 100}});
  peer_sends("x");
  for (int i = 0; i < 60; ++i) {
    pass(1s);
    peer_sends(std::string(100, 'x'));
    EXPECT_TRUE(is_open()) << i;
  }
  pass(9s);
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, received_bytes_never_leave_a_message_more_than_its_timeout) {
  connect({.on_message = drop_lines, .limits = {.message_timeout = 10s, .message_rate_min = 100}});
  peer_sends("x");
  pass(1s);
  peer_sends(std::string(50'000, 'x'));
  pass(9s);
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, a_peer_that_does_not_close_is_reset_after_close_after_write) {
  Connection& connection = connect({});
  EXPECT_TRUE(connection.send("bye"));
  pass(1h);
  connection.close_after_write();
  pass(5s);
  peer_sends("bytes that are not read do not extend the time");
  pass(4s);
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, lingering_lasts_while_the_peer_reads_bytes) {
  Connection& connection = connect({});
  EXPECT_TRUE(connection.send(much));
  connection.close_after_write();
  for (int i = 0; i < 6; ++i) {
    pass(9s);
    EXPECT_EQ(peer_reads(200'000), 200'000U);
    EXPECT_TRUE(is_open());
  }
  pass(9s);
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, lingering_ends_in_time_after_the_peer_has_acknowledged_everything) {
  Connection& connection = connect({});
  EXPECT_TRUE(connection.send("bye"));
  connection.close_after_write();
  pass(1s);
  EXPECT_EQ(peer_reads(100), 3U);
  pass(8s);
  EXPECT_TRUE(is_open());
  pass(2s);
  EXPECT_EQ(end, std::optional(system_error(ETIMEDOUT)));
}

TEST_F(ConnectionTimeouts, lingering_ends_soon_after_the_last_progress) {
  // A part of the bytes, or none, waits in the connection.
  for (const int send_buffer : {2'000'000, 4'000'000}) {
    Connection& connection = connect({});
    set_send_buffer(connection, send_buffer);
    EXPECT_TRUE(connection.send(much));
    connection.close_after_write();
    pass(1s);
    EXPECT_EQ(peer_reads(1'000), 1'000U);
    pass(9s);
    EXPECT_TRUE(is_open());
    // The progress was one second after the close, and seen an eighth of the limit later.
    pass(1s + 10s / 8 + 1ms);
    EXPECT_EQ(end, std::optional(system_error(ETIMEDOUT))) << send_buffer;
    end.reset();
  }
}

TEST_F(ConnectionTimeouts, closing_again_does_not_extend_lingering) {
  Connection& connection = connect({.on_message = [](Connection& self, Buffer& bytes) {
    bytes.clear();
    self.close_after_write();
  }});
  EXPECT_TRUE(connection.send(much));
  for (int i = 0; i < 9; ++i) {
    peer_sends("x");
    pass(1s);
  }
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, a_peer_that_closes_ends_lingering) {
  Connection& connection = connect({});
  connection.close_after_write();
  pass(5s);
  peer.close();
  pass(1ms);
  EXPECT_EQ(end, std::optional(Error()));
}

TEST_F(ConnectionTimeouts, a_deadline_expires_despite_progress_unless_it_is_removed) {
  Connection& connection = connect({});
  connection.set_deadline(10s);
  pass(9s);
  peer_sends("x");
  connection.set_deadline(0s);
  pass(1h);
  EXPECT_TRUE(is_open());
  connection.set_deadline(10s);
  pass(9s);
  peer_sends("x");
  expect_timeout_in_one_second();
}

TEST_F(ConnectionTimeouts, every_limit_can_be_disabled) {
  Connection& connection = connect({.limits = {.write_timeout = 0s, .linger = 0s}});
  EXPECT_TRUE(connection.send(much));
  connection.close_after_write();
  pass(24h);
  EXPECT_TRUE(is_open());
  while (connection.unsent() > 0) {
    peer_reads(1 << 20);
    pass(1ms);
  }
  pass(24h);
  EXPECT_TRUE(is_open());
}

}  // namespace
}  // namespace tambour::connection_timeouts_test
