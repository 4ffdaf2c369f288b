// Two ways to reach a loop from other threads: a posted task with data, and a notification (Async).
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include <tambour/tambour.h>

int main() {
  tambour::EventLoop loop;
  loop.ref();  // Keeps run() from returning: no handle is started yet.

  std::atomic<int> progress{0};
  tambour::Async notification(loop, [&] { std::printf("progress: %d\n", progress.load()); });
  notification.start();

  constexpr int workers = 4;
  int done = 0;
  long sum = 0;
  std::vector<std::jthread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      long part = 0;
      for (int i = worker; i < 1'000'000; i += workers) part += i;
      progress += 25;
      notification.send();
      // Runs on the loop's thread, so it needs no lock.
      loop.post([&, part] {
        sum += part;
        if (++done == workers) loop.stop();
      });
    });
  }
  loop.run();
  std::printf("sum: %ld\n", sum);
  return sum == 499'999'500'000 ? 0 : 1;
}
