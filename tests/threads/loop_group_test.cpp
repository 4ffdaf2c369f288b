// Loop groups: threads, round robin, and shutdown, on every backend.
#include <tambour/threads/loop_group.h>

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include <tambour/net/server_group.h>
#include <tambour/net/tcp_stream.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>
#include <tambour/threads/per_loop.h>

#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/scale.h"

namespace tambour::loop_group_test {
namespace {

using namespace std::chrono_literals;

class LoopGroups : public test::OnEveryBackend {
 protected:
  [[nodiscard]] LoopGroupOptions of(std::size_t threads) const {
    return {.threads = threads, .loop = options()};
  }
};

TAMBOUR_ON_EVERY_BACKEND(LoopGroups);

TEST_P(LoopGroups, each_loop_has_a_thread_of_its_own) {
  LoopGroup group(of(3));
  ASSERT_EQ(group.size(), 3U);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::set<const EventLoop*> loops;
  EXPECT_TRUE(group.for_each([&](EventLoop& loop) {
    EXPECT_TRUE(group.in_group_thread());
    EXPECT_EQ(loop.backend().kind, traits().kind);
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    loops.insert(&loop);
  }));
  EXPECT_EQ(threads.size(), 3U);
  EXPECT_EQ(loops, (std::set<const EventLoop*>{&group[0], &group[1], &group[2]}));
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
  EXPECT_FALSE(group.in_group_thread());
  EXPECT_EQ(group.index_of(group[2]), 2U);
  EXPECT_EQ(group.index_of(loop()), 3U);
}

TEST_P(LoopGroups, loops_without_work_run_until_stopped) {
  LoopGroup group(of(2));
  std::atomic<int> calls = 0;
  for (int round = 1; round <= 50; ++round) {
    group.post_to_all([&](EventLoop&) { ++calls; });
    EXPECT_TRUE(group.for_each([](EventLoop&) {}));  // Tasks posted before have been run.
    EXPECT_EQ(calls, 2 * round);
  }
  group.stop();
  group.join();
}

TEST_P(LoopGroups, stop_may_come_from_a_callback_and_more_than_once) {
  LoopGroup group(of(2));
  group[1].post([&group] {
    group.stop();
    group.stop();
  });
  group.join();
  group.join();
  group.stop();
  EXPECT_FALSE(group.for_each([](EventLoop&) { FAIL(); }));
}

TEST_P(LoopGroups, one_loop_that_stops_stops_all) {
  LoopGroup group(of(3));
  group[1].post([&group] { group[1].stop(); });
  group.join();
}

TEST_P(LoopGroups, join_rethrows_an_exception_of_a_callback) {
  LoopGroup group(of(2));
  group.next().post([] { throw std::runtime_error("thrown on a loop"); });
  EXPECT_THROW(group.join(), std::runtime_error);
  group.join();
}

TEST_P(LoopGroups, for_each_rethrows_an_exception_and_the_loops_keep_running) {
  LoopGroup group(of(2));
  EXPECT_THROW(group.for_each([](EventLoop&) { throw std::runtime_error("thrown on a loop"); }),
               std::runtime_error);
  EXPECT_TRUE(group.for_each([](EventLoop&) {}));
}

TEST_P(LoopGroups, for_each_ends_if_the_group_stops_concurrently) {
  for (std::size_t round = 0; round < test::scaled(1000) / 5; ++round) {
    LoopGroup group(of(2));
    std::jthread stopper([&group] { group.stop(); });
    while (group.for_each([](EventLoop&) {})) {
    }
  }
}

TEST_P(LoopGroups, objects_of_the_loops_are_destroyed_while_all_loops_exist) {
  struct Teller {
    LoopGroup& group;
    std::atomic<int>& resumed;
    ~Teller() {
      for (std::size_t i = 0; i < group.size(); ++i) group[i].post([] { FAIL(); });
      ++resumed;
    }
  };
  std::atomic<int> resumed = 0;
  LoopGroup group(of(3));
  EXPECT_TRUE(group.for_each([&](EventLoop& loop) {
    spawn(loop, [](LoopGroup& all, std::atomic<int>& count) -> Task<> {
      const Teller reporter{all, count};
      static_cast<void>(co_await sleep_for(1h));
    }(group, resumed));
  }));
  group.stop();
  group.join();
  EXPECT_EQ(resumed, 3);
}

/// A group with everything that its threads use.
struct UsedGroup {
  explicit UsedGroup(const LoopGroupOptions& options)
      : group(std::make_unique<LoopGroup>(options)),
        objects(std::make_unique<PerLoop<int>>(*group)),
        server(TcpServerGroup::listen(*group, Endpoint::loopback_v4(0)).value()) {
    server->serve([](TcpStream) -> Task<> { co_return; });
  }

