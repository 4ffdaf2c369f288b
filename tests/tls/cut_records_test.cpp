// TLS over networks that cut and delay records: relays on loopback, and the simulator.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/scale.h"
#include "support/streams.h"
#include "tls/support/certificates.h"

namespace tambour::cut_records_test {
namespace {

using namespace std::chrono_literals;
using test::Contexts;

std::string random_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  std::minstd_rand random(3);
  for (char& byte : bytes) byte = char(random());
  return bytes;
}

Task<> yield(int times) {
  for (int i = 0; i < times; ++i) static_cast<void>(co_await sleep_for(Duration::zero()));
}

/// Forwards the first `cut` bytes of the direction one by one or as a block, and then the rest.
Task<> relay(SocketStream& from, SocketStream& to, std::size_t cut, bool one_by_one) {
  std::size_t forwarded = 0;
  for (;;) {
    Buffer buffer;
    const auto got = co_await from.read(buffer);
    if (!got || *got == 0) break;
    while (!buffer.empty()) {
      std::size_t size = buffer.size();
      if (one_by_one) {
        size = 1;
      } else if (forwarded < cut) {
        size = std::min(size, cut - forwarded);
      }
      Buffer part = buffer.take(size);
      forwarded += size;
      if (!co_await to.write(part)) co_return;
      if (!one_by_one) co_await yield(2);
    }
  }
  static_cast<void>(co_await to.shutdown_write());
}

Task<> expect_all(SocketStream& stream, const std::string& expected) {
  Buffer all;
  for (;;) {
    const auto got = co_await stream.read(all);
    EXPECT_TRUE(got) << got.error().message();
    if (!got || *got == 0) break;
  }
  EXPECT_TRUE(all == expected);
}

/// Sends `text` from a client to a server and back through relays that cut at `cut`.
void exchange(EventLoop& loop, const Contexts& contexts, const std::string& text, std::size_t cut,
              bool one_by_one) {
  test::StreamEnds left = test::open_stream_ends(loop);
  test::StreamEnds right = test::open_stream_ends(loop);
  TaskScope scope(loop);
  scope.spawn(relay(left.far, right.near, cut, one_by_one));
  scope.spawn(relay(right.near, left.far, cut, one_by_one));
  scope.spawn([](SocketStream& stream, tls::ServerContext tls, const std::string& all) -> Task<> {
    const auto done = co_await tls::accept(stream, tls);
    EXPECT_TRUE(done) << done.error().message();
    if (!done) co_return;
    co_await expect_all(stream, all);
    EXPECT_TRUE(co_await stream.write(all));
    EXPECT_TRUE(co_await stream.shutdown_write());
  }(right.far, contexts.server, text));
  scope.spawn([](SocketStream& stream, tls::ClientContext tls, const std::string& all) -> Task<> {
    const auto done = co_await tls::connect(stream, tls, "localhost");
    EXPECT_TRUE(done) << done.error().message();
    if (!done) co_return;
    EXPECT_TRUE(co_await stream.write(all));
    EXPECT_TRUE(co_await stream.shutdown_write());
    co_await expect_all(stream, all);
  }(left.near, contexts.client, text));
  bool late = false;
  Timer limit(loop, [&] { late = true; });
  limit.start(60s);
  while (!scope.empty() && !late) loop.run_once();
  EXPECT_TRUE(scope.empty()) << "hangs with a cut after " << cut << " bytes";
}

TEST(TlsCutRecords, at_every_byte_of_the_connection) {
  EventLoop loop;
  for (const tls::Version version : {tls::Version::tls12, tls::Version::tls13}) {
    tls::ClientOptions options;
    options.version_max = version;
    options.sessions_max = 0;
    const Contexts contexts({}, options);
    const std::string text = random_bytes(1000);
    for (std::size_t cut = 1; cut < 3600; cut += test::sanitized ? 37 : 1) {
      exchange(loop, contexts, text, cut, false);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(TlsCutRecords, single_bytes) {
  EventLoop loop;
  exchange(loop, Contexts(), random_bytes(test::scaled(40'000)), 0, true);
}

/// Forwards, and changes the byte at `position`.
Task<> corrupt(SocketStream& from, SocketStream& to, std::size_t position, unsigned char mask) {
  std::size_t forwarded = 0;
  std::array<std::byte, 4096> place;
  for (;;) {
    const auto got = co_await from.read(place);
    if (!got || *got == 0) break;
    if (position >= forwarded && position < forwarded + *got)
      place[position - forwarded] ^= std::byte{mask};
    forwarded += *got;
    const auto written = co_await to.write(std::span(place).first(*got));
    if (!written) break;
  }
  from.close();
  to.close();
}

/// Returns what arrived before the end or an error; empty if the stream did not end properly.
Task<std::string> receive(SocketStream& stream) {
  Buffer all;
  for (;;) {
    const auto got = co_await timeout(20ms, stream.read(all));
    if (!got) co_return {};
    if (*got == 0) co_return all.to_string();
  }
}

void exchange_corrupted(EventLoop& loop, const Contexts& contexts, const std::string& text,
                        std::size_t position, unsigned char mask, bool to_server) {
  SCOPED_TRACE(testing::Message() << "position " << position << ", mask " << int(mask));
  test::StreamEnds left = test::open_stream_ends(loop);
  test::StreamEnds right = test::open_stream_ends(loop);
  constexpr std::size_t nowhere = SIZE_MAX;
  TaskScope scope(loop);
  scope.spawn(corrupt(left.far, right.near, to_server ? position : nowhere, mask));
  scope.spawn(corrupt(right.near, left.far, to_server ? nowhere : position, mask));
  scope.spawn([](SocketStream& stream, tls::ServerContext tls, const std::string& all) -> Task<> {
    if (co_await tls::accept(stream, tls)) {
      const std::string got = co_await receive(stream);
      EXPECT_TRUE(got.empty() || got == all);
    }
    stream.close();
  }(right.far, contexts.server, text));
  scope.spawn([](SocketStream& stream, tls::ClientContext tls, const std::string& all) -> Task<> {
    if (co_await tls::connect(stream, tls, "localhost")) {
      static_cast<void>(co_await stream.write(all));
      static_cast<void>(co_await stream.shutdown_write());
      static_cast<void>(co_await receive(stream));
    }
    stream.close();
  }(left.near, contexts.client, text));
  const TimePoint limit = Clock::now() + 1min;
  while (!scope.empty() && Clock::now() < limit) loop.run_once();
  EXPECT_TRUE(scope.empty()) << "hangs";
}

TEST(TlsCutRecords, changed_bytes_are_never_received) {
  EventLoop loop;
  tls::ServerOptions for_server;
  for_server.handshake_timeout = 20ms;
  const std::string text = random_bytes(300);
  for (const tls::Version version : {tls::Version::tls12, tls::Version::tls13}) {
    tls::ClientOptions for_client;
    for_client.handshake_timeout = 20ms;
    for_client.version_max = version;
    for_client.sessions_max = 0;
    const Contexts contexts(for_server, for_client);
    for (std::size_t position = 0; position < 1500; position += test::sanitized ? 61 : 7) {
      for (const bool to_server : {true, false}) {
        exchange_corrupted(loop, contexts, text, position,
                           static_cast<unsigned char>(1U << (position % 8)), to_server);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

/// Runs one simulated client and server on a network with the faults of `seed`.
void simulate_exchange(std::uint64_t seed, const Contexts& contexts, const std::string& text) {
  SCOPED_TRACE(seed);
  sim::Options network = sim::Options::rough(seed);
  network.stream_reset = 0;
  network.no_memory = 0;
  network.no_descriptors = 0;
  network.trace = false;
  sim::Simulation simulation(seed, network);
  sim::Host& near = simulation.add_host("client");
  sim::Host& far = simulation.add_host("server");
  EventLoop client({.simulated_host = &near});
  EventLoop service({.simulated_host = &far});
  ListenOptions options;
  options.tls = contexts.server;
  options.on_rejected = [](SocketStream&, Error error) { ADD_FAILURE() << error.message(); };
  auto server =
      TcpServer::listen(service, Endpoint::parse(far.ip() + ":443").value(), options).value();
  server.serve([](TcpStream stream) -> Task<> {
    Buffer all;
    for (;;) {
      const auto got = co_await stream.read(all);
      EXPECT_TRUE(got) << got.error().message() << " " << stream.tls()->failure();
      if (!got) co_return;
      if (*got == 0) break;
    }
    if (!co_await stream.write(all)) co_return;
    static_cast<void>(co_await stream.shutdown_write());
  });
  bool done = false;
  spawn(client,
        [](Endpoint to, tls::ClientContext tls, const std::string& all, bool& ended) -> Task<> {
          auto stream = co_await TcpStream::connect(to);
          EXPECT_TRUE(stream);
          if (!stream) co_return;
          const auto secured = co_await tls::connect(*stream, tls, "localhost");
          EXPECT_TRUE(secured) << secured.error().message();
          if (!secured) co_return;
          EXPECT_TRUE(co_await stream->write(all));
          EXPECT_TRUE(co_await stream->shutdown_write());
          co_await expect_all(*stream, all);
          ended = true;
        }(server.endpoint(), contexts.client, text, done));
  static_cast<void>(simulation.run_for(24h));
  EXPECT_TRUE(done);
}

TEST(TlsCutRecords, in_simulated_networks) {
  const std::string text = random_bytes(20'000);
  // Some networks hold only a few bytes in flight.
  tls::ServerOptions for_server;
  for_server.handshake_timeout = 24h;
  tls::ClientOptions for_client;
  for_client.handshake_timeout = 24h;
  const Contexts contexts(for_server, for_client);
  for (std::uint64_t seed = 1; seed <= test::scaled(200); ++seed) {
    simulate_exchange(seed, contexts, text);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tambour::cut_records_test
