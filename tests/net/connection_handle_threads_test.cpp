// ConnectionHandle used by several threads while its connection is served, moves between loops and
// ends.
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/connection_handle.h>
#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/scale.h"
#include "support/streams.h"

namespace tambour::connection_handle_threads_test {
namespace {

class ConnectionHandles : public test::OnEveryBackend {
 protected:
  [[nodiscard]] LoopGroupOptions of(std::size_t threads) const {
    return {.threads = threads, .loop = options()};
  }
};

TAMBOUR_ON_EVERY_BACKEND(ConnectionHandles);

/// A handle that several threads read.
class Published {
 public:
  void set(ConnectionHandle handle) {
    const std::lock_guard lock(mutex_);
    handle_ = std::move(handle);
  }
  [[nodiscard]] ConnectionHandle get() const {
    const std::lock_guard lock(mutex_);
    return handle_;
  }

 private:
  mutable std::mutex mutex_;
  ConnectionHandle handle_;
};

/// Reads lines until the peer closes, and expects "LETTER NUMBER" with rising numbers per letter.
Task<> read_numbered(Endpoint from, std::size_t expected, bool& complete) {
  auto stream = co_await TcpStream::connect(from);
  EXPECT_TRUE(stream);
  if (!stream) co_return;
  Buffer buffer;
  std::array<std::size_t, 26> next{};
  std::size_t count = 0;
  for (; count < expected; ++count) {
    auto line = co_await read_line(*stream, buffer);
    EXPECT_TRUE(line) << count << " of " << expected;
    if (!line) co_return;
    const std::string text = line->to_string();
    const std::size_t number = std::stoul(text.substr(2));
    EXPECT_EQ(number, next[std::size_t(text[0] - 'a')]++) << text;
    if (testing::Test::HasFailure()) co_return;
  }
  complete = true;
}

std::jthread send_lines(const Published& published, char letter, std::size_t count) {
  return std::jthread([&published, letter, count] {
    while (!published.get().is_open()) std::this_thread::yield();
    const ConnectionHandle handle = published.get();
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_TRUE(handle.send(std::string(1, letter) + ' ' + std::to_string(i) + '\n'));
  });
}

TEST_P(ConnectionHandles, the_bytes_of_each_thread_arrive_in_order) {
  const std::size_t value = test::scaled(2000);
  LoopGroup group(of(1));
  auto server = TcpServerGroup::listen(group, Endpoint::loopback_v4(0), {});
  ASSERT_TRUE(server);
  Published published;
  server->serve(
      {.on_connection = [&](Connection& connection) { published.set(connection.handle()); }});
  bool complete = false;
  {
    const auto a = send_lines(published, 'a', value);
    const auto b = send_lines(published, 'b', value);
    run(read_numbered(server->endpoint(), 2 * value, complete));
  }
  EXPECT_TRUE(complete);
}

TEST_P(ConnectionHandles, operations_follow_a_connection_that_moves) {
  const std::size_t value = test::scaled(2000);
  LoopGroup group(of(3));
  auto server = TcpServerGroup::listen(group, Endpoint::loopback_v4(0), {});
  ASSERT_TRUE(server);
  Published published;
  std::atomic<int> moves = 0;
  const auto move = [&](Connection& own_connection) {
    own_connection.move_to(group[(group.index_of(own_connection.loop()) + 1) % group.size()]);
  };
  server->serve({.on_connection =
                     [&](Connection& local) {
                       published.set(local.handle());
                       move(local);
                     },
                 .on_move =
                     [&](Connection& connection) {
                       EXPECT_EQ(published.get().get(), &connection);
                       if (++moves < 1000) move(connection);
                     }});
  bool complete = false;
  {
    const auto a = send_lines(published, 'a', value);
    const auto b = send_lines(published, 'b', value);
    // Threads of the group send too: at times the connection is on their loop.
    std::atomic<std::size_t> posted = 0;
    const auto c = std::jthread([&] {
      while (!published.get().is_open()) std::this_thread::yield();
      for (std::size_t i = 0; i < value; ++i) {
        group[0].post([&, i] {
          EXPECT_TRUE(published.get().send("c " + std::to_string(i) + '\n'));
          ++posted;
        });
      }
    });
    run(read_numbered(server->endpoint(), 3 * value, complete));
    EXPECT_TRUE(eventually([&] { return posted == value; }));
  }
  EXPECT_TRUE(complete);
  EXPECT_TRUE(eventually([&] { return moves > 0; }));
}

TEST_P(ConnectionHandles, tasks_run_on_the_loop_of_the_connection) {
  LoopGroup group(of(2));
  auto server = TcpServerGroup::listen(group, Endpoint::loopback_v4(0), {});
  ASSERT_TRUE(server);
  Published published;
  server->serve({.on_connection = [&](Connection& local) { published.set(local.handle()); }});
  std::vector<TcpStream> streams;
  run(test::connect_all(server->endpoint(), 1, streams));
  ASSERT_TRUE(eventually([&] { return published.get().is_open(); }));
  std::atomic<int> called = 0;
  constexpr int count = 100;
  for (int i = 0; i < count; ++i) {
    EXPECT_TRUE(published.get().post([&](Connection& connection) {
      EXPECT_EQ(&group[group.index_of(connection.loop())], &connection.loop());
      EXPECT_EQ(published.get().get(), &connection);
      ++called;
      if (called % 10 == 0) connection.move_to(group[(group.index_of(connection.loop()) + 1) % 2]);
    }));
  }
  EXPECT_TRUE(eventually([&] { return called == count; }));
}

TEST_P(ConnectionHandles, threads_may_race_with_the_end_of_connections_and_loops) {
  for (std::size_t round = test::scaled(40); round > 0; --round) {
    Published published;
    std::atomic<bool> stop = false;
    std::atomic<std::size_t> refused = 0;
    auto group = std::make_unique<LoopGroup>(of(2));
    std::optional<TcpServerGroup> server(
        TcpServerGroup::listen(*group, Endpoint::loopback_v4(0), {}).value());
    server->serve({.on_connection = [&](Connection& local) { published.set(local.handle()); }});
    std::vector<TcpStream> streams;
    run(test::connect_all(server->endpoint(), 2, streams));
    ASSERT_TRUE(eventually([&] { return published.get().is_open(); }));
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        const auto token = std::make_shared<int>();
        while (!stop) {
          const ConnectionHandle handle = published.get();
          if (!handle.send("x")) ++refused;
          handle.post([token, &group](Connection& connection) { connection.move_to((*group)[0]); });
        }
      });
    }
    if (round % 3 == 0) streams.clear();
    if (round % 3 == 1) published.get().close();
    if (round % 2 == 0) server.reset();
    group->stop();
    group->join();
    server.reset();
    group.reset();
    EXPECT_TRUE(eventually([&] { return refused > 10; }));
    stop = true;
  }
}

}  // namespace
}  // namespace tambour::connection_handle_threads_test
