// Keeps a few workers running: one that dies is started again, until each has had three lives.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <tambour/tambour.h>

using namespace std::chrono_literals;

namespace {

/// A worker process, as often as it takes.
class Worker {
 public:
  Worker(tambour::EventLoop& loop, int number) : loop_(loop), number_(number) { spawn(); }

 private:
  void spawn() {
    const pid_t pid = ::fork();
    // The child has a copy of the loop, which it must not use: it does its work, or calls execve.
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
    spawn();  // Which destroys the Child whose callback this is.
  }

  tambour::EventLoop& loop_;
  int number_;
  int lives_ = 0;
  std::unique_ptr<tambour::Child> child_;
};

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF,
               0);  // Or a fork would copy what is not written yet.
  tambour::EventLoop loop;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int number = 1; number <= 3; ++number)
    workers.push_back(std::make_unique<Worker>(loop, number));
  // Ends when no child is waited for any more.
  loop.run();
}
