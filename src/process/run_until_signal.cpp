// run_until_signal(): SIGINT and SIGTERM begin a graceful shutdown.
#include <tambour/process/run_until_signal.h>

#include <csignal>
#include <exception>
#include <utility>
#include <vector>

#include <tambour/events/signal.h>
#include <tambour/task/combinators.h>
#include <tambour/task/scope.h>

namespace tambour::detail {
namespace {

class GracefulRun {
 public:
  GracefulRun(EventLoop& loop, Duration grace, std::span<const ShutDown> services)
      : loop_(loop),
        grace_(grace),
        services_(services),
        interrupt_(loop, SIGINT, [this](int number) { receive(number); }),
        terminate_(loop, SIGTERM, [this](int number) { receive(number); }),
        shutdown_(loop) {}

  Result<int> run() {
    for (Signal* const signal : {&interrupt_, &terminate_}) {
      if (auto started = signal->start(); !started) return std::unexpected(started.error());
    }
    loop_.run();
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
    return number_;
  }

 private:
  void receive(int number) {
    if (number_ == 0) {
      number_ = number;
      shutdown_.spawn(shut_down());
      return;
    }
    // This restores the default action for the next signal.
    interrupt_.stop();
    terminate_.stop();
    shutdown_.request_stop();
  }

  Task<> shut_down() {
    try {
      std::vector<Task<>> tasks;
      for (const ShutDown& service : services_) {
        if (Task<> task = service(grace_)) tasks.push_back(std::move(task));
      }
      co_await when_all(std::move(tasks));
    } catch (...) {
      thrown_ = std::current_exception();
    }
    loop_.stop();
  }

  EventLoop& loop_;
  Duration grace_;
  std::span<const ShutDown> services_;
  int number_ = 0;
  std::exception_ptr thrown_;
  Signal interrupt_;
  Signal terminate_;
  TaskScope shutdown_;
};

}  // namespace

Result<int> run_until_signal(EventLoop& loop, Duration grace, std::span<const ShutDown> services) {
  return GracefulRun(loop, grace, services).run();
}

}  // namespace tambour::detail
