// Servers over a group of loops: every spread policy, on every backend.
#include <tambour/net/server_group.h>

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/loop/timer.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>

#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/scale.h"
#include "support/streams.h"
#include "support/temporary_folder.h"

namespace tambour::server_group_test {
namespace {

using namespace std::chrono_literals;

class ServerGroups : public test::OnEveryBackend {
 protected:
  [[nodiscard]] LoopGroupOptions of(std::size_t threads, bool pin = false) const {
    return {.threads = threads, .pin = pin, .loop = options()};
  }

  template <class Server = TcpServerGroup>
  static Server listen(LoopGroup& group, const ListenOptions& options,
                       const Endpoint& at = Endpoint::loopback_v4(0)) {
    auto server = Server::listen(group, at, options);
    if (!server) throw std::system_error(server.error());
    return std::move(*server);
  }

  /// Returns which loop of the group answers: the server sends its index.
  static Task<int> ask(Endpoint to) {
    auto stream = co_await TcpStream::connect(to);
    if (!stream || !co_await stream->write("?")) co_return -1;
    std::array<std::byte, 1> answer{};
    const auto got = co_await stream->read(answer);
    co_return got && *got == 1 ? int(answer[0]) : -1;
  }
};

/// Answers with the index of its loop until the peer closes.
auto index_in(LoopGroup& group) {
  return [&group](TcpStream peer) -> Task<> {
    EXPECT_TRUE(group.in_group_thread());
    std::array<std::byte, 1> byte{};
    for (;;) {
      const auto got = co_await peer.read(byte);
      if (!got || *got == 0) co_return;
      byte[0] = std::byte(group.index_of(peer.loop()));
      if (!co_await peer.write(byte)) co_return;
    }
  };
}

TAMBOUR_ON_EVERY_BACKEND(ServerGroups);

TEST_P(ServerGroups, every_spread_serves_and_shuts_down) {
  for (const Placement placement : {Placement::kernel, Placement::processor, Placement::round_robin,
                                    Placement::peer_address, Placement::least_loaded}) {
    LoopGroup group(of(3, true));
    TcpServerGroup server = listen(group, {.placement = placement});
    server.serve(index_in(group));
    std::set<int> answered;
    run([](TcpServerGroup& local, std::set<int>& indices) -> Task<> {
      for (int i = 0; i < 30; ++i) indices.insert(co_await ask(local.endpoint()));
      co_await local.shut_down(10s);
      EXPECT_EQ(local.connections(), 0U);
    }(server, answered));
    EXPECT_EQ(server.accepted(), 30U);
    EXPECT_FALSE(answered.contains(-1));
    if (placement == Placement::round_robin) {
      EXPECT_EQ(answered, (std::set{0, 1, 2}));
    }
    if (placement == Placement::peer_address) {
      EXPECT_EQ(answered.size(), 1U);
    }
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(group.load(group[i]), 0U);
    run([](Endpoint to) -> Task<> {
      EXPECT_FALSE(co_await TcpStream::connect(to));
    }(server.endpoint()));
  }
}

TEST_P(ServerGroups, least_loaded_balances_connections) {
  LoopGroup group(of(3));
  TcpServerGroup server = listen(group, {.placement = Placement::least_loaded});
  server.serve(index_in(group));
  std::vector<TcpStream> streams;
  run(test::connect_all(server.endpoint(), 9, streams));
  EXPECT_TRUE(eventually([&] { return server.connections() == 9; }));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(group.load(group[i]), 3U);
  streams.clear();
  EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
}

TEST_P(ServerGroups, streams_that_a_handler_refuses_are_not_counted) {
  LoopGroup group(of(2));
  auto server = listen(group, {.connections_max = 3});
  server.serve([](TcpStream) -> Task<> { return {}; });
  // The server would not accept more than three.
  run([](Endpoint to) -> Task<> {
    for (int i = 0; i < 10; ++i) EXPECT_EQ(co_await ask(to), -1);
  }(server.endpoint()));
  EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
}

TEST_P(ServerGroups, processor_needs_threads_that_are_pinned) {
  LoopGroup group(of(2));
  const auto server =
      TcpServerGroup::listen(group, Endpoint::loopback_v4(0), {.placement = Placement::processor});
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  if (CPU_COUNT(&set) == 1) GTEST_SKIP() << "there is one processor, to which all are pinned";
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error(), system_error(EINVAL));
}

TEST_P(ServerGroups, processor_is_the_one_that_received) {
  LoopGroup group(of(0, true));
  TcpServerGroup server = listen(group, {.placement = Placement::processor});
  server.serve(index_in(group));
  // Over loopback, packets are received on the CPU of the sender.
  for (std::size_t i = 0; i < group.size(); ++i) {
    int answer = -1;
    std::thread client([&] {
      cpu_set_t set;
      CPU_ZERO(&set);
      ::sched_getaffinity(0, sizeof set, &set);
      int processor = -1;
      for (std::size_t nth = 0; nth <= i; ++nth) {
        do {
          ++processor;
        } while (!CPU_ISSET(processor, &set));
      }
      CPU_ZERO(&set);
      CPU_SET(processor, &set);
      ASSERT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      ASSERT_EQ(::connect(fd, server.endpoint().data(), server.endpoint().size()), 0);
      char byte = '?';
      EXPECT_EQ(::send(fd, &byte, 1, 0), 1);
      EXPECT_EQ(::recv(fd, &byte, 1, 0), 1);
      ::close(fd);
      answer = byte;
    });
    client.join();
    EXPECT_EQ(answer, int(i));
  }
}

TEST_P(ServerGroups, unix_connections_are_distributed_with_round_robin) {
  const test::TemporaryFolder folder;
  LoopGroup group(of(2));
  const auto at = Endpoint::unix_name(folder.path() + "/socket").value();
  const auto refused = UnixServerGroup::listen(group, at);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), system_error(EOPNOTSUPP));
  auto server = listen<UnixServerGroup>(group, {.placement = Placement::round_robin}, at);
  std::atomic<int> served = 0;
  server.serve([&served](UnixStream) -> Task<> {
    ++served;
    co_return;
  });
  run([](Endpoint to) -> Task<> {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(co_await UnixStream::connect(to));
  }(at));
  EXPECT_TRUE(eventually([&] { return served == 4 && server.connections() == 0; }));
}

