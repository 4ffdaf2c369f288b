// TaskSemaphore: limits, order, cancellation, closing and destruction, also against a model.
#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/random.h"

namespace tambour::semaphore_test {
namespace {

using namespace std::chrono_literals;

const Error cancelled = system_error(ECANCELED);
const Error closed = system_error(EPIPE);

class Semaphores : public test::OnEveryBackend {
 public:
  std::vector<int> order;
  std::vector<Error> ends;

  /// Keeps the permits until `release` is set.
  Task<> hold(TaskSemaphore& semaphore, std::size_t count, int name, TaskEvent& release) {
    const auto permit = co_await semaphore.acquire(count);
    ends.push_back(permit ? Error() : permit.error());
    if (!permit) co_return;
    order.push_back(name);
    co_await release.wait();
  }
};

TAMBOUR_ON_EVERY_BACKEND(Semaphores);

TEST_P(Semaphores, no_more_tasks_run_than_there_are_permits) {
  TaskSemaphore semaphore(loop(), 3);
  int running = 0;
  int running_max = 0;
  int done = 0;
  for (int i = 0; i < 20; ++i) {
    spawn(loop(), [&]() -> Task<> {
      const auto permit = co_await semaphore.acquire();
      EXPECT_TRUE(permit);
      running_max = std::max(running_max, ++running);
      co_await sleep_for(1ms);
      --running;
      ++done;
    });
  }
  EXPECT_EQ(semaphore.available(), 0U);
  loop().run();
  EXPECT_EQ(done, 20);
  EXPECT_EQ(running_max, 3);
  EXPECT_EQ(semaphore.available(), 3U);
}

TEST_P(Semaphores, tasks_are_served_in_order_and_a_large_request_is_not_overtaken) {
  TaskSemaphore semaphore(loop(), 2);
  TaskEvent never_set(loop());
  auto first = semaphore.try_acquire();
  ASSERT_TRUE(first);
  TaskScope scope(loop());
  scope.spawn(hold(semaphore, 3, 1, never_set));
  scope.spawn(hold(semaphore, 1, 2, never_set));
  // One permit is available, but the first task waits for three.
  EXPECT_EQ(semaphore.available(), 1U);
  EXPECT_FALSE(semaphore.try_acquire());
  run_iterations();
  EXPECT_TRUE(order.empty());
  first->release();
  EXPECT_EQ(first->count(), 0U);
  run_iterations();
  EXPECT_TRUE(order.empty());
  semaphore.add_permits(1);
  run_iterations();
  EXPECT_EQ(order, std::vector<int>{1});
  semaphore.add_permits(1);
  run_iterations();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  scope.request_stop();
  loop().run();
  EXPECT_EQ(semaphore.available(), 4U);
}

TEST_P(Semaphores, tasks_behind_a_stopped_one_get_the_permits) {
  TaskSemaphore semaphore(loop(), 1);
  TaskEvent release(loop());
  TaskScope large(loop());
  TaskScope small(loop());
  large.spawn(hold(semaphore, 2, 1, release));
  small.spawn(hold(semaphore, 1, 2, release));
  run_iterations();
  EXPECT_TRUE(order.empty());
  large.request_stop();
  run_iterations();
  EXPECT_EQ(order, std::vector<int>{2});
  EXPECT_EQ(std::ranges::count(ends, cancelled), 1);
  // A task that is destroyed.
  auto other = std::make_unique<TaskScope>(loop());
  other->spawn(hold(semaphore, 2, 3, release));
  small.spawn(hold(semaphore, 1, 4, release));
  semaphore.add_permits(1);
  other.reset();
  release.set();
  loop().run();
  EXPECT_EQ(order, (std::vector<int>{2, 4}));
  EXPECT_EQ(semaphore.available(), 2U);
}

TEST_P(Semaphores, a_permit_that_a_task_has_got_is_not_lost_if_it_is_stopped_before_it_resumes) {
  TaskSemaphore semaphore(loop(), 0);
  TaskEvent release(loop());
  TaskScope stopped(loop());
  auto destroyed = std::make_unique<TaskScope>(loop());
  stopped.spawn(hold(semaphore, 1, 1, release));
  destroyed->spawn(hold(semaphore, 1, 2, release));
  TaskScope last(loop());
  last.spawn(hold(semaphore, 2, 3, release));
  semaphore.add_permits(2);
  EXPECT_EQ(semaphore.available(), 0U);
  stopped.request_stop();
  destroyed.reset();
  run_iterations();
  EXPECT_EQ(order, std::vector<int>{3});
  EXPECT_EQ(ends, (std::vector<Error>{cancelled, Error()}));
  release.set();
  loop().run();
  EXPECT_EQ(semaphore.available(), 2U);
}

TEST_P(Semaphores, closing_ends_the_waits_and_keeps_the_permits) {
  TaskSemaphore semaphore(loop(), 2);
  TaskEvent release(loop());
  auto permit = semaphore.try_acquire(2);
  ASSERT_TRUE(permit);
  spawn(loop(), hold(semaphore, 1, 1, release));
  spawn(loop(), hold(semaphore, 2, 2, release));
  semaphore.close();
  semaphore.close();
  EXPECT_TRUE(semaphore.is_closed());
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>(2, closed));
  permit.reset();
  EXPECT_EQ(semaphore.available(), 2U);
  EXPECT_FALSE(semaphore.try_acquire());
  spawn(loop(), hold(semaphore, 1, 1, release));
  loop().run();
  EXPECT_EQ(ends.back(), closed);
}

TEST_P(Semaphores, forgotten_permits_do_not_return) {
  TaskSemaphore semaphore(loop(), 5);
  auto permit = semaphore.try_acquire(2);
  ASSERT_TRUE(permit);
  auto other = semaphore.try_acquire();
  ASSERT_TRUE(other);
  EXPECT_EQ(permit->count(), 2U);
  permit->forget();
  permit->release();
  other = std::move(permit);
  EXPECT_EQ(semaphore.available(), 3U);
  EXPECT_FALSE(semaphore.try_acquire(4));
}

TEST_P(Semaphores, destroying_it_ends_the_waits) {
  auto semaphore = std::make_unique<TaskSemaphore>(loop(), 0);
  TaskEvent release(loop());
  for (int i = 0; i < 3; ++i) spawn(loop(), hold(*semaphore, 1, i, release));
  semaphore->add_permits(1);
  semaphore.reset();
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>(3, cancelled));
}

