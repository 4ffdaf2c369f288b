// Closures destroyed in a nested run() are freed while it runs, but never while they are executing.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/loop/event_loop.h>
#include <tambour/loop/timer.h>

#include "support/on_every_backend.h"

namespace tambour::nested_retirement_test {
namespace {

using namespace std::chrono_literals;

class NestedRetirement : public test::OnEveryBackend {
 public:
  using OnEveryBackend::loop;
};

TAMBOUR_ON_EVERY_BACKEND(NestedRetirement);

TEST_P(NestedRetirement, closures_made_in_a_nested_run_are_deleted_there) {
  constexpr int rounds = 1000;
  const auto witness = std::make_shared<int>(0);
  long limit = 0;
  Timer outer(loop(), [&] {
    int left = rounds;
    std::unique_ptr<Timer> timer;
    // Replaces itself in its own callback, once per iteration.
    const std::function<void()> replace = [&] {
      limit = std::max(limit, witness.use_count());
      if (--left == 0) return loop().stop();
      timer = std::make_unique<Timer>(loop(), [&replace, witness] { replace(); });
      timer->start(0ms);
    };
    replace();
    loop().run();
    EXPECT_EQ(left, 0);
  });
  outer.start(0ms);
  loop().run();
  EXPECT_LT(limit, 10);
  EXPECT_EQ(witness.use_count(), 1);
}

TEST_P(NestedRetirement, a_callback_outside_outlives_its_timer) {
  // Two nested levels; each callback destroys the timers of the outer levels.
  const std::string text(100, 'x');
  std::unique_ptr<Timer> outer;
  std::unique_ptr<Timer> middle;
  std::vector<std::string> log;
  outer = std::make_unique<Timer>(loop(), [&, text] {
    middle = std::make_unique<Timer>(loop(), [&, text] {
      loop().post([&] {
        outer.reset();
        middle.reset();
      });
      for (int i = 0; i < 3; ++i) loop().run_ready();
      EXPECT_EQ(middle, nullptr);
      log.push_back(text);
    });
    middle->start(0ms);
    for (int i = 0; i < 3; ++i) loop().run_once();
    EXPECT_EQ(outer, nullptr);
    log.push_back(text);
  });
  outer->start(0ms);
  loop().run();
  EXPECT_EQ(log, (std::vector<std::string>{text, text}));
}

}  // namespace
}  // namespace tambour::nested_retirement_test
