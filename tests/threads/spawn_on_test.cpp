// spawn_on(): tasks on other loops, without a stream.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace tambour::spawn_on_test {
namespace {

using namespace std::chrono_literals;

class SpawnOn : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(SpawnOn);

TEST_P(SpawnOn, tasks_run_on_the_other_loop) {
  LoopGroup group({.threads = 1, .loop = options()});
  std::atomic<int> done = 0;
  const auto home = std::this_thread::get_id();
  const auto work = [&done, home](int amount) -> Task<> {
    EXPECT_NE(std::this_thread::get_id(), home);
    static_cast<void>(co_await sleep_for(1ms));
    EXPECT_NE(std::this_thread::get_id(), home);
    done += amount;
  };
  spawn_on(group[0], work(1));
  spawn_on(group[0], work, 2);
  spawn_on(group[0], [work]() -> Task<int> {
    co_await work(4);
    co_return 7;  // Discarded.
  });
  spawn_on(
      group[0],
      [](std::atomic<int>& count, const std::string& text, std::unique_ptr<int> owned) -> Task<> {
        static_cast<void>(co_await sleep_for(1ms));
        count += int(text.size()) + *owned;
      },
      std::ref(done), std::string(8, 'x'), std::make_unique<int>(8));
  EXPECT_TRUE(eventually([&] { return done == 1 + 2 + 4 + 8 + 8; }));
  // From a thread without a loop.
  std::thread([&] { spawn_on(group[0], work, 100); }).join();
  EXPECT_TRUE(eventually([&] { return done == 123; }));
}

TEST_P(SpawnOn, an_exception_leaves_the_run_of_the_other_loop) {
  LoopGroup group({.threads = 1, .loop = options()});
  spawn_on(group[0], []() -> Task<> {
    static_cast<void>(co_await sleep_for(1ms));
    throw std::runtime_error("thrown");
  });
  EXPECT_THROW(group.join(), std::runtime_error);
}

TEST_P(SpawnOn, a_loop_that_is_destroyed_destroys_the_task) {
  auto witness = std::make_shared<int>();
  const std::weak_ptr<int> watched = witness;
  {
    EventLoop other(options());
    spawn_on(
        other,
        [](std::shared_ptr<int>) -> Task<> {
          ADD_FAILURE() << "started";
          co_return;
        },
        std::move(witness));
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace tambour::spawn_on_test