TEST_P(ServerGroups, serves_connections) {
  LoopGroup group(of(2));
  TcpServerGroup server = listen(group, {.placement = Placement::round_robin});
  std::atomic<int> open = 0;
  server.serve({.on_connection = [&](Connection&) { ++open; },
                .on_message = [&](Connection& connection,
                                  Buffer& bytes) { connection.send(std::move(bytes)); },
                .on_close = [&](Connection&, Error) { --open; }});
  for (int i = 0; i < 10; ++i) run(test::expect_echo_from(server.endpoint()));
  EXPECT_TRUE(eventually([&] { return open == 0 && server.connections() == 0; }));
  EXPECT_EQ(server.accepted(), 10U);
}

TEST_P(ServerGroups, all_loops_share_move_only_callbacks) {
  LoopGroup group(of(2));
  TcpServerGroup server = listen(group, {.placement = Placement::round_robin});
  std::atomic<int> total = 0;
  server.serve({.on_message = [&total, kind = std::make_unique<const int>(1)](
                                  Connection& connection, Buffer& bytes) {
    total += *kind;
    connection.send(std::move(bytes));
  }});
  for (int i = 0; i < 6; ++i) run(test::expect_echo_from(server.endpoint()));
  EXPECT_GE(total, 6);
}

TEST_P(ServerGroups, connections_max_holds_for_all_loops) {
  LoopGroup group(of(2));
  TcpServerGroup server =
      listen(group, {.placement = Placement::round_robin, .connections_max = 3});
  std::atomic<std::size_t> now = 0;
  std::atomic<std::size_t> limit = 0;
  server.serve([&](TcpStream peer) -> Task<> {
    const std::size_t mine = ++now;
    std::size_t before = limit;
    while (before < mine && !limit.compare_exchange_weak(before, mine)) {
    }
    std::array<std::byte, 1> byte;
    static_cast<void>(co_await peer.read(byte));
    --now;
  });
  run([](Endpoint to, const std::atomic<std::size_t>& served) -> Task<> {
    for (int round = 0; round < 3; ++round) {
      std::vector<TcpStream> all;
      co_await test::connect_all(to, 8, all);
      while (served < 3) static_cast<void>(co_await sleep_for(1ms));
      static_cast<void>(co_await sleep_for(5ms));
    }
  }(server.endpoint(), now));
  EXPECT_TRUE(eventually([&] { return server.accepted() == 24 && server.connections() == 0; }));
  EXPECT_EQ(limit, 3U);
}

