// Two ways into a loop from other threads: a task with its data (post), and a bell (Async).
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include <tambour/tambour.h>

int main() {
  tambour::EventLoop loop;
  loop.ref();  // There is nothing else yet that would keep it running.

  std::atomic<int> progress{0};
  tambour::Async bell(loop, [&] { std::printf("progress: %d\n", progress.load()); });
  bell.start();

  constexpr int workers = 4;
  int done = 0;
  long sum = 0;
  std::vector<std::jthread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      long part = 0;
      for (int i = worker; i < 1'000'000; i += workers) part += i;
      progress += 25;
      bell.send();
      // Runs on the loop's thread, so that nothing here needs a lock.
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
