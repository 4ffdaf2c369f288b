// The fixture of tests that use a client library in tasks.
#pragma once

#include <chrono>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::test {

class AdapterTest : public ::testing::Test {
 protected:
  /// Runs the task to its end, for at most a minute.
  void run(Task<> task) {
    bool is_done = false;
    TaskScope scope(loop);
    scope.spawn([&]() -> Task<> {
      co_await std::move(task);
      is_done = true;
    });
    Timer limit(loop, [&] { loop.stop(); });
    limit.start(std::chrono::minutes(1));
    while (!is_done && limit.is_started()) loop.run_once();
    EXPECT_TRUE(is_done) << "the task did not end";
  }

  EventLoop loop;
};

}  // namespace tambour::test
