// Core: one iteration of the loop, its threads and services, and exceptions of callbacks.
#include "loop/core.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "base/probe.h"

namespace tambour::detail::loop {

/// One run(), run_once() or run_ready() call. A closure created during a nested call cannot be
/// running in an outer callback, so it is deleted at the end of a nested iteration.
class Core::Iterating {
 public:
  Iterating(Core& core, std::source_location function) noexcept
      : running_(core, function), core_(core) {
    core.iteration_ended_ns_ = 0;
    if (core.depth_ == 1) return;
    nested_ = {.nested_run = detail::Closure::begin_nested_run(), .outside = core.level_};
    core.level_ = &nested_;
  }
  Iterating(const Iterating&) = delete;
  Iterating& operator=(const Iterating&) = delete;
  ~Iterating() {
    if (core_.level_ != &nested_) return;
    core_.delete_deferred();
    core_.level_ = nested_.outside;
  }

 private:
  Running running_;
  Core& core_;
  Level nested_;
};

/// Clears the stop request when run() returns or throws.
class Core::Stoppable {
 public:
  explicit Stoppable(Core& core) noexcept : core_(core) {}
  Stoppable(const Stoppable&) = delete;
  Stoppable& operator=(const Stoppable&) = delete;
  ~Stoppable() { core_.stop_.store(false, std::memory_order_relaxed); }

 private:
  Core& core_;
};

Core::Core(std::unique_ptr<backend::Backend> backend, const LoopOptions& options,
           std::source_location created_at) noexcept
    : spin_(options.spin.count()),
      backend_(std::move(backend)),
      measure_times_(options.measure_times),
      created_at_(created_at),
      thread_id_(::gettid()) {
  backend_->belong_to(*this);
  update_now();
  // Sets the wheel's time, which decides where the timers that are started before run() belong.
  timers_.expire(now_ns_, ready_);
}

Core::~Core() = default;

constinit thread_local std::uint64_t Core::this_thread = 0;

std::uint64_t Core::number_this_thread() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  if (this_thread == 0) this_thread = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return this_thread;
}

void Core::throw_out_of_run(std::exception_ptr thrown) noexcept {
  if (thrown_.exception == nullptr) {
    thrown_.exception = std::move(thrown);
    return queue(thrown_);
  }
  // An exception is already pending: post this one behind it. If that fails, it is dropped.
  try {
    post([thrown = std::move(thrown)] { std::rethrow_exception(thrown); });
  } catch (const std::exception&) {
    return;
  }
}

void Core::rethrow_pending() {
  if (thrown_.exception == nullptr) return;
  thrown_.unlink();
  Thrown::run(thrown_);
}

void Core::update_io_budget() noexcept {
  // In a simulation the clock does not advance during an iteration, so the count is limited as
  // well.
  constexpr unsigned limit = 65'536;
  constexpr std::int64_t long_ns = 50'000'000;
  io_budget_exhausted_ =
      io_budget_exhausted_ || at_once_ >= limit || clock_ns() - iteration_began_ns_ > long_ns;
}

void Core::drop_owned() noexcept {
  do {
    // Posted tasks may refer to objects that the loop owns, so they are destroyed first.
    posted_.clear();
    services_.drop_owned();
    while (detail::LoopOwned* const owned = owned_.front()) {
      owned->unlink();
      delete owned;
    }
    posted_.clear();
    // A destructor may spawn further tasks.
  } while (services_.drop_owned() || !owned_.empty() || services_.drop_state());
}

void Core::warn_if_never_run() const noexcept {
  static constinit std::atomic<bool> has_warned{false};
  // If an exception ends the program before run(), it is the reason.
  if (stats_.iterations != 0 || std::uncaught_exceptions() != 0) return;
  const std::size_t spawned = services_.owned_tasks();
  const std::uint64_t posted = posted_.size();
  if (spawned + posted == 0 || has_warned.exchange(true, std::memory_order_relaxed)) return;
  base::warn(
      "EventLoop (created in %s:%u) destroyed with %zu spawned and %llu posted tasks, which have "
      "not ended: run() was not called, or nothing kept the loop running",
      created_at_.file_name(), unsigned(created_at_.line()), spawned,
      static_cast<unsigned long long>(posted));
}

