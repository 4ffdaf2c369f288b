// The event loop: timers, a file descriptor, and a task from another thread. docs/event-loop.md
// explains each function.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

int count_ticks() {
  EventLoop loop;
  int ticks = 0;
  Timer timer(loop, [&] {
    std::printf("tick %d\n", ++ticks);
    if (ticks == 3) loop.stop();
  });
  timer.start(10ms, 20ms);  // After 10 ms, then every 20 ms.
  loop.run();               // Until stop() is called.
  return ticks;
}

std::string read_to_end(int fd) {
  EventLoop loop;
  std::string text;
  FdWatcher watcher(loop, fd, Events::read, [&](Events) {
    std::array<char, 4096> bytes;
    const ssize_t size = ::read(fd, bytes.data(), bytes.size());
    if (size < 0 && errno == EAGAIN) return;  // Nothing is there after all.
    if (size <= 0) return watcher.stop();     // EOF or an error.
    text.append(bytes.data(), static_cast<std::size_t>(size));
  });
  or_throw(watcher.start());
  loop.run();  // Until no handle is started.
  return text;
}

long sum_on_thread() {
  EventLoop loop;
  loop.ref();  // Keeps run() from returning although no handle is started.
  long result = 0;
  std::jthread worker([&] {
    long sum = 0;
    for (int i = 1; i <= 1000; ++i) sum += i;
    loop.post([&, sum] {  // Runs on the thread of the loop: no lock is needed.
      result = sum;
      loop.unref();
    });
  });
  loop.run();
  return result;
}

int main() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return 1;
  const bool is_written = ::write(ends[1], "hello", 5) == 5;
  ::close(ends[1]);
  const bool is_well = is_written && count_ticks() == 3 && read_to_end(ends[0]) == "hello" &&
                       sum_on_thread() == 500'500;
  ::close(ends[0]);
  return is_well ? 0 : 1;
}
