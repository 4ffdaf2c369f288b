// Computes sums on a thread pool while a timer of the loop keeps running.
#include <chrono>
#include <cstdio>
#include <numeric>
#include <vector>

#include <tambour/tambour.h>

using namespace tambour;

Task<> sum_up(WorkerPool& pool, int size, long& total) {
  // The callable owns the vector, because the task may be destroyed before the worker finishes.
  std::vector<long> numbers(std::size_t(size), 1);
  auto add = [numbers = std::move(numbers)] {
    return std::accumulate(numbers.begin(), numbers.end(), 0L);
  };
  const auto sum = co_await pool.run(std::move(add));
  if (!sum) co_return;
  total += *sum;  // Back on the loop's thread: no lock is needed.
}

int main() {
  EventLoop loop;
  WorkerPool pool;
  long total = 0;
  int ticks = 0;
  spawn(loop, [](WorkerPool& with, long& sum, int& count) -> Task<> {
    const TaskContext& context = co_await this_task;
    Timer ticker(*context.loop, [&count] { ++count; });
    ticker.start(std::chrono::milliseconds(1), std::chrono::milliseconds(1));
    TaskScope scope(*context.loop, context.stop);
    for (int size = 1; size <= 1'000'000; size *= 10) scope.spawn(sum_up(with, size, sum));
    co_await scope.join();
  }(pool, total, ticks));
  loop.run();
  std::printf("%ld, after %d ticks, with %u threads\n", total, ticks, pool.threads());
  return total == 1'111'111 ? 0 : 1;
}
