// The inside of an EventLoop: what the public handles and the drop-ins stand on.
//
// A turn: wait (backend), read the clock, expire timers, run what is ready, run what was posted,
// delete what was retired. What becomes ready while callbacks run waits for the next turn, so that
// no descriptor starves another. Everything but post() and wake() belongs to one thread.
//
// Handles may outlive their loop, so the memory of a core is shared by the loop and its handles:
// the loop closes it, and whoever is last deletes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <tambour/event_loop.h>

#include "backend/backend.h"
#include "base/check.h"
#include "base/clock.h"
#include "loop/post_queue.h"
#include "loop/spin.h"
#include "loop/timers.h"
#include "op/ready_queue.h"

namespace tambour::loop {

class Core {
 public:
  Core(std::unique_ptr<backend::Backend> backend, const LoopOptions& options) noexcept;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  /// A handle exists; one fewer does.
  void attach() noexcept { ++owners_; }
  void detach() noexcept {
    if (--owners_ == 0) delete this;
  }

  /// The loop is gone: its handles fall silent.
  void close() noexcept;

  void run();
  void run_once();
  void run_ready();
  void stop() noexcept { stop_ = true; }

  void post(Callback<void()> task);
  void wake() noexcept { backend_->wake(); }
  Result<> reopen() noexcept { return backend_->reopen(); }

  /// Watchers, timers and references that keep run() going.
  void add_reference() noexcept { ++references_; }
  void drop_reference() noexcept { --references_; }

  [[nodiscard]] std::int64_t now_ns() const noexcept { return now_ns_; }
  void update_now() noexcept { now_ns_ = base::monotonic_ns(); }

  /// Keeps a closure that may be running until the turn ends.
  void retire(Closure* closure) noexcept {
    if (closure == nullptr) return;
    closure->next = retired_;
    retired_ = closure;
    if (depth_ == 0) delete_retired();
  }

  void check_thread() const noexcept {
    base::check(__builtin_thread_pointer() == thread_,
                "a loop was used from a thread that is not its own, or after it was destroyed");
  }

  backend::Backend& backend() noexcept { return *backend_; }
  Timers& timers() noexcept { return timers_; }

 private:
  class Running;
  ~Core() = default;
  enum class Wait : std::uint8_t { none, until_due };

  [[nodiscard]] bool any_due() const noexcept {
    return !ready_.empty() || !running_queue_.empty() || !posted_.empty();
  }
  [[nodiscard]] bool alive() const noexcept { return references_ > 0 || any_due(); }
  /// True where anything was due.
  bool turn(Wait wait);
  void wait_until_due();
  void sleep(std::int64_t until_ns) noexcept;
  bool spin(std::int64_t until_ns) noexcept;
  void dispatch();
  void delete_retired() noexcept;

  const void* thread_ = __builtin_thread_pointer();
  std::int64_t now_ns_ = base::monotonic_ns();
  std::int64_t references_ = 0;
  bool stop_ = false;
  int depth_ = 0;  ///< Of run() inside callbacks of run().
  std::int64_t owners_ = 1;
  ReadyQueue ready_;          ///< Due in this turn.
  ReadyQueue running_queue_;  ///< Being run; the rest of it where a callback threw.
  Closure* retired_ = nullptr;
  Timers timers_;
  Spin spin_;
  std::unique_ptr<backend::Backend> backend_;
  PostQueue posted_;
  std::atomic<bool> sleeping_{false};
};

}  // namespace tambour::loop