void Core::close(std::source_location function) noexcept {
  check_thread(function);
  if (depth_ != 0) [[unlikely]] {
    base::fail_check(
        "EventLoop (created in %s:%u) destroyed inside one of its own callbacks; call stop(), and "
        "destroy it when run() has returned",
        created_at_.file_name(), unsigned(created_at_.line()));
  }
  if (monitor_ != nullptr) monitor_->note_close();
  drop_owned();
  {
    const Running running(*this);
    run_hooks(HookPoint::cleanup);
  }
  drop_owned();
  for (detail::Hlist<Hook>& hooks : hooks_) {
    while (Hook* const hook = hooks.front()) hook->stop();
  }
  while (Async* const async = asyncs_.front()) async->stop();
  services_.close();
  defer_delete(pending_runner_.release());
  // Destroying a task may cancel an operation in the backend or close a descriptor through it.
  drop_owned();
  unregister_loop();
  backend_->abandon();
  timers_.abandon();
  backend_.reset();
  // From here on check_thread() reports every use of a handle.
  thread_ = no_thread;
  detach();
}

void Core::fail_thread_check(const char* function,
                             const std::source_location* object) const noexcept {
  // "void tambour::Timer::start(tambour::Duration)" becomes "Timer::start()".
  std::string_view name(function);
  name = name.substr(0, name.find('('));
  name.remove_prefix(name.rfind(' ') + 1);
  constexpr std::string_view prefix = "tambour::";
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  // Must not allocate: see fail_check().
  std::array<char, 256> where{};
  if (object != nullptr) {
    std::snprintf(where.data(), where.size(), " on an object created in %s:%u", object->file_name(),
                  unsigned(object->line()));
  }
  const bool is_destructor = name.find('~') != std::string_view::npos;
  const auto length = static_cast<int>(name.size());
  const auto line = static_cast<unsigned>(created_at_.line());
  if (thread_ == no_thread) {
    base::fail_check(
        "%.*s() called%s after its EventLoop (created in %s:%u) was destroyed; destroy the object "
        "first, or keep the loop until then",
        // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): `length` bounds it.
        length, name.data(), where.data(), created_at_.file_name(), line);
  }
  base::fail_check(
      "%.*s() called%s: EventLoop (created in %s:%u) used from thread %d, but it belongs to thread "
      "%d; %s",
      // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): `length` bounds it.
      length, name.data(), where.data(), created_at_.file_name(), line, int(::gettid()), thread_id_,
      is_destructor ? "destroy the object on that thread" : "use post()");
}

void Core::fail_thread_check_of(const char* function, std::source_location object) const noexcept {
  fail_thread_check(function, &object);
}

void Core::run(std::source_location function) {
  const Iterating iterating(*this, function);
  const Stoppable stoppable(*this);
  while (!stop_requested() && alive()) run_iteration(Wait::until_due);
  rethrow_pending();
}

void Core::run_once(std::source_location function) {
  const Iterating iterating(*this, function);
  const Stoppable stoppable(*this);
  while (!stop_requested() && alive() && !run_iteration(Wait::until_due)) {
  }
  rethrow_pending();
}

void Core::run_ready(std::source_location function) {
  const Iterating iterating(*this, function);
  run_iteration(Wait::none);
}

void Core::post(Callback<void()>&& task, const std::source_location& posted_at) {
  posted_.push(std::move(task), posted_at);
  wake_if_waiting();
}

