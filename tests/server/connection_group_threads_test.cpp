// ConnectionGroup over several loops: threads send while connections come, move and go.
#include <malloc.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/connection_group.h>
#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/scale.h"
#include "support/streams.h"

namespace tambour::connection_group_threads_test {
namespace {

class GroupsOverLoops : public test::OnEveryBackend {
 protected:
  [[nodiscard]] LoopGroupOptions of(std::size_t threads) const {
    return {.threads = threads, .loop = options()};
  }
};

TAMBOUR_ON_EVERY_BACKEND(GroupsOverLoops);

/// Reads lines "LETTER NUMBER" until `last` of each of the letters has arrived, and expects all
/// numbers of each letter in order.
Task<> read_all(TcpStream& stream, int letters, std::size_t last) {
  Buffer buffer;
  std::array<std::size_t, 26> next{};
  for (int complete = 0; complete < letters;) {
    auto line = co_await read_line(stream, buffer);
    EXPECT_TRUE(line);
    if (!line) co_return;
    const std::string text = line->to_string();
    const std::size_t number = std::stoul(text.substr(2));
    EXPECT_EQ(number, next[std::size_t(text[0] - 'a')]++) << text;
    if (testing::Test::HasFailure()) co_return;
    if (number == last) ++complete;
  }
}

TEST_P(GroupsOverLoops, the_messages_of_each_thread_arrive_in_order) {
  const std::size_t count = test::scaled(2000);
  LoopGroup loops(of(2));
  ConnectionGroup group(loops, {.unsent_bytes_max = SIZE_MAX, .queued_bytes_max = SIZE_MAX});
  auto server = TcpServerGroup::listen(loops, Endpoint::loopback_v4(0), {});
  ASSERT_TRUE(server);
  server->serve({.on_connection = [&](Connection& connection) { group.add(connection); },
                 .limits = {.unsent_bytes_max = SIZE_MAX}});
  std::vector<TcpStream> streams;
  run(test::connect_all(server->endpoint(), 10, streams));
  ASSERT_TRUE(eventually([&] { return group.size() == streams.size(); }));
  std::vector<std::jthread> threads;
  for (const char letter : {'a', 'b'}) {
    threads.emplace_back([&group, count, letter] {
      for (std::size_t i = 0; i < count; ++i)
        group.send(std::string(1, letter) + ' ' + std::to_string(i) + '\n');
    });
  }
  // One of the group's own threads sends too.
  loops[0].post([&] {
    for (std::size_t i = 0; i < count; ++i) group.send("c " + std::to_string(i) + '\n');
  });
  std::vector<Task<>> readers;
  for (TcpStream& stream : streams) readers.push_back(read_all(stream, 3, count - 1));
  run([](std::vector<Task<>> all) -> Task<> {
    co_await when_all(std::move(all));
  }(std::move(readers)));
  threads.clear();
  EXPECT_TRUE(eventually([&] { return group.stats().sent == 3 * count * streams.size(); }));
  EXPECT_EQ(group.stats().skipped, 0U);
}

TEST_P(GroupsOverLoops, a_connection_that_moves_may_be_added_again) {
  LoopGroup loops(of(2));
  ConnectionGroup group(loops);
  auto server = TcpServerGroup::listen(loops, Endpoint::loopback_v4(0), {});
  ASSERT_TRUE(server);
  std::atomic<int> moves = 0;
  server->serve({.on_connection =
                     [&](Connection& local) {
                       group.add(local);
                       local.move_to(loops[1 - loops.index_of(local.loop())]);
                     },
                 .on_move =
                     [&](Connection& connection) {
                       EXPECT_FALSE(group.contains(connection));
                       EXPECT_EQ(group.size(), 0U);
                       ++moves;
                       group.add(connection);
                       group.send("hello");
                     }});
  run([](Endpoint to) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream);
    Buffer buffer;
    while (buffer.size() < 5) EXPECT_TRUE(co_await stream->read(buffer));
    EXPECT_EQ(buffer, "hello");
  }(server->endpoint()));
  EXPECT_EQ(moves, 1);
  EXPECT_TRUE(eventually([&] { return group.size() == 0; }));
}

