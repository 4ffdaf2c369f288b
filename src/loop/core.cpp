#include "loop/core.h"

#include <utility>

namespace tambour::loop {

/// Marks the loop as running for as long as callbacks may be on the stack, however they leave.
class Core::Running {
 public:
  explicit Running(Core& core) noexcept : core_(core) {
    core.check_thread();
    ++core.depth_;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (--core_.depth_ == 0) core_.delete_retired();
  }

 private:
  Core& core_;
};

Core::Core(std::unique_ptr<backend::Backend> backend, const LoopOptions& options) noexcept
    : spin_(options.spin.count()), backend_(std::move(backend)) {}

void Core::close() noexcept {
  check_thread();
  base::check(depth_ == 0, "a loop was destroyed inside one of its own callbacks");
  backend_->abandon();
  timers_.abandon();
  backend_.reset();
  posted_.clear();
  // A handle that is started after this is told so by check_thread().
  thread_ = nullptr;
  detach();
}

void Core::run() {
  const Running running(*this);
  while (!stop_ && alive()) turn(Wait::until_due);
  stop_ = false;
}

void Core::run_once() {
  const Running running(*this);
  while (!stop_ && alive() && !turn(Wait::until_due)) {
  }
  stop_ = false;
}

void Core::run_ready() {
  const Running running(*this);
  turn(Wait::none);
}

void Core::post(Callback<void()> task) {
  posted_.push(std::move(task));
  // Only the first task after the loop fell asleep wakes it. The loop says that it sleeps and then
  // looks at the queue, we push and then look whether it sleeps, all sequentially consistent:
  // either it sees the task or we see it asleep.
  if (sleeping_.load(std::memory_order_seq_cst) &&
      sleeping_.exchange(false, std::memory_order_seq_cst)) {
    backend_->wake();
  }
}

bool Core::turn(Wait wait) {
  if (wait == Wait::until_due && !any_due()) {
    wait_until_due();
  } else {
    backend_->poll(0, ready_);
  }
  update_now();
  timers_.expire(now_ns_, ready_);
  if (!any_due()) return false;
  dispatch();
  return true;
}

void Core::wait_until_due() {
  const std::int64_t until_ns = timers_.next_ns();
  if (!spin_.enabled()) {
    sleep(until_ns);
    return;
  }
  const std::int64_t began_ns = base::monotonic_ns();
  if (!spin(until_ns)) sleep(until_ns);
  if (!ready_.empty()) spin_.note_wait(base::monotonic_ns() - began_ns);
}

bool Core::spin(std::int64_t until_ns) noexcept {
  const std::int64_t budget_ns = spin_.budget_ns();
  if (budget_ns == 0) return false;
  std::int64_t give_up_ns = base::saturating_add(base::monotonic_ns(), budget_ns);
  const bool timer_comes_first = until_ns <= give_up_ns;
  if (timer_comes_first) give_up_ns = until_ns;
  do {
    backend_->poll(0, ready_);
    if (!ready_.empty() || !posted_.empty()) return true;
  } while (base::monotonic_ns() < give_up_ns);
  return timer_comes_first;
}

void Core::sleep(std::int64_t until_ns) noexcept {
  std::int64_t timeout_ns = -1;
  if (until_ns != base::end_of_time_ns) {
    // A fresh reading: the callbacks of this turn have taken time too.
    timeout_ns = until_ns - base::monotonic_ns();
    if (timeout_ns < 0) timeout_ns = 0;
  }
  sleeping_.store(true, std::memory_order_seq_cst);
  backend_->poll(posted_.empty() ? timeout_ns : 0, ready_);
  sleeping_.store(false, std::memory_order_relaxed);
}

void Core::dispatch() {
  running_queue_.take(ready_);
  while (!running_queue_.empty()) running_queue_.run_first();
  if (!posted_.empty()) posted_.run();
  if (retired_ != nullptr && depth_ == 1) delete_retired();
}

void Core::delete_retired() noexcept {
  while (retired_ != nullptr) {
    // A closure's destructor may destroy further handles, and so retire further closures.
    delete std::exchange(retired_, retired_->next);
  }
}

}  // namespace tambour::loop
