// How many bytes a peer can make a connection hold, and what send() returns, over every
// transport.
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/connection.h>
#include <tambour/net/tcp.h>

#include "support/peer.h"
#include "support/streams.h"
#include "transports/every_transport.h"

namespace tambour::connection_limits_test {
namespace {

class ConnectionSizes : public test::OnEveryBackend {
 protected:
  Connection& connect(ConnectionCallbacks callbacks) {
    test::StreamEnds both = test::open_stream_ends(loop());
    peer = std::move(both.far);
    callbacks.on_close = [this](Connection&, Error error) { ends.push_back(error); };
    return Connection::start(std::move(both.near),
                             std::make_shared<const ConnectionCallbacks>(std::move(callbacks)));
  }
  /// While the connection reads, sends as much as the peer's kernel accepts, at most `limit` bytes.
  std::size_t peer_sends_up_to(std::size_t limit) {
    const std::string piece(64 * 1024, 'x');
    std::size_t sent = 0;
    for (int refused = 0; refused < 10 && sent < limit;) {
      const std::size_t taken = test::send_now(peer, piece);
      refused = taken == 0 ? refused + 1 : 0;
      sent += taken;
      run_iterations();
    }
    return sent;
  }
  std::size_t peer_reads() { return test::receive_now(peer).size(); }

  Stream peer;
  std::vector<Error> ends;
};

TAMBOUR_ON_EVERY_TRANSPORT(ConnectionSizes);

TEST_P(ConnectionSizes, reading_stops_at_the_high_water_mark_and_continues_at_the_low_one) {
  Connection& connection =
      connect({.on_message = [](Connection& self,
                                Buffer& bytes) { EXPECT_TRUE(self.send(std::move(bytes))); },
               .limits = {.backpressure = Backpressure::all}});
  constexpr std::size_t far_too_much = 16 << 20;
  const std::size_t sent = peer_sends_up_to(far_too_much);
  EXPECT_LT(sent, std::size_t{4} << 20);
  EXPECT_GE(connection.unsent(), std::size_t{1} << 20);
  EXPECT_LT(connection.unsent(), std::size_t{2} << 20);
  std::size_t received = 0;
  EXPECT_TRUE(run_until([&] { return (received += peer_reads()) == sent; }));
  EXPECT_EQ(connection.unsent(), 0U);
  connection.close();
  loop().run();
}

TEST_P(ConnectionSizes, on_high_water_may_continue_reading) {
  int high = 0;
  std::size_t received = 0;
  Connection& connection = connect({.on_message =
                                        [&](Connection&, Buffer& bytes) {
                                          received += bytes.size();
                                          bytes.clear();
                                        },
                                    .on_high_water =
                                        [&](Connection& self, std::size_t) {
                                          ++high;
                                          self.resume_reading();
                                        },
                                    .limits = {.backpressure = Backpressure::all}});
  connection.send(std::string(4 << 20, 'x'));
  EXPECT_EQ(high, 1);
  EXPECT_EQ(test::send_now(peer, "hello"), 5U);
  EXPECT_TRUE(run_until([&] { return received == 5; }));
}

TEST_P(ConnectionSizes, two_ends_that_both_send_many_bytes_do_not_stop_reading) {
  const std::string much(4 << 20, 'x');
  std::size_t received[2] = {};
  test::StreamEnds both = test::open_stream_ends(loop());
  const auto start = [&](Stream stream, std::size_t& count) {
    Connection& connection = Connection::start(
        std::move(stream), std::make_shared<const ConnectionCallbacks>(ConnectionCallbacks{
                               .on_message = [&count](Connection&, Buffer& bytes) {
                                 count += bytes.size();
                                 bytes.clear();
                               }}));
    EXPECT_TRUE(connection.send(much));
    EXPECT_GT(connection.unsent(), std::size_t{1} << 20);
  };
  start(std::move(both.near), received[0]);
  start(std::move(both.far), received[1]);
  EXPECT_TRUE(run_until([&] { return received[0] == much.size() && received[1] == much.size(); }));
}

TEST_P(ConnectionSizes, resuming_after_a_pause_does_not_override_the_high_water_mark) {
  std::size_t received = 0;
  Connection& connection = connect({.on_message =
                                        [&](Connection&, Buffer& bytes) {
                                          received += bytes.size();
                                          bytes.clear();
                                        },
                                    .limits = {.backpressure = Backpressure::all}});
  EXPECT_TRUE(connection.send(std::string(4 << 20, 'x')));
  connection.pause_reading();
  connection.resume_reading();
  EXPECT_EQ(test::send_now(peer, "hello"), 5U);
  run_iterations();
  EXPECT_EQ(received, 0U);
  EXPECT_TRUE(run_until([&] {
    peer_reads();
    return received == 5;
  }));
}

TEST_P(ConnectionSizes, one_send_of_any_size_is_accepted_if_nothing_waits) {
  Connection& connection = connect({.limits = {.unsent_bytes_max = 1'000'000}});
  EXPECT_TRUE(connection.send(std::string(4'000'000, 'x')));
  EXPECT_GT(connection.unsent(), 1'000'000U);
  EXPECT_FALSE(connection.send("x"));
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{system_error(ENOBUFS)});
}

TEST_P(ConnectionSizes, more_unsent_bytes_than_the_limit_reset_the_connection) {
  Connection& connection = connect({.limits = {.unsent_bytes_max = 1'000'000}});
  const std::string piece(300'000, 'x');
  int sent = 0;
  while (connection.send(piece)) ASSERT_LT(++sent, 100);
  EXPECT_FALSE(connection.is_open());
  EXPECT_TRUE(ends.empty());
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{system_error(ENOBUFS)});
  ends.clear();
  Buffer whole(std::string(4'000'000, 'x'));
  Connection& other = connect({.limits = {.unsent_bytes_max = 1'000'000}});
  EXPECT_TRUE(other.send(piece));
  EXPECT_TRUE(other.send(piece));
  EXPECT_FALSE(other.send(std::move(whole)));
  EXPECT_TRUE(whole.empty());  // NOLINT(bugprone-use-after-move): as documented.
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{system_error(ENOBUFS)});
}

