// Keeps worker processes running: a worker that exits is restarted, up to two times.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <tambour/tambour.h>

using namespace std::chrono_literals;

namespace {

/// A worker process that is restarted when it exits.
class Worker {
 public:
  Worker(tambour::EventLoop& loop, int number) : loop_(loop), number_(number) { spawn(); }

 private:
  void spawn() {
    const pid_t pid = ::fork();
    // The child must not use its copy of the loop. It does its work, or calls execve(2).
    if (pid == 0) ::_exit(number_);
    child_ = std::make_unique<tambour::Child>(
        loop_, pid, [this](const tambour::ChildStatus& status) { ended(status); });
    if (auto started = child_->start(); !started) {
      std::fprintf(stderr, "process %d: %s\n", int(pid), started.error().message().c_str());
      std::exit(1);
    }
  }

  void ended(const tambour::ChildStatus& status) {
    const bool exited = status.event == tambour::ChildStatus::Event::exited;
    std::printf("worker %d, process %d: %s %d\n", number_, int(status.pid),
                exited ? "exited with" : "ended by signal", status.code);
    if (++lives_ == 3) return;
    spawn();  // Destroys the Child whose callback is running.
  }

  tambour::EventLoop& loop_;
  int number_;
  int lives_ = 0;
  std::unique_ptr<tambour::Child> child_;
};

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF,
               0);  // Otherwise, fork(2) would duplicate buffered output.
  tambour::EventLoop loop;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int number = 1; number <= 3; ++number)
    workers.push_back(std::make_unique<Worker>(loop, number));
  // Returns when no child is watched any more.
  loop.run();
}
