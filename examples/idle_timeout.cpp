// Echoes lines from standard input and stops after a second without input: a descriptor watcher,
// and a timer that every event resets.
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>

#include <tambour/tambour.h>

int main() {
  using namespace std::chrono_literals;
  tambour::EventLoop loop;

  tambour::Timer silence(loop, [&] {
    std::puts("silence");
    loop.stop();
  });
  tambour::FdWatcher input(loop, STDIN_FILENO, tambour::Events::read, [&](tambour::Events events) {
    if (tambour::has(events, tambour::Events::error)) {
      std::fprintf(stderr, "standard input: %s\n", input.error().message().c_str());
      loop.stop();
      return;
    }
    std::array<char, 4096> line;
    const ssize_t size = ::read(STDIN_FILENO, line.data(), line.size());
    if (size <= 0) {
      loop.stop();
      return;
    }
    std::fwrite(line.data(), 1, static_cast<std::size_t>(size), stdout);
    silence.reset();
  });

  silence.start(1s);
  if (auto started = input.start(); !started) {
    std::fprintf(stderr, "standard input: %s\n", started.error().message().c_str());
    return 1;
  }
  loop.run();
}
