// Streams and connections that move between loops under load: every byte arrives, in order.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/loop/timer.h>
#include <tambour/net/connection.h>
#include <tambour/net/pipe.h>
#include <tambour/net/proxy_protocol.h>
#include <tambour/net/server_group.h>
#include <tambour/net/spawn_on.h>
#include <tambour/net/tcp.h>
#include <tambour/task/combinators.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>
#include <tambour/threads/loop_group.h>

#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/streams.h"

namespace tambour::moving_test {
namespace {

using namespace std::chrono_literals;

class Moving : public test::OnEveryBackend {
 protected:
  [[nodiscard]] LoopGroupOptions of(std::size_t threads) const {
    return {.threads = threads, .loop = options()};
  }
};

TAMBOUR_ON_EVERY_BACKEND(Moving);

/// Sends `rounds` different messages of various sizes and compares the echoes.
Task<> talk(Endpoint to, unsigned seed, int rounds, std::size_t& intact) {
  auto stream = co_await TcpStream::connect(to);
  EXPECT_TRUE(stream) << stream.error().message();
  if (!stream) co_return;
  std::minstd_rand random(seed);
  for (int round = 0; round < rounds; ++round) {
    std::string text(1 + random() % 3000, '\0');
    for (char& byte : text) byte = char(random());
    TaskScope scope(stream->loop());
    scope.spawn([](TcpStream& out, const std::string& all) -> Task<> {
      EXPECT_TRUE(co_await out.write(all));
    }(*stream, text));
    Buffer back;
    while (back.size() < text.size()) {
      const auto got = co_await stream->read(back);
      EXPECT_TRUE(got && *got > 0);
      if (!got || *got == 0) co_return;
    }
    co_await scope.join();
    EXPECT_EQ(back, text);
    if (!(back == text)) co_return;
  }
  ++intact;
}

Task<> talk_all(EventLoop& loop, Endpoint to, int peers, int rounds, std::size_t& intact) {
  TaskScope scope(loop);
  for (int i = 0; i < peers; ++i) scope.spawn(talk(to, unsigned(i), rounds, intact));
  co_await scope.join();
}

TEST_P(Moving, a_thousand_connections_move_between_loops_under_load) {
  const int peers = is(BackendKind::select) ? 200 : 1000;  // Descriptors must be below FD_SETSIZE.
  const int rounds = 4;
  LoopGroup group(of(3));
  auto server = TcpServerGroup::listen(group, Endpoint::loopback_v4(0),
                                       {.placement = Placement::round_robin});
  ASSERT_TRUE(server);
  std::atomic<int> moves = 0;
  const auto next_to = [&group](EventLoop& loop) -> EventLoop& {
    return group[(group.index_of(loop) + 1) % group.size()];
  };
  server->serve({.on_message =
                     [&](Connection& connection, Buffer& bytes) {
                       EXPECT_TRUE(group.index_of(connection.loop()) < group.size());
                       // Sends one half before the move and the rest afterwards.
                       connection.send(bytes.take(bytes.size() / 2));
                       connection.move_to(next_to(connection.loop()));
                       connection.context() = std::make_shared<Buffer>(std::move(bytes));
                     },
                 .on_move =
                     [&](Connection& connection) {
                       ++moves;
                       auto& rest = std::any_cast<std::shared_ptr<Buffer>&>(connection.context());
                       if (rest != nullptr) connection.send(std::move(*rest));
                       rest = nullptr;
                       if (moves % 5 == 0) connection.move_to(next_to(connection.loop()));
                     }});
  std::size_t intact = 0;
  run(talk_all(loop(), server->endpoint(), peers, rounds, intact));
  EXPECT_EQ(intact, std::size_t(peers));
  EXPECT_GE(moves, peers * rounds);
  EXPECT_TRUE(eventually([&] { return server->connections() == 0; }));
  for (std::size_t i = 0; i < group.size(); ++i) EXPECT_EQ(group.load(group[i]), 0U);
}

/// An echo handler that moves to the next loop after each read.
struct Wanderer {
  LoopGroup& group;
  std::atomic<int>& moves;