  /// Uses and destroys all, in a child.
  int end_in_child() {
    ::alarm(60);  // Ends the child if it waits for a thread.
    EventLoop loop;
    spawn(loop, server->shut_down(1s));
    loop.run();
    server->stop();
    const auto copies = server->copy_listeners();
    if (copies || copies.error() != system_error(ECANCELED)) return 1;
    server.reset();
    group->post_to_all([](EventLoop&) { std::abort(); });
    if (group->for_each([](EventLoop&) { std::abort(); })) return 2;
    group->stop();
    group->join();
    group.reset();
    objects.reset();
    return 0;
  }

  std::unique_ptr<LoopGroup> group;
  std::unique_ptr<PerLoop<int>> objects;
  std::optional<TcpServerGroup> server;
};

TEST_P(LoopGroups, do_nothing_in_a_forked_child) {
  UsedGroup used(of(2));
  const auto wakeups = [&used] {
    std::atomic<std::uint64_t> sum = 0;
    EXPECT_TRUE(used.group->for_each([&sum](EventLoop& loop) { sum += loop.stats().wakeups; }));
    return sum.load();
  };
  wakeups();
  const std::uint64_t before = wakeups();
  EXPECT_EQ(test::in_child([&used] { return used.end_in_child(); }), 0);
  EXPECT_LE(wakeups(), before + 2) << "each loop was woken up by for_each() only";
}

TEST_P(LoopGroups, do_nothing_in_a_child_of_one_of_their_threads) {
  UsedGroup used(of(2));
  used.group->for_each([&used](EventLoop& loop) {
    if (&loop == &(*used.group)[1]) {
      EXPECT_EQ(test::in_child([&used] { return used.end_in_child(); }), 0);
    }
  });
}

TEST_P(LoopGroups, have_no_loops_in_a_forked_child) {
  LoopGroup group(of(1));
  // This style runs the statement in a forked child.
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_DEATH(group.next().post([] {}), "in a child after fork.* create the group after the fork");
}

TEST_P(LoopGroups, leave_nothing_open) {
  const std::size_t before = test::open_descriptors();
  for (int i = 0; i < 10; ++i) LoopGroup group(of(2));
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST_P(LoopGroups, threads_post_to_each_other) {
  const std::size_t value = test::scaled(20'000);
  LoopGroup group(of(3));
  std::array<std::atomic<std::size_t>, 3> received{};
  EXPECT_TRUE(group.for_each([&](EventLoop&) {
    for (std::size_t i = 0; i < value; ++i) {
      const std::size_t to = i % 3;
      group[to].post([&, to] {
        if (++received[to] == value) received[to].notify_one();
      });
    }
  }));
  std::size_t sum = 0;
  // Each loop posts to each; for_each() runs after the tasks that were posted before it.
  EXPECT_TRUE(group.for_each([](EventLoop&) {}));
  for (const auto& count : received) sum += count;
  EXPECT_EQ(sum, 3 * value);
}

TEST_P(LoopGroups, a_loop_that_fails_to_open_is_an_error_and_leaks_nothing) {
  TAMBOUR_NEEDS_LAST_DESCRIPTOR();
  const std::size_t before = test::open_descriptors();
  {
    const test::OpenFilesLimit limit(before + 3);
    const auto group = LoopGroup::open(of(16));
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error(), system_error(EMFILE));
  }
  EXPECT_EQ(test::open_descriptors(), before);
}

}  // namespace
}  // namespace tambour::loop_group_test
