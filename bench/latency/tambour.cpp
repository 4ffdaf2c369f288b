// A descriptor watcher on Tambour. With TAMBOUR_BENCH_SPIN_US set, the loop spins for as long.
#include <tambour/tambour.h>

#include <cstdlib>
#include <string>

#include "latency/latency.h"

namespace {

tambour::LoopOptions options() {
  tambour::LoopOptions options;
  if (const char* spin_us = std::getenv("TAMBOUR_BENCH_SPIN_US"))
    options.spin = std::chrono::microseconds(std::atoi(spin_us));
  return options;
}

class Tambour {
 public:
  explicit Tambour(int fd)
      : watcher_(loop_, fd, tambour::Events::read, [this, fd](tambour::Events) {
          if (!bench::echo_once(fd)) loop_.stop();
        }) {
    if (!watcher_.start()) bench::fail("the watcher did not start");
  }
  void run() { loop_.run(); }
  bench::About about() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  tambour::EventLoop loop_{options()};
  tambour::FdWatcher watcher_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_latency<Tambour>(argc, argv); }
