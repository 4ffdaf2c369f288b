// Loop groups: choice of the loop, threads and their names, for all backends.
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <array>
#include <atomic>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include <tambour/threads/loop_group.h>

namespace tambour::loop_choice_test {
namespace {

TEST(LoopGroup, round_robin_alternates_between_loops) {
  LoopGroup group({.threads = 3});
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(&group.next(), &group[i]);
  }
}

TEST(LoopGroup, hashes_are_mixed) {
  LoopGroup group({.threads = 4});
  std::array<int, 4> chosen{};
  for (std::uint64_t i = 0; i < 4000; ++i) {
    EventLoop& loop = group.by_hash(i * 64);
    EXPECT_EQ(&loop, &group.by_hash(i * 64));
    ++chosen[group.index_of(loop)];
  }
  for (const int count : chosen) EXPECT_NEAR(count, 1000, 150);
}

TEST(LoopGroup, returns_the_least_loaded_loop) {
  LoopGroup group({.threads = 3});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(&group.least_loaded(), &group[i]);
    group.add_load(group[i]);
  }
  group.add_load(group[1], -1);
  EXPECT_EQ(&group.least_loaded(), &group[1]);
  group.add_load(group[1], 10);
  EXPECT_EQ(group.load(group[1]), 10U);
  EXPECT_EQ(&group.least_loaded(), &group[0]);
}

TEST(LoopGroup, gives_its_threads_their_timer_slack) {
  const auto slack_of = [](Duration given) {
    LoopGroup group({.threads = 1, .loop = {.timer_slack = given}});
    int slack_ns = 0;
    group.for_each([&](EventLoop&) { slack_ns = ::prctl(PR_GET_TIMERSLACK); });
    return slack_ns;
  };
  const int local = ::prctl(PR_GET_TIMERSLACK);
  EXPECT_EQ(slack_of(Duration(1234)), 1234);
  EXPECT_EQ(slack_of(Duration::zero()), local) << "a new thread inherits the slack of its creator";
  EXPECT_EQ(::prctl(PR_GET_TIMERSLACK), local);
}

TEST(LoopGroup, names_its_threads) {
  const auto name_of_last = [](const std::string& given, std::size_t threads) {
    LoopGroup group({.threads = threads, .name = given});
    std::array<char, 32> name{};
    group.for_each([&](EventLoop& loop) {
      if (&loop == &group[threads - 1])
        ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    });
    return std::string(name.data());
  };
  EXPECT_EQ(name_of_last("tambour", 2), "tambour/1");
  EXPECT_EQ(name_of_last("a name of many letters", 11), "a name of ma/10");
  EXPECT_EQ(name_of_last("", 1), "/0");
}

TEST(LoopGroup, pins_its_threads) {
  LoopGroup group({.threads = 4, .pin = true});
  std::atomic<int> pinned = 0;
  EXPECT_TRUE(group.for_each([&](EventLoop&) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1) ++pinned;
  }));
  EXPECT_EQ(pinned, 4);
}

TEST(LoopGroup, has_a_loop_for_each_processor_by_default) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(LoopGroup().size(), std::size_t(CPU_COUNT(&set)));
}

TEST(LoopGroup, is_not_simulated) {
  const auto group = LoopGroup::open({.loop = {.backend = BackendKind::simulated}});
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error(), system_error(EINVAL));
}

TEST(LoopGroupDeath, an_exception_that_is_never_joined_terminates_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        LoopGroup group({.threads = 1});
        group[0].post([] { throw std::runtime_error("never joined"); });
      },
      "never joined");
}

TEST(LoopGroupDeath, waiting_for_the_group_on_its_own_thread_aborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  LoopGroup group({.threads = 1});
  EXPECT_DEATH(
      {
        LoopGroup local({.threads = 1});
        local[0].post([&local] { local.join(); });
        local.join();
      },
      "LoopGroup::join.* by a thread of the LoopGroup .created in .*loop_choice_test");
  EXPECT_DEATH(
      {
        LoopGroup loop_group({.threads = 1});
        loop_group[0].post([&loop_group] { loop_group.for_each([](EventLoop&) {}); });
        loop_group.join();
      },
      "LoopGroup::for_each.* by a thread of the LoopGroup .created in .*use post_to_all");
}

}  // namespace
}  // namespace tambour::loop_choice_test
