// Calls on worker threads: where they run, what they return, and which objects may be destroyed in
// the meantime.
#include <tambour/threads/worker_pool.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <limits>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/sim/simulation.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>

#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/scale.h"

namespace tambour::worker_pool_test {
namespace {

using namespace std::chrono_literals;

/// A one-time gate.
class Gate {
 public:
  void open() { latch_.count_down(); }
  void pass() const { latch_.wait(); }

 private:
  std::latch latch_{1};
};

class WorkerPools : public test::OnEveryBackend {
 public:
  using OnEveryBackend::loop;
  using OnEveryBackend::run_until;

  /// Records the outcome of a task that awaits `callable`, when it completes.
  template <class F>
  static Task<> call_and_record(WorkerPool& pool, F callable, std::vector<Error>& results,
                                WhenStopped when_stopped = WhenStopped::wait) {
    const auto got = co_await pool.run(std::move(callable), when_stopped);
    results.push_back(got ? Error() : got.error());
  }
};

TAMBOUR_ON_EVERY_BACKEND(WorkerPools);

TEST_P(WorkerPools, a_task_resumes_on_its_loop_with_the_result_of_the_worker) {
  WorkerPool pool(2);
  bool ended = false;
  spawn(loop(), [](WorkerPool& with, bool& done) -> Task<> {
    const auto here = std::this_thread::get_id();
    const auto there = co_await with.run([] { return std::this_thread::get_id(); });
    EXPECT_TRUE(there && *there != here);
    EXPECT_EQ(std::this_thread::get_id(), here);
    EXPECT_TRUE(co_await with.run([] {}));
    auto give = [value = std::make_unique<int>(7)]() mutable { return std::move(value); };
    auto moved = co_await with.run(std::move(give));
    EXPECT_TRUE(moved && **moved == 7);
    const Result<int> failed =
        co_await with.run([]() -> Result<int> { return std::unexpected(system_error(EDOM)); });
    EXPECT_EQ(failed.error(), system_error(EDOM));
    try {
      co_await with.run([]() -> int { throw std::runtime_error("of the worker"); });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& thrown) {
      EXPECT_STREQ(thrown.what(), "of the worker");
    }
    done = true;
  }(pool, ended));
  // Only the calls keep the loop running.
  loop().run();
  EXPECT_TRUE(ended);
}

TEST_P(WorkerPools, runs_at_most_one_call_per_thread_at_a_time) {
  constexpr unsigned threads = 3;
  WorkerPool pool(threads);
  std::atomic<unsigned> inside{0};
  std::atomic<unsigned> limit{0};
  std::atomic<unsigned> calls{0};
  std::latch first(threads);
  std::vector<Error> results;
  for (int i = 0; i < 200; ++i) {
    spawn(loop(), call_and_record(
                      pool,
                      [&] {
                        const unsigned now = ++inside;
                        unsigned former = limit.load();
                        while (former < now && !limit.compare_exchange_weak(former, now)) {
                        }
                        // The first three calls meet here, so three run at the same time.
                        if (++calls <= threads) first.arrive_and_wait();
                        --inside;
                      },
                      results));
  }
  loop().run();
  EXPECT_EQ(results, std::vector<Error>(200));
  EXPECT_EQ(limit, threads);
}

TEST_P(WorkerPools, a_call_stopped_before_it_began_is_never_made) {
  Gate gate;
  WorkerPool pool(1);
  std::atomic<int> calls{0};
  std::vector<Error> results;
  TaskScope scope(loop());
  pool.submit([&gate] { gate.pass(); });
  scope.spawn(call_and_record(pool, [&calls] { ++calls; }, results));
  run_iterations();
  scope.request_stop();
  EXPECT_TRUE(results.empty()) << "completed inside the call";
  run_iterations();
  EXPECT_EQ(results, std::vector<Error>{system_error(ECANCELED)});
  // A stop was requested already.
  scope.spawn(call_and_record(pool, [&calls] { ++calls; }, results));
  EXPECT_EQ(results.size(), 1U);
  run_iterations();
  EXPECT_EQ(results.size(), 2U);
  gate.open();
  spawn(loop(), call_and_record(pool, [] {}, results));
  loop().run();
  EXPECT_EQ(results.back(), Error());
  EXPECT_EQ(calls, 0);
}

TEST_P(WorkerPools, a_running_call_is_awaited_or_left_when_stopped) {
  Gate begun, other_begun, gate;  // Outlive the pool, whose threads use them.
  WorkerPool pool(2);
  std::vector<Error> waited, left;
  TaskScope scope(loop());
  scope.spawn(call_and_record(pool, [&] { begun.open(), gate.pass(); }, waited));
  scope.spawn(
      call_and_record(pool, [&] { other_begun.open(), gate.pass(); }, left, WhenStopped::abandon));
  begun.pass();
  other_begun.pass();
  scope.request_stop();
  run_iterations();
  EXPECT_TRUE(waited.empty());
  EXPECT_EQ(left, std::vector<Error>{system_error(ECANCELED)});
  gate.open();
  EXPECT_TRUE(run_until([&] { return !waited.empty(); }));
  EXPECT_EQ(waited, std::vector<Error>{Error()});
  EXPECT_EQ(left.size(), 1U);
}

TEST_P(WorkerPools, a_running_call_keeps_its_arguments_when_its_task_is_destroyed) {
  Gate begun, gate;
  const auto seen = std::make_shared<std::atomic<int>>(0);
  {
    WorkerPool pool(1);
    {
      TaskScope scope(loop());
      std::vector<Error> results;
      scope.spawn(call_and_record(
          pool,
          [&begun, &gate, seen, text = std::string(100, 'x')] {
            begun.open();
            gate.pass();
            *seen += int(text.size());
          },
          results));
      scope.spawn(call_and_record(pool, [seen] { *seen += 1000; }, results));
      begun.pass();
    }
    // Neither call keeps the loop running any more.
    loop().run();
    gate.open();
  }
  EXPECT_EQ(*seen, 100);
  EXPECT_EQ(seen.use_count(), 1);
}

TEST_P(WorkerPools, the_loop_may_be_destroyed_while_a_worker_runs) {
  Gate begun, gate;
  WorkerPool pool(1);
  const auto seen = std::make_shared<std::atomic<int>>(0);
  auto other = std::make_unique<EventLoop>(options());
  TaskScope outlives(*other);
  std::vector<Error> results;
  spawn(*other, call_and_record(pool, [&, seen] { begun.open(), gate.pass(), ++*seen; }, results));
  outlives.spawn(call_and_record(pool, [seen] { ++*seen; }, results));
  begun.pass();
  other.reset();
  gate.open();
  // Calls run in order, so the earlier ones have returned when this one does.
  spawn(loop(), call_and_record(pool, [] {}, results));
  loop().run();
  EXPECT_EQ(results, std::vector<Error>{Error()});
  EXPECT_EQ(*seen, 2);
}

/// Returns a pointer that runs `subject` when its last copy is destroyed.
std::shared_ptr<void> on_destruction(std::function<void()> subject) {
  return {nullptr, [act = std::move(subject)](void*) { act(); }};
}

TEST_P(WorkerPools, destroying_the_pool_ends_queued_calls) {
  Gate begun, closing;
  auto pool = std::make_unique<WorkerPool>(1);
  std::vector<Error> results;
  std::atomic<int> calls{0};
  spawn(loop(),
        call_and_record(*pool, [&] { begun.open(), std::this_thread::yield(), ++calls; }, results));
  begun.pass();
  // If this call runs, it returns when the pool has dropped the calls that are queued behind it.
  pool->submit([&closing] { closing.pass(); });
  spawn(loop(), call_and_record(*pool, [&] { ++calls; }, results));
  Callback<void()> dropped = [&calls, held = std::make_unique<int>(1),
                              end = on_destruction([&closing] { closing.open(); })] {
    calls += *held;
  };
  pool->submit(std::move(dropped));
  pool.reset();
  const int before = calls;
  EXPECT_GE(before, 1);
  EXPECT_TRUE(results.empty());
  loop().run();
  EXPECT_EQ(results.size(), 2U);
  EXPECT_EQ(std::ranges::count(results, Error()), 1);
  EXPECT_EQ(std::ranges::count(results, system_error(ECANCELED)), 1);
  EXPECT_EQ(calls, before);
}

TEST_P(WorkerPools, calls_are_stopped_and_destroyed_at_any_moment) {
  WorkerPool pool(2);
  std::vector<Error> results;
  std::atomic<int> calls{0};
  for (std::size_t round = 0; round < test::scaled(3000); ++round) {
    TaskScope scope(loop());
    for (int i = 0; i < 4; ++i) {
      scope.spawn(call_and_record(
          pool, [&calls] { ++calls; }, results,
          i % 2 == 0 ? WhenStopped::wait : WhenStopped::abandon));
    }
    if (round % 3 == 0) loop().run_ready();
    if (round % 2 == 0) scope.request_stop();
    if (round % 5 == 0) loop().run_ready();
  }
  loop().run();
  spawn(loop(), call_and_record(pool, [] {}, results));
  loop().run();
  EXPECT_EQ(results.back(), Error());
}

TEST_P(WorkerPools, a_child_has_a_pool_of_its_own) {
  if (test::sanitized) GTEST_SKIP() << "sanitizers do not allow threads after fork in a child";
  Gate gate;
  std::vector<Error> results;
  TaskScope scope(loop());
  // Occupies all threads of the shared pool, and queues one more call.
  for (unsigned i = 0; i <= WorkerPool::shared().threads(); ++i)
    scope.spawn(call_and_record(WorkerPool::shared(), [&gate] { gate.pass(); }, results));
  run_iterations();
  EXPECT_EQ(test::in_child([&] {
              if (!loop().after_fork()) return 1;
              loop().run();
              if (results !=
                  std::vector<Error>(WorkerPool::shared().threads() + 1, system_error(ECANCELED)))
                return 2;
              spawn(loop(), call_and_record(WorkerPool::shared(), [] {}, results));
              loop().run();
              return results.back() ? 3 : 0;
            }),
            0);
  gate.open();
  loop().run();
  EXPECT_EQ(results, std::vector<Error>(WorkerPool::shared().threads() + 1));
}

TEST_P(WorkerPools, tasks_are_stopped_and_destroyed_while_their_pool_ends) {
  std::vector<Error> results;
  for (std::size_t round = 0; round < test::scaled(1000); ++round) {
    auto pool = std::make_unique<WorkerPool>(1);
    Gate gate;
    TaskScope stopped(loop());
    TaskScope destroyed(loop());
    pool->submit([&gate] { gate.pass(); });
    for (int i = 0; i < 4; ++i) {
      stopped.spawn(call_and_record(*pool, [] {}, results));
      destroyed.spawn(call_and_record(*pool, [] {}, results));
    }
    std::thread ends([&] { pool.reset(); });
    gate.open();
    if (round % 2 == 0) stopped.request_stop();
    if (round % 3 == 0) loop().run_ready();
    ends.join();
  }
  loop().run();
  for (const Error& error : results) EXPECT_TRUE(!error || error == system_error(ECANCELED));
}

TEST(WorkerPoolEnd, dropped_calls_may_use_the_pool) {
  Gate begun, closing;
  std::atomic<int> dropped{0};
  std::atomic<int> calls{0};
  WorkerPool* used = nullptr;
  {
    WorkerPool pool(1);
    used = &pool;
    const auto drop = [&] {
      ++dropped;
      used->submit([&calls] { ++calls; });
      closing.open();
    };
    // Runs while the pool is being destroyed, and submits another call.
    pool.submit([&] {
      begun.open();
      closing.pass();
      used->submit([&calls, held = on_destruction([&] {
                              ++dropped;
                              used->submit([&calls] { ++calls; });
                            })] { ++calls; });
    });
    // Queued behind it, and never called.
    pool.submit([&calls, held = on_destruction(drop)] { ++calls; });
    begun.pass();
  }
  EXPECT_EQ(dropped, 2);
  EXPECT_EQ(calls, 0);
}

TEST(WorkerPoolLimit, the_greatest_limit_of_queued_calls_accepts_calls) {
  Gate called;
  WorkerPool pool(2, std::numeric_limits<std::size_t>::max());
  pool.submit([&called] { called.open(); });
  called.pass();
}

std::string simulated_run(std::uint64_t seed) {
  sim::Simulation simulation(seed, sim::Options::rough(seed));
  sim::Host& host = simulation.add_host("host");
  EventLoop loop(host.loop_options());
  WorkerPool pool(2);
  std::vector<int> order;
  const auto here = std::this_thread::get_id();
  TaskScope scope(loop);
  for (int i = 0; i < 5; ++i) {
    scope.spawn([](sim::Simulation& sim, WorkerPool& with, auto thread, auto& called,
                   int number) -> Task<> {
      const auto started = sim.now();
      const auto got = co_await with.run([&] {
        EXPECT_EQ(std::this_thread::get_id(), thread);
        called.push_back(number);
        return number;
      });
      EXPECT_EQ(got, number);
      EXPECT_GT(sim.now(), started) << "in a later iteration";
      sim.note(std::to_string(number));
    }(simulation, pool, here, order, i));
    EXPECT_TRUE(order.empty());
  }
  TaskScope stopped(loop);
  stopped.spawn([](WorkerPool& with) -> Task<> {
    const auto got = co_await with.run([] { ADD_FAILURE() << "was stopped before"; });
    EXPECT_EQ(got.error(), system_error(ECANCELED));
  }(pool));
  stopped.request_stop();
  {
    TaskScope destroyed(loop);
    destroyed.spawn([](WorkerPool& with) -> Task<> {
      co_await with.run([] { ADD_FAILURE() << "the call must not be made"; });
    }(pool));
  }
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(stopped.empty());
  return simulation.trace();
}

TEST(SimulatedWorkers, run_on_the_loop_and_are_deterministic) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    EXPECT_EQ(simulated_run(seed), simulated_run(seed));
}

TEST(SharedPool, has_the_number_of_threads_of_the_environment_variable) {
  const auto threads_with = [](const char* text) {
    return test::in_child([text] {
      ::setenv("TAMBOUR_WORKERS", text, 1);
      return int(WorkerPool::shared().threads());
    });
  };
  EXPECT_EQ(threads_with("7"), 7);
  EXPECT_GE(threads_with("none"), 4);
  EXPECT_EQ(WorkerPool(0).threads(), 1U);
}

}  // namespace
}  // namespace tambour::worker_pool_test
