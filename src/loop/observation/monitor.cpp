// Monitor: what a loop publishes, and what other threads read.
#include "loop/observation/monitor.h"

#include <utility>

#include "loop/core.h"

namespace tambour::detail::loop {

void Monitor::note_iteration(const LoopStats& stats, std::uint64_t posted_waiting,
                             std::int64_t took_ns) noexcept {
  lags_.note(took_ns);
  iterations_.set(stats.iterations);
  waits_.set(stats.waits);
  callbacks_.set(stats.callbacks);
  posted_.set(stats.posted);
  system_calls_.set(stats.system_calls);
  wakeups_.set(stats.wakeups);
  wait_ns_.set(stats.wait_time.count());
  callback_ns_.set(stats.callback_time.count());
  lag_max_ns_.set(stats.lag_max.count());
  timers_.set(stats.timers);
  pending_.set(stats.pending);
  references_.set(stats.references);
  posted_waiting_.set(posted_waiting);
  call_began_ns_.store(0, std::memory_order_relaxed);
}

void Monitor::note_close() noexcept {
  const std::lock_guard lock(mutex_);
  core_ = nullptr;
  call_began_ns_.store(0, std::memory_order_relaxed);
}

Monitor::Figures Monitor::figures() const noexcept {
  Figures figures;
  figures.stats = {.iterations = iterations_.get(),
                   .waits = waits_.get(),
                   .callbacks = callbacks_.get(),
                   .posted = posted_.get(),
                   .system_calls = system_calls_.get(),
                   .wakeups = wakeups_.get(),
                   .wait_time = Duration(wait_ns_.get()),
                   .callback_time = Duration(callback_ns_.get()),
                   .lag_max = Duration(lag_max_ns_.get()),
                   .timers = timers_.get(),
                   .pending = pending_.get(),
                   .references = references_.get()};
  figures.posted_waiting = posted_waiting_.get();
  figures.stalls = calls_.stalls();
  return figures;
}

Monitor::Reading Monitor::read() noexcept {
  Reading reading;
  static_cast<Figures&>(reading) = figures();
  reading.lags = lags();
  reading.running_since_ns = running_since_ns();
  const std::lock_guard lock(mutex_);
  if (core_ != nullptr) reading.running = core_->callback_place();
  return reading;
}

std::int64_t Monitor::clock_ns() noexcept {
  const std::lock_guard lock(mutex_);
  return core_ != nullptr ? core_->clock_ns() : 0;
}

bool Monitor::post(Callback<void()> task, const std::source_location& posted_at) {
  const std::lock_guard lock(mutex_);
  if (core_ == nullptr) return false;
  core_->post(std::move(task), posted_at);
  return true;
}

}  // namespace tambour::detail::loop