TEST_P(Semaphores, may_be_destroyed_after_the_loop) {
  TaskSemaphore semaphore(loop(), 1);
  auto permit = semaphore.try_acquire();
  TaskEvent release(loop());
  TaskScope scope(loop());
  scope.spawn(hold(semaphore, 1, 1, release));
  destroy_loop();
  permit.reset();
  EXPECT_TRUE(order.empty());
}

TEST_P(Semaphores, a_time_limit_ends_a_wait) {
  run([](EventLoop& loop) -> Task<> {
    TaskSemaphore semaphore(loop, 1);
    auto permit = semaphore.try_acquire();
    const auto late = co_await timeout(1ms, semaphore.acquire());
    EXPECT_EQ(late.error(), system_error(ETIMEDOUT));
    permit->release();
    const auto acquired = co_await timeout(1min, semaphore.acquire());
    EXPECT_TRUE(acquired);
  }(loop()));
}

TEST_P(Semaphores, destroying_it_while_a_permit_exists_aborts) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto misuse = [&] {
    std::optional<TaskSemaphore::Permit> permit;
    TaskSemaphore semaphore(loop(), 1);
    permit = semaphore.try_acquire();
  };
  EXPECT_DEATH(misuse(), "TaskSemaphore created in .*semaphore_test.cpp:.* while a Permit");
}

/// A plain queue of requests: what the semaphore must do.
struct Model {
  struct Request {
    int name;
    std::size_t count;
  };
  std::size_t available;
  std::deque<Request> waiting;
  std::vector<int> holders;

  void grant() {
    while (!waiting.empty() && waiting.front().count <= available) {
      available -= waiting.front().count;
      holders.push_back(waiting.front().name);
      waiting.pop_front();
    }
  }
};

/// Random requests, releases and stops. After each step all tasks have resumed.
TEST_P(Semaphores, behave_like_a_queue_of_requests) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  TaskSemaphore semaphore(loop(), 4);
  Model model{.available = 4, .waiting = {}, .holders = {}};
  struct Requester {
    std::size_t count;
    std::unique_ptr<TaskScope> scope;
    std::unique_ptr<TaskEvent> release;
  };
  std::vector<Requester> all;
  for (int step = 0; step < 300; ++step) {
    const std::size_t kind = random.below(4);
    if (kind <= 1 || all.empty()) {
      const int name = int(all.size());
      all.push_back({1 + random.below(4), std::make_unique<TaskScope>(loop()),
                     std::make_unique<TaskEvent>(loop())});
      model.waiting.push_back({name, all.back().count});
      all.back().scope->spawn(hold(semaphore, all.back().count, name, *all.back().release));
    } else {
      // Releases, stops or destroys: a holder returns its permits, another one leaves the queue.
      const std::size_t name = random.below(all.size());
      Requester& chosen = all[name];
      if (kind == 2) {
        if (std::erase(model.holders, int(name)) != 0) model.available += chosen.count;
        std::erase_if(model.waiting, [&](auto& request) { return request.name == int(name); });
        if (random.below(2) == 0 && chosen.scope != nullptr) chosen.scope->request_stop();
        chosen.scope.reset();
      } else {
        if (std::erase(model.holders, int(name)) != 0) model.available += chosen.count;
        chosen.release->set();
      }
    }
    model.grant();
    run_iterations(2);
    // A task whose release was set while it waited returns its permits as soon as it has got them.
    int passed_on = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (const int holder : std::vector<int>(model.holders)) {
        if (!all[std::size_t(holder)].release->is_set()) continue;
        std::erase(model.holders, holder);
        ++passed_on;
        model.available += all[std::size_t(holder)].count;
        changed = true;
      }
      model.grant();
    }
    run_iterations(4 + 3 * passed_on + int(model.holders.size()));
    ASSERT_EQ(semaphore.available(), model.available) << "in step " << step;
  }
  for (Requester& requester : all) requester.scope.reset();
  EXPECT_EQ(semaphore.available(), 4U);
}

}  // namespace
}  // namespace tambour::semaphore_test