TEST_P(GroupsOverLoops, threads_may_send_while_connections_come_and_go) {
  const std::size_t rounds = test::scaled(1000) / 20;
  LoopGroup loops(of(2));
  auto server = TcpServerGroup::listen(loops, Endpoint::loopback_v4(0), {});
  ASSERT_TRUE(server);
  auto group = std::make_unique<ConnectionGroup>(loops);
  server->serve({.on_connection = [&](Connection& own_entry) { group->add(own_entry); },
                 .on_message =
                     [&](Connection& own_connection, Buffer& bytes) {
                       group->send_except(own_connection, std::exchange(bytes, {}));
                     },
                 .on_move = [&](Connection& local) { group->add(local); }});
  {
    std::atomic<bool> stop = false;
    const std::jthread sender([&] {
      while (!stop) {
        if (!group->send("x")) std::this_thread::yield();
      }
    });
    const std::jthread mover([&] {
      while (!stop) {
        server->for_each_connection([&](Connection& connection) {
          connection.move_to(loops[1 - loops.index_of(connection.loop())]);
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
    for (std::size_t round = 0; round < rounds; ++round) {
      std::vector<TcpStream> streams;
      run(test::connect_all(server->endpoint(), 5, streams));
      run([](TcpStream& stream) -> Task<> {
        EXPECT_TRUE(co_await stream.write(std::string_view("hello")));
        Buffer buffer;
        EXPECT_TRUE(co_await stream.read(buffer));
      }(streams[0]));
    }
    stop = true;
  }
  EXPECT_TRUE(eventually([&] { return group->size() == 0; }));
  // Before the group that the callbacks use.
  loops.stop();
  loops.join();
}

TEST_P(GroupsOverLoops, may_be_destroyed_on_another_thread_while_it_has_members) {
  for (std::size_t round = 0; round < test::scaled(1000) / 20; ++round) {
    LoopGroup loops(of(2));
    std::optional<ConnectionGroup> group(std::in_place, loops);
    auto server = TcpServerGroup::listen(loops, Endpoint::loopback_v4(0), {});
    ASSERT_TRUE(server);
    std::atomic<int> added = 0;
    server->serve({.on_connection = [&](Connection& connection) {
      group->add(connection);
      ++added;
    }});
    std::vector<TcpStream> streams;
    run(test::connect_all(server->endpoint(), 4, streams));
    ASSERT_TRUE(eventually([&] { return added == 4; }));
    group->send("x");
    if (round % 2 == 0) streams.clear();
    group.reset();
    if (round % 3 == 0) server->stop();
  }
}

TEST_P(GroupsOverLoops, messages_that_are_queued_when_it_is_destroyed_are_lost) {
  LoopGroup loops(of(1));
  std::atomic<int> skipped = 0;
  // Every member is slow, so each delivery would invoke the callback.
  std::optional<ConnectionGroup> group(
      std::in_place, loops,
      ConnectionGroupOptions{.unsent_bytes_max = 0,
                             .on_skip = [&](Connection&, std::size_t) { ++skipped; }});
  auto server = TcpServerGroup::listen(loops, Endpoint::loopback_v4(0), {});
  ASSERT_TRUE(server);
  server->serve({.on_connection = [&](Connection& connection) { group->add(connection); }});
  std::vector<TcpStream> streams;
  run(test::connect_all(server->endpoint(), 2, streams));
  ASSERT_TRUE(eventually([&] { return group->size() == 2; }));
  group->send("x");
  ASSERT_TRUE(eventually([&] { return skipped == 2; }));
  std::atomic<bool> is_busy = false;
  std::atomic<bool> may_go_on = false;
  loops[0].post([&] {
    is_busy = true;
    is_busy.notify_all();
    may_go_on.wait(false);
  });
  is_busy.wait(false);
  group->send("y");
  group.reset();
  may_go_on = true;
  may_go_on.notify_all();
  std::atomic<bool> is_done = false;
  loops[0].post([&] { loops[0].post([&] { is_done = true; }); });
  ASSERT_TRUE(eventually([&] { return is_done.load(); }));
  EXPECT_EQ(skipped, 2);
}

TEST_P(GroupsOverLoops, short_messages_take_little_memory) {
  LoopGroup loops(of(1));
  ConnectionGroup group(loops);
  auto server = TcpServerGroup::listen(loops, Endpoint::loopback_v4(0), {});
  ASSERT_TRUE(server);
  server->serve({.on_connection = [&](Connection& connection) { group.add(connection); }});
  std::vector<TcpStream> streams;
  run(test::connect_all(server->endpoint(), 1, streams));
  ASSERT_TRUE(eventually([&] { return group.size() == 1; }));
  std::atomic<bool> is_busy = false;
  std::atomic<bool> may_go_on = false;
  loops[0].post([&] {
    is_busy = true;
    is_busy.notify_all();
    may_go_on.wait(false);
  });
  is_busy.wait(false);
  // Sanitizers report no heap use.
  const std::size_t before = ::mallinfo2().uordblks;
  constexpr std::size_t count = 10'000;
  for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(group.send("xy"));
  EXPECT_LT((::mallinfo2().uordblks - before) / count, 512U);
  may_go_on = true;
  may_go_on.notify_all();
  ASSERT_TRUE(eventually([&] { return group.stats().sent == count; }));
}

}  // namespace
}  // namespace tambour::connection_group_threads_test