TEST_P(ConnectionSizes, more_unread_bytes_than_the_limit_close_the_connection) {
  std::size_t limit = 0;
  connect({.on_message = [&](Connection&, Buffer& bytes) { limit = bytes.size(); },
           .limits = {.unread_bytes_max = 1'000'000}});
  EXPECT_LT(peer_sends_up_to(16 << 20), std::size_t{4} << 20);
  EXPECT_GT(limit, 1'000'000U);
  EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
  EXPECT_EQ(ends, std::vector<Error>{system_error(EMSGSIZE)});
}

TEST_P(ConnectionSizes, a_callback_that_pauses_reading_may_leave_more_than_the_limit) {
  std::size_t limit = 0;
  Connection& connection = connect({.on_message =
                                        [&](Connection& self, Buffer& bytes) {
                                          limit = bytes.size();
                                          self.pause_reading();
                                        },
                                    .limits = {.unread_bytes_max = 10}});
  peer_sends_up_to(100'000);
  EXPECT_GT(limit, 10U);
  EXPECT_TRUE(connection.is_open());
}

TEST_P(ConnectionSizes, send_reports_a_broken_connection) {
  Connection& connection = connect({});
  EXPECT_TRUE(connection.is_open());
  EXPECT_TRUE(connection.send("sent"));
  EXPECT_TRUE(connection.send(""));
  peer.close();
  EXPECT_FALSE(connection.send("lost"));
  EXPECT_FALSE(connection.is_open());
  // Sends until bytes are queued, as a program with much to send does.
  int rounds = 0;
  while (connection.send("x") && connection.unsent() == 0) ASSERT_LT(++rounds, 1000);
  Buffer bytes("lost");
  EXPECT_FALSE(connection.send(std::move(bytes)));
  EXPECT_TRUE(bytes.empty());  // NOLINT(bugprone-use-after-move): as documented.
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{system_error(EPIPE)});
}

TEST_P(ConnectionSizes, send_reports_bytes_after_close_after_write) {
  Connection& connection = connect({});
  EXPECT_TRUE(connection.send(std::string(2'000'000, 'x')));
  connection.close_after_write();
  EXPECT_TRUE(connection.is_open());
  EXPECT_FALSE(connection.send("lost"));
}

}  // namespace
}  // namespace tambour::connection_limits_test