TEST_P(ServerGroups, connections_max_is_distributed_completely) {
  LoopGroup group(of(2));
  TcpServerGroup server = listen(group, {.placement = Placement::kernel, .connections_max = 3});
  server.serve(ConnectionCallbacks{});
  run([](TcpServerGroup& local) -> Task<> {
    std::vector<TcpStream> all;
    // The kernel chooses the listener by port, so with this many connections each loop is offered
    // its share.
    co_await test::connect_all(local.endpoint(), 60, all);
    while (local.connections() < 3) static_cast<void>(co_await sleep_for(1ms));
    static_cast<void>(co_await sleep_for(20ms));
    EXPECT_EQ(local.connections(), 3U);
  }(server));
}

TEST_P(ServerGroups, may_be_stopped_after_their_group_has_ended) {
  LoopGroup group(of(2));
  TcpServerGroup server = listen(group, {});
  server.serve(ConnectionCallbacks{});
  group.stop();
  group.join();
  server.stop();
  group.post_to_all([](EventLoop&) { FAIL() << "there is no loop any more"; });
  run([](TcpServerGroup& local) -> Task<> { co_await local.shut_down(1h); }(server));
  EXPECT_EQ(server.connections(), 0U);
}

TEST_P(ServerGroups, two_tasks_may_shut_down_a_group_server) {
  LoopGroup group(of(2));
  TcpServerGroup server = listen(group, {});
  server.serve([](TcpStream peer) -> Task<> {
    std::array<std::byte, 1> byte;
    static_cast<void>(co_await peer.read(byte));
  });
  run([](TcpServerGroup& local) -> Task<> {
    std::vector<TcpStream> all;
    co_await test::connect_all(local.endpoint(), 4, all);
    while (local.connections() < 4) static_cast<void>(co_await sleep_for(1ms));
    co_await when_all(local.shut_down(10ms), local.shut_down(20ms));
    EXPECT_EQ(local.connections(), 0U);
  }(server));
}

TEST_P(ServerGroups, shut_down_stops_the_remaining_handlers) {
  LoopGroup group(of(2));
  TcpServerGroup server = listen(group, {.placement = Placement::round_robin});
  std::atomic<int> asked = 0;
  server.serve([&](TcpStream peer) -> Task<> {
    std::array<std::byte, 1> byte;
    const auto got = co_await peer.read(byte);
    if (!got && got.error() == system_error(ECANCELED)) ++asked;
  });
  run([](TcpServerGroup& local) -> Task<> {
    std::vector<TcpStream> all;
    co_await test::connect_all(local.endpoint(), 6, all);
    while (local.connections() < 6) static_cast<void>(co_await sleep_for(1ms));
    co_await local.shut_down(10ms);
    EXPECT_EQ(local.connections(), 0U);
  }(server));
  EXPECT_EQ(asked, 6);
}

