// Embeds the loop of a library in the loop of the program, which then waits for both. The library
// requires epoll; the program uses the default backend.
#include <cstdio>
#include <thread>

#include <tambour/tambour.h>

using namespace std::chrono_literals;

namespace {

/// A library that was written for a loop of its own.
class Library {
 public:
  /// The only function that embedding requires.
  tambour::EventLoop& loop() { return loop_; }

  /// Callable from any thread.
  void order(int number) {
    loop_.post([number] { std::printf("library: order %d\n", number); });
  }

 private:
  tambour::EventLoop loop_{{.backend = tambour::BackendKind::epoll}};
  int ticks_ = 0;
  tambour::Timer timer_{loop_, [this] { std::printf("library: tick %d\n", ++ticks_); }};

 public:
  Library() { timer_.start(5ms, 10ms); }
};

}  // namespace

int main() {
  tambour::EventLoop loop;
  Library library;

  tambour::EmbeddedLoop embedded(loop, library.loop());
  if (auto started = embedded.start(); !started) {
    std::fprintf(stderr, "cannot embed: %s\n", started.error().message().c_str());
    return 1;
  }

  std::jthread customer([&library] { library.order(1); });
  tambour::Timer end(loop, [&loop] {
    std::puts("program: that is all");
    loop.stop();
  });
  end.start(50ms);
  loop.run();
}
