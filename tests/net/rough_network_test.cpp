// Streams over a network that loses packets, delays them, or drops all of them; over sockets and
// over TLS.
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/loop/event_loop.h>
#include <tambour/net/tcp.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>

#include "support/network.h"
#include "support/scale.h"
#include "support/streams.h"
#include "transports/every_transport.h"

namespace tambour::rough_network_test {
namespace {

using namespace std::chrono_literals;

/// A sequence of bytes with a prime period, so that a shifted copy is detected.
class Pattern {
 public:
  Pattern() : bytes_(999'983 + size_max) {
    std::minstd_rand random(1);
    for (std::size_t i = 0; i < period; ++i) bytes_[i] = std::byte(random() >> 8);
    std::copy_n(bytes_.begin(), size_max, bytes_.begin() + period);
  }
  static constexpr std::size_t size_max = 65536;

  /// Returns `size` bytes (at size_max `size_max`) from position `at`.
  [[nodiscard]] std::span<const std::byte> at(std::size_t at, std::size_t size) const {
    return std::span(bytes_).subspan(at % period, size);
  }

 private:
  static constexpr std::size_t period = 999'983;
  std::vector<std::byte> bytes_;
};

const Pattern& pattern() {
  static const Pattern created;
  return created;
}

Task<> send_pattern(Endpoint to, std::size_t bytes, std::size_t piece) {
  auto stream = co_await test::connect_to(to);
  EXPECT_TRUE(stream);
  if (!stream) co_return;
  for (std::size_t sent = 0; sent < bytes; sent += piece) {
    const auto written = co_await stream->write(pattern().at(sent, std::min(piece, bytes - sent)));
    EXPECT_TRUE(written) << "after " << sent;
    if (!written) co_return;
  }
  EXPECT_TRUE(co_await stream->shutdown_write());
  // EOF: the other end has received everything and closes too.
  std::array<std::byte, 1> nothing;
  EXPECT_EQ(co_await stream->read(nothing), 0U);
}

Task<> receive_pattern(TcpStream stream, std::size_t& received) {
  Buffer buffer;
  for (;;) {
    const auto got = co_await stream.read(buffer);
    EXPECT_TRUE(got) << "after " << received;
    if (!got || *got == 0) co_return;
    while (!buffer.empty()) {
      const auto piece = buffer.front().first(std::min(buffer.front().size(), Pattern::size_max));
      const auto expected = pattern().at(received, piece.size());
      if (std::memcmp(piece.data(), expected.data(), piece.size()) != 0) {
        ADD_FAILURE() << "other bytes than were sent, after " << received;
        co_return;
      }
      received += piece.size();
      buffer.consume(piece.size());
    }
  }
}

/// Encryption takes processor time, and a gibibyte finds no more errors in it than a part does.
std::size_t scaled(std::size_t bytes) {
  return test::scaled(test::transport().server ? bytes / 16 : bytes);
}

/// Transfers `bytes` bytes in pieces of at size_max `piece` and compares them.
void transfer(std::size_t bytes, std::size_t piece) {
  EventLoop loop;
  auto server = test::listen(loop).value();
  std::size_t received = 0;
  server.serve([&](TcpStream stream) { return receive_pattern(std::move(stream), received); });
  spawn(loop, [](TcpServer& from, std::size_t count, std::size_t at_a_time) -> Task<> {
    co_await send_pattern(from.endpoint(), count, at_a_time);
    co_await from.shut_down(1h);
  }(server, bytes, piece));
  loop.run();
  EXPECT_EQ(received, bytes);
}

class RoughNetwork : public test::OnEveryBackend {};

TAMBOUR_ON_BOTH_TRANSPORTS(RoughNetwork);

TEST_P(RoughNetwork, a_gibibyte_arrives_unchanged) {
  transfer(scaled(std::size_t{1} << 30), Pattern::size_max);
}

TEST_P(RoughNetwork, single_bytes_arrive_unchanged) { transfer(scaled(200'000), 1); }

TEST_P(RoughNetwork, bytes_arrive_if_a_fifth_of_the_packets_is_lost) {
  if (!test::has_program("nft")) GTEST_SKIP() << "nft is not here";
  test::in_own_network([] {
    test::command(
        "nft 'add table inet rough; add chain inet rough in "
        "{ type filter hook input priority 0; }; "
        "add rule inet rough in numgen random mod 100 < 20 drop'");
    transfer(300'000, 10'000);
  });
}

TEST_P(RoughNetwork, bytes_arrive_at_a_megabit_per_second) {
  if (!test::has_program("tc")) GTEST_SKIP() << "tc is not here";
  test::in_own_network([] {
    // Packets larger than the bucket would never pass.
    test::command(
        "ip link set lo mtu 1500; tc qdisc add dev lo root tbf rate 1mbit burst 16kb latency "
        "400ms");
    transfer(200'000, 10'000);
  });
}

/// Over sockets only: the answers must not be sent before the packets are dropped, so the writes of
/// all peers must fit into one iteration.
TEST(SilentPeers, each_peer_that_stops_responding_is_closed_once) {
  if (!test::has_program("nft")) GTEST_SKIP() << "nft is not here";
  test::in_own_network([] {
    EventLoop loop;
    auto server = test::listen(loop).value();
    std::vector<Error> ends;
    constexpr std::size_t count = 100;
    std::size_t heard = 0;
    server.serve(
        ConnectionCallbacks{.on_message =
                                [&](Connection& peer, Buffer& bytes) {
                                  bytes.clear();
                                  // Half of them by Tambour's idle timeout, the other half by
                                  // TCP_USER_TIMEOUT of the kernel, which counts unacknowledged
                                  // bytes. Not set in on_connection: connecting all may take
                                  // longer.
                                  if (++heard % 2 == 0) {
                                    peer.set_idle_timeout(500ms);
                                  } else {
                                    const int limit_ms = 500;
                                    EXPECT_EQ(::setsockopt(peer.fd(), IPPROTO_TCP, TCP_USER_TIMEOUT,
                                                           &limit_ms, sizeof(limit_ms)),
                                              0);
                                  }
                                  peer.send("said once, and heard");
                                },
                            .on_close = [&](Connection&, Error error) { ends.push_back(error); }});
    spawn(loop, [](TcpServer& serving, std::size_t peers) -> Task<> {
      std::vector<TcpStream> silent;
      for (std::size_t i = 0; i < peers; ++i) {
        auto stream = co_await test::connect_to(serving.endpoint());
        EXPECT_TRUE(stream);
        if (!stream) co_return;
        silent.push_back(std::move(*stream));
      }
      while (serving.connections() < peers) co_await sleep_for(1ms);
      // From here on, packets of the server are dropped, and the reset of a dying peer does not
      // arrive.
      for (TcpStream& stream : silent) EXPECT_TRUE(co_await stream.write("x"));
      test::command(
          "nft 'add table inet silent; add chain inet silent in "
          "{ type filter hook input priority 0; }; add rule inet silent in drop'");
      silent.clear();
      while (serving.connections() > 0) co_await sleep_for(1ms);
      serving.stop();
    }(server, count));
    loop.run();
    EXPECT_EQ(ends.size(), count);
    EXPECT_EQ(std::ranges::count(ends, system_error(ETIMEDOUT)), std::ptrdiff_t{count});
  });
}

}  // namespace
}  // namespace tambour::rough_network_test