bool Core::run_iteration(Wait wait) {
  ++stats_.iterations;
  at_once_ = 0;
  io_budget_exhausted_ = false;
  const std::int64_t before_ns = measure_times_ ? take_end_of_iteration() : 0;
  if (!hooks_at(HookPoint::prepare).empty()) {
    run_hooks(HookPoint::prepare);
    // A prepare hook may have stopped the last watcher.
    if (stop_requested() || !alive()) wait = Wait::none;
  }
  if (!services_.empty()) services_ns_ = services_.before_wait();
  if (wait == Wait::until_due && !any_due() && hooks_at(HookPoint::idle).empty()) {
    if (spin_.enabled()) {
      wait_until_due();
    } else {
      sleep(std::min(timers_.next_ns(), services_ns_));
    }
  } else {
    backend_->poll(0, ready_);
  }
  update_now();
  iteration_began_ns_ = now_ns_;
  if (measure_times_) note_wait(before_ns);
  if (!hooks_at(HookPoint::check).empty()) run_hooks(HookPoint::check);
  timers_.expire(now_ns_, ready_);
  if (services_ns_ <= now_ns_) services_.expire(now_ns_);
  if (any_async_sent_.load(std::memory_order_relaxed)) queue_asyncs();
  if (!hooks_at(HookPoint::idle).empty()) queue_idle_hooks();
  if (!any_due()) return false;
  dispatch();
  if (measure_times_) note_times();
  return true;
}

/// Spins first.
void Core::wait_until_due() {
  const std::int64_t until_ns = std::min(timers_.next_ns(), services_ns_);
  const std::int64_t began_ns = clock_ns();
  if (!spin(until_ns)) sleep(until_ns);
  if (!ready_.empty()) spin_.note_wait(clock_ns() - began_ns);
}

bool Core::spin(std::int64_t until_ns) noexcept {
  const std::int64_t budget_ns = spin_.budget_ns();
  if (budget_ns == 0) return false;
  std::int64_t give_up_ns = base::saturating_add(clock_ns(), budget_ns);
  const bool timer_comes_first = until_ns <= give_up_ns;
  if (timer_comes_first) give_up_ns = until_ns;
  do {
    backend_->poll(0, ready_);
    if (!ready_.empty() || must_return()) return true;
  } while (clock_ns() < give_up_ns);
  return timer_comes_first;
}

/// Inlined, like dispatch(): with one connection that is busy, each request has its own iteration.
[[gnu::always_inline]] inline void Core::sleep(std::int64_t until_ns) noexcept {
  constexpr std::int64_t at_once = 0;
  if ((collect_io_ns_ | collect_timeout_ns_) != 0) until_ns = collect(until_ns);
  ++stats_.waits;
  sleeping_.store(true, std::memory_order_seq_cst);
  backend_->poll_until(must_return() ? at_once : until_ns, ready_);
  sleeping_.store(false, std::memory_order_relaxed);
}

std::int64_t Core::collect(std::int64_t until_ns) noexcept {
  const std::int64_t now_ns = clock_ns();
  const std::int64_t soonest_ns = base::saturating_add(now_ns, collect_timeout_ns_);
  if (until_ns < soonest_ns) until_ns = soonest_ns;
  const std::int64_t pause_ns =
      until_ns - now_ns < collect_io_ns_ ? until_ns - now_ns : collect_io_ns_;
  if (pause_ns > 0) {
    backend_->pause(pause_ns);
  }
  return until_ns;
}

[[gnu::always_inline]] inline void Core::dispatch() {
  if (pending_runner_) {
    pending_runner_();
    call_ended_ns_ = 0;  // The runner may have done more.
  } else {
    run_pending();
  }
  if (level_->deferred == nullptr) return;
  delete_deferred();
  call_ended_ns_ = 0;  // The iteration lasts longer than its last callback.
}

void Core::run_pending(std::source_location function) {
  const Running running(*this, function);
  running_queue_.take(ready_);
  // Tasks posted after this point, including by callbacks, run in the next iteration.
  const bool any_posted = !posted_.empty();
  if (any_posted) posted_.take();
  const std::size_t count = times_callbacks_ ? run_queue() : running_queue_.run_all();
  TAMBOUR_PROBE1(dispatch, count);
  stats_.callbacks += count;
  if (any_posted) stats_.posted += run_posted();
}

