// An awaitable of the program's own: it waits until a descriptor is readable, can be given a time
// limit, and may be destroyed while it waits. wait_ready() of the library does the same.
//
//   build/examples/awaitable
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <coroutine>
#include <cstdio>
#include <optional>
#include <source_location>
#include <stop_token>
#include <system_error>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

namespace {

/// Waits until `fd` is readable. Fails with the errors of FdWatcher::start(), and with ECANCELED.
class [[nodiscard]] Readable {
 public:
  explicit Readable(int fd) noexcept : fd_(fd) {}
  // A task may move it until it is awaited. What refers to it exists only afterwards.
  Readable(Readable&& other) noexcept : fd_(other.fd_) {}
  Readable& operator=(Readable&&) = delete;
  // The destructors of the members end the wait: nothing refers to this object any more.
  ~Readable() = default;

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  // A template, so that it gets the context of the task that awaits it.
  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    const TaskContext& context = awaiting.promise().context();
    note_wait(awaiting, WaitNote(WaitKind::other, fd_), at);  // For dumps of tasks.
    awaiting_ = awaiting;
    // Ends the wait in the next iteration, because a task must not be resumed within this call, or
    // within that of the function that requests the stop.
    soon_.emplace(*context.loop, [this] { resume(); });
    watcher_.emplace(*context.loop, fd_, Events::read, [this](Events) { end({}); });
    if (const Result<> started = watcher_->start(); !started) end(started);
    // Invokes Stop at once if a stop was requested before.
    stop_.emplace(context.stop, Stop{*this});
  }

  [[nodiscard]] Result<> await_resume() const noexcept { return result_; }

 private:
  struct Stop {
    Readable& self;
    void operator()() const { self.end(std::unexpected(system_error(ECANCELED))); }
  };

  /// The first call counts: the event, the stop request or an error.
  void end(const Result<>& result) {
    if (has_ended_) return;
    has_ended_ = true;
    result_ = result;
    watcher_->stop();
    soon_->start(0ms);
  }

  void resume() {
    stop_.reset();       // A stop request must not reach an object that is gone.
    awaiting_.resume();  // This object may not exist afterwards.
  }

  int fd_;
  bool has_ended_ = false;
  Result<> result_;
  std::coroutine_handle<> awaiting_;
  std::optional<Timer> soon_;
  std::optional<FdWatcher> watcher_;
  std::optional<std::stop_callback<Stop>> stop_;
};

Task<> use(int fd) {
  const Result<> late = co_await timeout(50ms, Readable(fd));
  std::printf("nothing was written: %s\n", late ? "readable" : late.error().message().c_str());
  const Result<> ready = co_await Readable(fd);
  std::printf("after a write: %s\n", ready ? "readable" : ready.error().message().c_str());
}

Task<> wait_for_ever(int fd) { static_cast<void>(co_await Readable(fd)); }

}  // namespace

int main() try {
  EventLoop loop;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(system_error(errno));
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  Timer later(loop, [&] { static_cast<void>(!::write(writer.get(), "x", 1)); });
  later.start(100ms);
  {
    TaskScope scope(loop);
    scope.spawn(wait_for_ever(reader.get()));
    loop.run_ready();
  }  // Destroys the task, and its wait with it.
  block_on(loop, use(reader.get()));
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