// A stop of the task that awaits shut_down() is requested, but a handler takes longer to end.
TEST_P(ServerGroups, shut_down_waits_without_polling_until_the_last_has_ended) {
  LoopGroup group(of(1));
  TcpServerGroup server = listen(group, {});
  server.serve([](TcpStream peer) -> Task<> {
    EventLoop& its_loop = peer.loop();
    // The stop request does not reach this scope.
    TaskScope scope(its_loop);
    scope.spawn([](TcpStream quiet) -> Task<> {
      std::array<std::byte, 1> byte;
      static_cast<void>(co_await quiet.read(byte));
    }(std::move(peer)));
    co_await scope.join();
  });
  std::uint64_t iterations = 0;
  run([](TcpServerGroup& local, std::uint64_t& all_iterations) -> Task<> {
    EventLoop& its_loop = *(co_await this_task).loop;
    std::vector<TcpStream> all;
    co_await test::connect_all(local.endpoint(), 1, all);
    while (local.connections() < 1) static_cast<void>(co_await sleep_for(1ms));
    const std::uint64_t before = its_loop.stats().iterations;
    Timer leave(its_loop, [&all] { all.clear(); });
    leave.start(100ms);
    // The timeout requests a stop of shut_down(), which still returns only when all handlers have
    // ended.
    static_cast<void>(co_await timeout(10ms, local.shut_down(10s)));
    EXPECT_EQ(local.connections(), 0U);
    all_iterations = its_loop.stats().iterations - before;
  }(server, iterations));
  // If the loop busy-polls, the number of iterations is meaningless.
  if (options().spin == 0ns) {
    EXPECT_LT(iterations, 50U);
  }
}

TEST_P(ServerGroups, end_before_and_after_their_group_stops_under_load) {
  for (int round = 0; round < 12; ++round) {
    LoopGroup group(of(2));
    TcpServerGroup server =
        listen(group, {.placement = round % 2 == 0 ? Placement::kernel : Placement::round_robin});
    if (round % 3 == 0) {
      server.serve({.on_message = [](Connection& connection, Buffer& bytes) {
        connection.send(std::move(bytes));
      }});
    } else {
      server.serve(index_in(group));
    }
    const Endpoint to = server.endpoint();
    std::vector<TcpStream> streams;
    run([](Endpoint at, std::vector<TcpStream>& all) -> Task<> {
      for (int i = 0; i < 10; ++i) {
        auto stream = co_await TcpStream::connect(at);
        if (stream && co_await stream->write("?")) all.push_back(std::move(*stream));
      }
    }(to, streams));
    if (round % 4 < 2) group.stop();
    if (round % 4 == 1) group.join();
    // The server is destroyed here, and then the group.
  }
}

/// What a callback may do, on several threads at once, and what it must leave to another thread.
TEST_P(ServerGroups, may_be_stopped_by_callbacks_and_destroyed_by_tasks_they_post) {
  for (const bool with_tasks : {false, true}) {
    LoopGroup group(of(3));
    auto server = std::make_unique<TcpServerGroup>(listen(group, {.placement = Placement::kernel}));
    const auto callback = [&asked = loop(), &server, local = server.get()] {
      local->stop();
      local->keep_path();
      EXPECT_GE(local->accepted(), 1U);
      EXPECT_GE(local->connections(), 1U);
      static_cast<void>(local->copy_listeners());
      asked.post([&server] { server.reset(); });
    };
    if (with_tasks) {
      server->serve([callback](TcpStream peer) -> Task<> {
        callback();
        Buffer received;
        while ((co_await peer.read(received)).value_or(0) != 0) {
        }
        ADD_FAILURE() << "a handler of a destroyed server was resumed";
      });
    } else {
      server->serve({.on_connection = [callback](Connection&) { callback(); },
                     .on_close = [](Connection&, Error) { ADD_FAILURE(); }});
    }
    run([](Endpoint to) -> Task<> {
      std::vector<TcpStream> all;
      for (int i = 0; i < 6; ++i) {
        if (auto stream = co_await TcpStream::connect(to)) all.push_back(std::move(*stream));
      }
      Buffer nothing;
      for (TcpStream& stream : all) {
        // Linux drops some connections whose handshake ends while the listener is being closed, and
        // the client gets an error only when it sends.
        static_cast<void>(co_await stream.write("?"));
        EXPECT_EQ((co_await stream.read(nothing)).value_or(0), 0U);
      }
    }(server->endpoint()));
    EXPECT_TRUE(eventually([&] { return server == nullptr; }));
  }
}