std::size_t Core::run_queue() { return times_callbacks_ ? time_queue() : running_queue_.run_all(); }

std::size_t Core::run_posted() { return times_callbacks_ ? time_posted() : posted_.run(); }

void Core::set_pending_runner(Callback<void()> runner) noexcept {
  defer_delete(pending_runner_.release());
  pending_runner_ = std::move(runner);
}

void Core::suspend_timers() noexcept {
  if (!suspended_ns_) suspended_ns_ = clock_ns();
}

void Core::resume_timers() noexcept {
  if (!suspended_ns_) return;
  update_now();
  timers_.shift(now_ns_ - *std::exchange(suspended_ns_, std::nullopt));
}

std::int64_t Core::begin_host_wait() noexcept {
  constexpr std::int64_t at_once = 0;
  if (!services_.empty()) services_ns_ = services_.before_wait();
  if (any_due() || !hooks_at(HookPoint::idle).empty() || backend_->must_poll()) return at_once;
  sleeping_.store(true, std::memory_order_seq_cst);
  if (any_from_others()) return at_once;
  return std::min(timers_.next_ns(), services_ns_);
}

Result<> Core::reopen() noexcept {
  thread_id_ = ::gettid();  // The child's thread id differs from the parent's.
  // Before any descriptor is opened, which could get the number of a former one.
  const bool has_all = backend_->disown_if_lost();
  services_.disown_if_lost(has_all);
  auto reopened = backend_->reopen();
  if (reopened) reopened = posted_.reopen();
  if (reopened) reopened = services_.reopen();
  if (reopened) queue_hooks(HookPoint::fork, ready_);
  return reopened;
}

void Core::run_hooks(HookPoint point) {
  if (hooks_at(point).empty()) return;
  queue_hooks(point, running_queue_);
  stats_.callbacks += run_queue();
}

void Core::queue_hooks(HookPoint point, ReadyQueue& queue) noexcept {
  for (Hook* hook = hooks_at(point).front(); hook != nullptr; hook = hook->next()) {
    if (!hook->linked()) queue.push(*hook);
  }
}

void Core::queue_idle_hooks() noexcept {
  const bool none_due = ready_.empty();
  const int highest_due = none_due ? 0 : ready_.highest_priority();
  for (Hook* hook = hooks_at(HookPoint::idle).front(); hook != nullptr; hook = hook->next()) {
    if ((none_due || hook->priority() > highest_due) && !hook->linked()) ready_.push(*hook);
  }
}

void Core::queue_asyncs() noexcept {
  any_async_sent_.store(false, std::memory_order_seq_cst);
  for (Async* async = asyncs_.front(); async != nullptr; async = async->next()) {
    if (async->is_sent() && !async->linked()) ready_.push(*async);
  }
  services_.collect();
}

void Core::add(Hook& hook) noexcept {
  hooks_at(hook.point_).push_front(hook);
  if (hook.point_ != HookPoint::cleanup) add_reference();
}

void Core::remove(Hook& hook) noexcept {
  hook.unlist();
  if (hook.point_ != HookPoint::cleanup) drop_reference();
}

void Core::add(Async& async) noexcept {
  asyncs_.push_front(async);
  add_reference();
  if (async.is_sent()) any_async_sent_.store(true, std::memory_order_seq_cst);
}

void Core::remove(Async& async) noexcept {
  async.unlist();
  drop_reference();
}

void Core::delete_deferred() noexcept {
  detail::Closure*& first = level_->deferred;
  while (first != nullptr) {
    // A closure's destructor may destroy further handles, and so defer the deletion of further
    // closures.
    delete std::exchange(first, first->next());
  }
}

}  // namespace tambour::detail::loop