  Task<> operator()(TcpStream peer) {
    Buffer buffer;
    const auto got = co_await peer.read(buffer);
    if (!got || *got == 0 || !co_await peer.write(buffer)) co_return;
    ++moves;
    EventLoop& next = group.next();
    spawn_on(next, std::move(peer), *this);
  }
};

TEST_P(Moving, streams_move_from_task_to_task) {
  const int peers = 100;
  LoopGroup group(of(3));
  auto server = TcpServerGroup::listen(group, Endpoint::loopback_v4(0));
  ASSERT_TRUE(server);
  std::atomic<int> moves = 0;
  server->serve(Wanderer{group, moves});
  std::size_t intact = 0;
  run(talk_all(loop(), server->endpoint(), peers, 5, intact));
  EXPECT_EQ(intact, std::size_t(peers));
  // A peer may have received its echo and closed before the task has continued.
  EXPECT_TRUE(eventually([&] { return moves >= peers * 5; }));
}

TEST_P(Moving, the_proxy_header_moves_with_the_stream) {
  LoopGroup group(of(1));
  auto server = TcpServer::listen(loop(), Endpoint::loopback_v4(0),
                                  {.proxy_protocol = ProxyProtocol::required});
  ASSERT_TRUE(server);
  std::string source;
  server->serve([&](TcpStream peer) -> Task<> {
    spawn_on(group[0], std::move(peer), [](TcpStream arrived) -> Task<> {
      EXPECT_TRUE(arrived.proxy_header() != nullptr);
      static_cast<void>(co_await arrived.write(arrived.peer_endpoint().value().to_string()));
    });
    EXPECT_FALSE(peer.is_open());
    co_return;
  });
  run([](Endpoint to, std::string& answer) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream && co_await stream->write("PROXY TCP4 192.0.2.1 192.0.2.2 1234 80\r\n"));
    Buffer all;
    while (const auto got = co_await stream->read(all)) {
      if (*got == 0) break;
    }
    answer = all.to_string();
  }(server->endpoint(), source));
  EXPECT_EQ(source, "192.0.2.1:1234");
}

/// Reads a number of bytes and moves to the next loop, until everything has been read.
struct PipeReader {
  LoopGroup& group;
  std::string& all;
  std::atomic<int>& moves;
  std::atomic<bool>& done;

  Task<> operator()(Stream from) {
    Buffer buffer;
    while (buffer.size() < 100'000) {
      const auto got = co_await from.read(buffer);
      EXPECT_TRUE(got) << got.error().message();
      if (!got || *got == 0) {
        all += buffer.to_string();
        done = true;
        co_return;
      }
    }
    all += buffer.to_string();
    ++moves;
    EventLoop& next = group.next();
    // How its bytes are transferred moves with it.
    spawn_on(next, std::move(from), [local = *this](Stream arrived) mutable -> Task<> {
      std::array<std::byte, 1> byte;
      const auto got = co_await arrived.read(byte);
      EXPECT_TRUE(got) << got.error().message();
      if (got && *got == 1) local.all += char(byte[0]);
      EventLoop& last = local.group.next();
      spawn_on(last, std::move(arrived), local);
    });
  }
};

TEST_P(Moving, pipes_work_on_other_loops) {
  std::string text(1'000'000, 'x');
  for (std::size_t i = 0; i < text.size(); i += 101) text[i] = char('a' + i % 23);
  std::string received;
  std::atomic<int> moves = 0;
  std::atomic<bool> done = false;
  LoopGroup group(of(3));
  run([](PipeReader reader, const std::string& all) -> Task<> {
    const TaskContext& context = co_await this_task;
    auto ends = PipeStream::open(*context.loop);
    EXPECT_TRUE(ends);
    if (!ends) co_return;
    EXPECT_TRUE(co_await ends->writer.write(std::string_view(all).substr(0, 10)));
    std::array<char, 10> first;
    EXPECT_EQ(co_await ends->reader.read(std::as_writable_bytes(std::span(first))), 10U);
    reader.all.assign(first.data(), first.size());
    EventLoop& to = reader.group.next();
    spawn_on(to, std::move(ends->reader), reader);
    EventLoop& away = reader.group.next();
    spawn_on(away, std::move(ends->writer), [&all](PipeStream arrived) -> Task<> {
      Buffer half(all.substr(10, all.size() / 2));
      EXPECT_TRUE(co_await arrived.write(half));
      EXPECT_TRUE(co_await arrived.write(std::string_view(all).substr(10 + all.size() / 2)));
    });
  }(PipeReader{group, received, moves, done}, text));
  EXPECT_TRUE(eventually([&] { return done.load(); }));
  EXPECT_GE(moves, 5);
  EXPECT_TRUE(received == text);
}

/// Reads until the wait fails because its stream has moved.
Task<> read_until_error(TcpStream& stream, int& errors) {
  std::array<std::byte, 1> byte;
  EXPECT_EQ((co_await stream.read(byte)).error(), system_error(ECANCELED));
  ++errors;
}

TEST_P(Moving, a_task_that_reads_a_moved_stream_is_resumed_with_an_error) {
  LoopGroup group(of(1));
  auto server = TcpServer::listen(loop(), Endpoint::loopback_v4(0));
  ASSERT_TRUE(server);
  int errors = 0;
  server->serve([&](TcpStream peer) -> Task<> {
    TaskScope scope(peer.loop());
    scope.spawn(read_until_error(peer, errors));
    spawn_on(group[0], std::move(peer), test::echo<TcpStream>);
    co_await scope.join();
  });
  run(test::expect_echo_from(server->endpoint()));
  EXPECT_TRUE(eventually([&] { return errors == 1; }));
}