TEST_P(ServerGroups, report_exceptions_on_their_loops_and_keep_serving) {
  for (const bool with_tasks : {false, true}) {
    LoopGroup group(of(2));
    std::atomic<int> reported = 0;
    TcpServerGroup server = listen(
        group,
        {.placement = Placement::round_robin, .on_error = [&](const std::exception_ptr& thrown) {
           EXPECT_TRUE(group.in_group_thread());
           EXPECT_THROW(std::rethrow_exception(thrown), std::runtime_error);
           ++reported;
         }});
    if (with_tasks) {
      server.serve([](TcpStream peer) -> Task<> {
        Buffer buffer;
        static_cast<void>(co_await peer.read(buffer));
        throw std::runtime_error("by a handler");
      });
    } else {
      server.serve(
          {.on_message = [](Connection&, Buffer&) { throw std::runtime_error("by a callback"); }});
    }
    run([](Endpoint to) -> Task<> {
      for (int i = 0; i < 4; ++i) EXPECT_EQ(co_await ask(to), -1);
    }(server.endpoint()));
    EXPECT_TRUE(eventually([&] { return reported == 4 && server.connections() == 0; }));
    EXPECT_EQ(server.handler_exceptions(), 4U);
    group.stop();
    group.join();  // Throws nothing.
  }
}

TEST_P(ServerGroups, shutdown_tokens_notify_each_loop_on_its_thread) {
  for (const Placement placement : {Placement::kernel, Placement::round_robin}) {
    LoopGroup group(of(2));
    TcpServerGroup server = listen(group, {.placement = placement});
    std::atomic<int> reading = 0;
    std::atomic<int> notified = 0;
    server.serve([&](TcpStream peer) -> Task<> {
      const auto thread = std::this_thread::get_id();
      const std::stop_callback notice(server.shutdown_token(peer.loop()), [&] {
        EXPECT_EQ(std::this_thread::get_id(), thread);
        peer.close();
        ++notified;
      });
      ++reading;
      Buffer buffer;
      const auto got = co_await peer.read(buffer);
      EXPECT_EQ(got.error(), system_error(ECANCELED));
    });
    run([](TcpServerGroup& local, EventLoop& first, const std::atomic<int>& waiting) -> Task<> {
      std::vector<TcpStream> all;
      co_await test::connect_all(local.endpoint(), 6, all);
      // Not connections(), which also counts one that has not reached its loop: its token would be
      // stopped before the handler runs.
      while (waiting < 6) static_cast<void>(co_await sleep_for(1ms));
      EXPECT_FALSE(local.shutdown_token(first).stop_requested());
      // Without the notice, it would wait for an hour.
      co_await local.shut_down(1h);
      EXPECT_TRUE(local.shutdown_token(first).stop_requested());
    }(server, group[0], reading));
    EXPECT_EQ(notified, 6);
  }
}

TEST_P(ServerGroups, list_their_connections_on_each_loop) {
  LoopGroup group(of(3));
  TcpServerGroup server = listen(group, {.placement = Placement::round_robin});
  std::atomic<int> closed = 0;
  server.serve({.on_close = [&](Connection&, Error) { ++closed; }});
  std::vector<TcpStream> streams;
  run(test::connect_all(server.endpoint(), 9, streams));
  std::atomic<int> listed = 0;
  EXPECT_TRUE(eventually([&] { return server.connections() == 9; }));
  // A socket may still be on its way to its loop.
  EXPECT_TRUE(eventually([&] {
    server.for_each_connection([&](Connection& connection) {
      EXPECT_TRUE(connection.is_open());  // Aborts on another thread.
      connection.close();
      ++listed;
    });
    return closed == 9;
  }));
  EXPECT_EQ(listed, 9);
  EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
}

TEST_P(ServerGroups, leave_nothing_open) {
  const std::size_t before = test::open_descriptors();
  {
    LoopGroup group(of(3));
    TcpServerGroup server = listen(group, {});
    EXPECT_EQ(
        TcpServerGroup::listen(group, server.endpoint(), {.placement = Placement::round_robin})
            .error(),
        system_error(EADDRINUSE));
    server.serve(index_in(group));
  }
  EXPECT_EQ(test::open_descriptors(), before);
}

}  // namespace
}  // namespace tambour::server_group_test
