// PerLoop: objects are constructed, used and destroyed on the threads of their loops.
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace tambour::per_loop_test {
namespace {

using namespace std::chrono_literals;

class PerLoops : public test::OnEveryBackend {
 public:
  void SetUp() override {
    test::OnEveryBackend::SetUp();
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
  }
  [[nodiscard]] LoopGroupOptions group_options(unsigned threads) const {
    LoopGroupOptions wanted;
    wanted.threads = threads;
    wanted.loop = options();
    return wanted;
  }
};

TAMBOUR_ON_EVERY_BACKEND(PerLoops);

/// Cannot be moved, and is destroyed on the thread that made it.
class Counter {
 public:
  explicit Counter(EventLoop& loop, std::atomic<int>& alive) : loop_(loop), alive_(alive) {
    ++alive_;
  }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  ~Counter() {
    EXPECT_EQ(std::this_thread::get_id(), thread_);
    --alive_;
  }
  int add() {
    EXPECT_EQ(std::this_thread::get_id(), thread_);
    return ++count_;
  }
  [[nodiscard]] EventLoop& loop() const { return loop_; }

 private:
  EventLoop& loop_;
  std::atomic<int>& alive_;
  std::thread::id thread_ = std::this_thread::get_id();
  int count_ = 0;
};

TEST_P(PerLoops, each_loop_has_its_own_object) {
  std::atomic<int> alive = 0;
  LoopGroup group(group_options(3));
  {
    PerLoop<Counter> counters(group, [&](EventLoop& loop) { return Counter(loop, alive); });
    EXPECT_EQ(alive, 3);
    const auto count = [&counters](EventLoop& loop) {
      EXPECT_EQ(&counters.local().loop(), &loop);
      return counters->add();
    };
    for (int i = 1; i <= 3; ++i) {
      for (std::size_t index = 0; index < group.size(); ++index) {
        const auto counted =
            block_on(run_on(group[index], count, std::ref(group[index])), options());
        EXPECT_EQ(counted, Result<int>(i));
      }
    }
  }
  EXPECT_EQ(alive, 0);
}

TEST_P(PerLoops, objects_are_made_of_the_loop_or_without_arguments) {
  struct OfLoop {
    explicit OfLoop(EventLoop& of) : loop(of), timer(of, [] {}) {}
    EventLoop& loop;
    Timer timer;
  };
  LoopGroup group(group_options(2));
  PerLoop<OfLoop> of_loop(group);
  PerLoop<std::vector<int>> plain(group);
  group.for_each([&](EventLoop& loop) {
    EXPECT_EQ(&of_loop->loop, &loop);
    EXPECT_TRUE(plain->empty());
    plain->push_back(1);
  });
  group.for_each([&](EventLoop&) { EXPECT_EQ((*plain).size(), 1U); });
}

/// As a connection to a database would be opened.
TEST_P(PerLoops, a_factory_may_be_a_task) {
  LoopGroup group(group_options(2));
  PerLoop<std::string> values(group, [](EventLoop& loop) -> Task<std::string> {
    static_cast<void>(co_await sleep_for(1ms));
    const TaskContext& context = co_await this_task;
    EXPECT_EQ(context.loop, &loop);
    co_return "connected";
  });
  PerLoop<std::string> results(group, [](EventLoop&) -> Task<Result<std::string>> {
    static_cast<void>(co_await sleep_for(1ms));
    co_return std::string("connected");
  });
  group.for_each([&](EventLoop&) {
    EXPECT_EQ(*values, "connected");
    EXPECT_EQ(*results, "connected");
  });
}

TEST_P(PerLoops, a_factory_that_fails_destroys_the_others) {
  std::atomic<int> alive = 0;
  std::atomic<int> calls = 0;
  LoopGroup group(group_options(3));
  const auto throws = [&] {
    PerLoop<Counter> counters(group, [&](EventLoop& loop) -> Counter {
      if (++calls == 2) throw std::runtime_error("refused");
      return Counter(loop, alive);
    });
  };
  EXPECT_THROW(throws(), std::runtime_error);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(alive, 0);
  const auto fails = [&] {
    PerLoop<int> numbers(group, [](EventLoop&) -> Task<Result<int>> {
      static_cast<void>(co_await sleep_for(1ms));
      co_return std::unexpected(system_error(ECONNREFUSED));
    });
  };
  try {
    fails();
    ADD_FAILURE() << "no exception";
  } catch (const std::system_error& refused) {
    EXPECT_EQ(refused.code(), system_error(ECONNREFUSED));
  }
}

TEST_P(PerLoops, a_stop_of_the_group_destroys_the_objects_after_the_tasks) {
  std::atomic<int> alive = 0;
  std::atomic<int> last_uses = 0;
  LoopGroup group(group_options(2));
  PerLoop<Counter> counters(group, [&](EventLoop& loop) { return Counter(loop, alive); });
  PerLoop<std::unique_ptr<int>> later(group, [](EventLoop&) { return std::make_unique<int>(); });
  struct UsesAtEnd {
    UsesAtEnd(const PerLoop<Counter>& of, std::atomic<int>& count) : counters(of), uses(count) {}
    UsesAtEnd(const UsesAtEnd&) = delete;
    UsesAtEnd& operator=(const UsesAtEnd&) = delete;
    ~UsesAtEnd() {
      counters->add();
      ++uses;
    }
    const PerLoop<Counter>& counters;
    std::atomic<int>& uses;
  };
  group.for_each([&](EventLoop& loop) {
    spawn(loop, [&counters, &last_uses]() -> Task<> {
      const UsesAtEnd local(counters, last_uses);
      static_cast<void>(co_await sleep_for(1h));
    });
  });
  group.stop();
  group.join();
  EXPECT_EQ(last_uses, 2);
  EXPECT_EQ(alive, 0);
}

TEST_P(PerLoops, its_end_waits_for_the_objects_that_a_stop_destroys) {
  struct Slow {
    Slow(std::atomic<int>& begun, std::atomic<int>& ended) : begun_(begun), ended_(ended) {}
    Slow(const Slow&) = delete;
    Slow& operator=(const Slow&) = delete;
    ~Slow() {
      ++begun_;
      std::this_thread::sleep_for(100ms);
      ++ended_;
    }
    std::atomic<int>& begun_;
    std::atomic<int>& ended_;
  };
  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
  LoopGroup group(group_options(2));
  {
    PerLoop<Slow> state(group, [&](EventLoop&) { return Slow(begun, ended); });
    group.stop();
    while (begun == 0) std::this_thread::yield();
  }
  EXPECT_EQ(ended, 2);
}

TEST_P(PerLoops, servers_use_the_object_of_the_serving_loop) {
  std::atomic<int> alive = 0;
  LoopGroup group(group_options(2));
  PerLoop<Counter> counters(group, [&](EventLoop& loop) { return Counter(loop, alive); });
  auto server = TcpServerGroup::listen(group, Endpoint::loopback_v4(0)).value();
  server.serve([&counters](TcpStream peer) -> Task<> {
    EXPECT_EQ(&counters->loop(), &peer.loop());
    const std::string count = std::to_string(counters->add());
    static_cast<void>(co_await peer.write(count));
  });
  run([](Endpoint at) -> Task<> {
    for (int i = 0; i < 10; ++i) {
      auto stream = (co_await TcpStream::connect(at)).value();
      Buffer answer;
      for (auto got = co_await stream.read(answer); got && *got > 0;
           got = co_await stream.read(answer)) {
      }
      EXPECT_FALSE(answer.empty());
    }
  }(server.endpoint()));
}

TEST_P(PerLoops, a_stopped_group_has_no_objects) {
  LoopGroup group(group_options(2));
  group.stop();
  const auto construct = [&] { PerLoop<int> numbers(group); };
  try {
    construct();
  } catch (const std::system_error& refused) {
    EXPECT_EQ(refused.code(), system_error(ECANCELED));
  }
}

TEST_P(PerLoops, other_threads_have_no_object) {
  const auto use_outside = [this] {
    LoopGroup group(group_options(1));
    PerLoop<int> numbers(group);
    static_cast<void>(numbers.local());
  };
  EXPECT_DEATH(use_outside(), "PerLoop::local.. was called on a thread that does not belong");
  const auto construct_inside = [this] {
    LoopGroup group(group_options(1));
    group.for_each([&](EventLoop&) { PerLoop<int> numbers(group); });
  };
  EXPECT_DEATH(construct_inside(), "a PerLoop was constructed by a thread of its group");
}

TEST_P(PerLoops, the_index_of_a_thread_is_that_of_its_loop) {
  LoopGroup group(group_options(3));
  LoopGroup other(group_options(1));
  EXPECT_EQ(group.index_of_this_thread(), 3U);
  std::mutex mutex;
  std::set<std::size_t> indices;
  group.for_each([&](EventLoop& loop) {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(group.index_of_this_thread(), group.index_of(loop));
    EXPECT_EQ(other.index_of_this_thread(), 1U);
    indices.insert(group.index_of_this_thread());
  });
  EXPECT_EQ(indices.size(), 3U);
}

}  // namespace
}  // namespace tambour::per_loop_test
