// run_until_signal(): SIGINT, SIGTERM, and services that end begin a graceful shutdown.
#include <tambour/process/run_until_signal.h>

#include <csignal>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include <tambour/events/signal.h>
#include <tambour/task/combinators.h>
#include <tambour/task/scope.h>

namespace tambour::detail {
namespace {

class GracefulRun {
 public:
  GracefulRun(EventLoop& loop, Duration grace, std::span<const RunningService> services)
      : loop_(loop),
        grace_(grace),
        services_(services),
        interrupt_(loop, SIGINT, [this](int number) { receive(number); }),
        terminate_(loop, SIGTERM, [this](int number) { receive(number); }),
        joins_(loop),
        shutdown_(loop) {}

  Result<int> run() {
    for (Signal* const signal : {&interrupt_, &terminate_}) {
      if (auto started = signal->start(); !started) return std::unexpected(started.error());
    }
    for (const RunningService& service : services_) present_ += service.is_present ? 1 : 0;
    for (const RunningService& service : services_) {
      if (service.join) joins_.spawn(join(service));
    }
    loop_.run();
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
    if (error_) return std::unexpected(*error_);
    return number_;
  }

 private:
  void receive(int number) {
    if (number_ == 0) number_ = number;
    if (!is_shutting_down_) return begin_shutdown();
    // This restores the default action for the next signal.
    interrupt_.stop();
    terminate_.stop();
    shutdown_.request_stop();
  }

  void begin_shutdown() {
    if (std::exchange(is_shutting_down_, true)) return;
    // From now on, the exception of a scope belongs to its shut_down().
    joins_.request_stop();
    shutdown_.spawn(shut_down());
  }

  void record_exception() noexcept {
    if (thrown_ == nullptr && !error_) thrown_ = std::current_exception();
  }

  Task<> join(const RunningService& service) {
    bool has_failed = true;
    try {
      const Result<> ended = co_await service.join();
      has_failed = !ended;
      // A stopped join() says nothing about the service.
      if (!ended && is_shutting_down_) co_return;
      if (!ended && thrown_ == nullptr && !error_) error_ = ended.error();
    } catch (...) {
      record_exception();
    }
    ++ended_;
    if (has_failed || ended_ == present_) begin_shutdown();
  }

  Task<> shut_down() {
    try {
      std::vector<Task<>> tasks;
      for (const RunningService& service : services_) {
        if (Task<> task = service.shut_down(grace_)) tasks.push_back(std::move(task));
      }
      co_await when_all(std::move(tasks));
    } catch (...) {
      record_exception();
    }
    loop_.stop();
  }

  EventLoop& loop_;
  Duration grace_;
  std::span<const RunningService> services_;
  std::size_t present_ = 0;
  std::size_t ended_ = 0;
  int number_ = 0;
  bool is_shutting_down_ = false;
  std::exception_ptr thrown_;   ///< The first failure, if it is an exception.
  std::optional<Error> error_;  ///< The first failure, if it is an error.
  Signal interrupt_;
  Signal terminate_;
  TaskScope joins_;
  TaskScope shutdown_;
};

}  // namespace

Result<int> run_until_signal(EventLoop& loop, Duration grace,
                             std::span<const RunningService> services) {
  return GracefulRun(loop, grace, services).run();
}

}  // namespace tambour::detail