TEST_P(Moving, unsent_bytes_are_sent_from_the_other_loop) {
  LoopGroup group(of(1));
  std::string text(8'000'000, 'x');
  for (std::size_t i = 0; i < text.size(); i += 101) text[i] = char('a' + i % 23);
  auto server = TcpServer::listen(loop(), Endpoint::loopback_v4(0));
  ASSERT_TRUE(server);
  std::atomic<bool> complete = false;
  std::atomic<bool> high = false;
  server->serve({.on_connection =
                     [&](Connection& connection) {
                       connection.send(text);
                       connection.close_after_write();
                       connection.move_to(group[0]);
                     },
                 .on_write_complete =
                     [&](Connection& connection) {
                       EXPECT_EQ(&connection.loop(), &group[0]);
                       complete = true;
                     },
                 .on_high_water = [&](Connection&, std::size_t) { high = true; },
                 .high_water_bytes = 1000});
  run([](Endpoint to, const std::string& all) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream);
    static_cast<void>(co_await sleep_for(5ms));
    Buffer got;
    while (const auto read = co_await stream->read(got)) {
      if (*read == 0) break;
    }
    EXPECT_EQ(got, all);
  }(server->endpoint(), text));
  EXPECT_TRUE(high);
  EXPECT_EQ(server->connections(), 0U);  // The connection has left the server.
}

TEST_P(Moving, the_idle_timeout_moves_with_the_connection) {
  LoopGroup group(of(2));
  auto server = TcpServer::listen(loop(), Endpoint::loopback_v4(0));
  ASSERT_TRUE(server);
  std::atomic<bool> timed_out = false;
  const TimePoint began = Clock::now();
  server->serve({.on_connection =
                     [&](Connection& connection) {
                       connection.set_idle_timeout(30ms);
                       connection.move_to(group[1]);
                     },
                 .on_close =
                     [&](Connection& connection, Error error) {
                       EXPECT_EQ(&connection.loop(), &group[1]);
                       EXPECT_EQ(error, system_error(ETIMEDOUT));
                       timed_out = true;
                     }});
  run([](Endpoint to) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream);
    std::array<std::byte, 1> byte;
    const auto got = co_await stream->read(byte);
    EXPECT_TRUE(got && *got == 0);
  }(server->endpoint()));
  EXPECT_GE(Clock::now() - began, 30ms);
  EXPECT_TRUE(eventually([&] { return timed_out.load(); }));
}

TEST_P(Moving, to_a_loop_that_ends_closes_the_connection) {
  const std::size_t before = test::open_descriptors();
  {
    LoopGroup group(of(2));
    auto server = TcpServer::listen(loop(), Endpoint::loopback_v4(0));
    ASSERT_TRUE(server);
    server->serve({.on_connection = [&](Connection& connection) {
      connection.set_idle_timeout(1h);
      connection.move_to(group[0]);
      if (server->accepted() == 10) group.stop();
    }});
    std::vector<TcpStream> all;
    run(test::connect_all(server->endpoint(), 20, all));
    all.clear();
    EXPECT_TRUE(eventually([&] { return server->accepted() == 20; }));
    run_iterations();
  }
  run_iterations();
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST_P(Moving, the_server_may_be_destroyed_while_connections_move) {
  for (int round = 0; round < 20; ++round) {
    LoopGroup group(of(3));
    auto server = TcpServerGroup::listen(group, Endpoint::loopback_v4(0));
    ASSERT_TRUE(server);
    std::atomic<int> moves = 0;
    const auto move_on = [&](Connection& connection) {
      ++moves;
      connection.move_to(group[(group.index_of(connection.loop()) + 1) % group.size()]);
    };
    server->serve({.on_connection = move_on, .on_move = move_on});
    const Endpoint at = server->endpoint();
    std::vector<UniqueFd> peers;
    for (int i = 0; i < 8; ++i) {
      peers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      ASSERT_EQ(::connect(peers.back().get(), at.data(), at.size()), 0);
    }
    EXPECT_TRUE(eventually([&] { return moves > 100; }));
    {
      const auto destroyed = std::move(*server);
    }
    // Each of them is closed exactly once, on whichever loop it was.
    for (const UniqueFd& peer : peers) {
      char byte;
      EXPECT_LE(::recv(peer.get(), &byte, 1, 0), 0);
    }
  }
}

TEST_P(Moving, to_its_own_loop_cancels_the_move) {
  LoopGroup group(of(1));
  auto server = TcpServer::listen(loop(), Endpoint::loopback_v4(0));
  ASSERT_TRUE(server);
  int messages = 0;
  server->serve({.on_connection =
                     [&](Connection& connection) {
                       connection.move_to(group[0]);
                       connection.move_to(loop());
                     },
                 .on_message =
                     [&](Connection& connection, Buffer& bytes) {
                       EXPECT_EQ(&connection.loop(), &loop());
                       bytes.clear();
                       ++messages;
                     },
                 .on_move = [](Connection&) { FAIL(); }});
  run([](Endpoint to) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream && co_await stream->write("hello"));
    static_cast<void>(co_await stream->shutdown_write());
    std::array<std::byte, 1> byte;
    static_cast<void>(co_await stream->read(byte));
  }(server->endpoint()));
  EXPECT_EQ(messages, 1);
}

}  // namespace
}  // namespace tambour::moving_test
