// Channels between threads: a plain thread produces jobs, the tasks of two loops work on them, and
// a collector selects between their results, a timer and signals.
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>
#include <variant>

#include <tambour/events/signal_set.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/interval.h>
#include <tambour/task/scope.h>
#include <tambour/task/select.h>
#include <tambour/threads/channel.h>
#include <tambour/threads/loop_group.h>

using namespace tambour;
using namespace std::chrono_literals;

namespace {

using Channel = ConcurrentChannel<int>;

/// Squares numbers until there are no more.
Task<> work(Channel& jobs, Channel& results) {
  while (const auto job = co_await jobs.receive()) {
    co_await sleep_for(1ms);  // The work.
    const auto sent = co_await results.send(*job * *job);
    if (!sent) break;
  }
}

/// Adds up the results until there are 100 of them, or the process gets SIGINT.
Task<> collect(EventLoop& loop, Channel& results, int& sum) {
  auto signals = SignalSet::open(loop, {SIGINT});
  if (!signals) co_return;
  Interval progress(loop, 10ms);
  for (int count = 0; count < 100;) {
    const auto first = co_await select(results.receive(), signals->next(), progress.tick());
    if (first.index() == 1) break;
    if (first.index() == 2) std::printf("%d results\n", count);
    if (first.index() != 0) continue;
    sum += std::get<0>(first).value();
    ++count;
  }
  results.close();
}

}  // namespace

int main() {
  EventLoop loop;
  Channel jobs(8);
  Channel results(8);
  LoopGroup group({.threads = 2});
  for (std::size_t i = 0; i < group.size(); ++i) {
    EventLoop& worker = group[i];
    worker.post([&] {
      for (int task = 0; task < 4; ++task) spawn(worker, work, std::ref(jobs), std::ref(results));
    });
  }
  std::thread producer([&jobs] {
    for (int i = 1; i <= 100; ++i) {
      if (!jobs.blocking_send(i)) return;  // The channel was closed.
    }
    jobs.close();
  });
  int sum = 0;
  spawn(loop, collect, std::ref(loop), std::ref(results), std::ref(sum));
  loop.run();
  jobs.close();
  producer.join();
  std::printf("sum: %d\n", sum);
  return sum == 338350 ? 0 : 1;
}
