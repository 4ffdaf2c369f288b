// Monitor: what a loop publishes, and what other threads read.
#include "loop/observation/monitor.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "loop/core.h"

namespace tambour::detail::loop {
namespace {

/// Places are compared by the addresses of their file names: a header that several files include
/// may have several, which readers add up.
bool is_same_place(const std::source_location& a, const std::source_location& b) noexcept {
  return a.line() == b.line() && a.file_name() == b.file_name();
}

std::size_t hash_of(const std::source_location& place) noexcept {
  return std::hash<const void*>()(place.file_name()) / 16 + std::size_t{place.line()} * 31;
}

}  // namespace

Monitor::Place& Monitor::place_of(const std::source_location& place) noexcept {
  constexpr std::size_t probes_max = 16;
  static_assert((places_max & (places_max - 1)) == 0);
  const std::size_t hash = hash_of(place);
  for (std::size_t i = 0; i < probes_max; ++i) {
    Place& entry = places_[(hash + i) & (places_max - 1)];
    if (!entry.is_used.load(std::memory_order_relaxed)) {
      entry.place = place;
      entry.is_used.store(true, std::memory_order_release);
      return entry;
    }
    if (is_same_place(entry.place, place)) return entry;
  }
  places_.back().is_used.store(true, std::memory_order_release);
  return places_.back();
}

void Monitor::note_call_end(const std::source_location& place, std::int64_t took_ns) noexcept {
  Place& entry = place_of(place);
  entry.calls.add(1);
  entry.total_ns.add(took_ns);
  if (took_ns > entry.longest_ns.get()) entry.longest_ns.set(took_ns);
  if (took_ns > stall_ns) stalls_.add(1);
}

void Monitor::note_iteration(const LoopStats& stats, std::uint64_t posted_waiting,
                             std::int64_t took_ns) noexcept {
  const auto bucket = std::ranges::lower_bound(lag_bounds_ns, took_ns) - lag_bounds_ns.begin();
  lags_[static_cast<std::size_t>(bucket)].add(1);
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

Monitor::Reading Monitor::read() noexcept {
  Reading reading;
  reading.stats = {.iterations = iterations_.get(),
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
  reading.posted_waiting = posted_waiting_.get();
  for (std::size_t i = 0; i < lags_.size(); ++i) reading.lags[i] = lags_[i].get();
  reading.stalls = stalls_.get();
  reading.running_since_ns = call_began_ns_.load(std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (core_ != nullptr) reading.running = core_->callback_place();
  return reading;
}

std::int64_t Monitor::clock_ns() noexcept {
  const std::lock_guard lock(mutex_);
  return core_ != nullptr ? core_->clock_ns() : 0;
}

std::vector<CallbackTimes> Monitor::callbacks() const {
  std::vector<CallbackTimes> found;
  for (const Place& entry : places_) {
    if (!entry.is_used.load(std::memory_order_acquire)) continue;
    found.push_back({.place = entry.place,
                     .calls = entry.calls.get(),
                     .total_ns = entry.total_ns.get(),
                     .longest_ns = entry.longest_ns.get()});
  }
  return found;
}

bool Monitor::post(Callback<void()> task, const std::source_location& posted_at) {
  const std::lock_guard lock(mutex_);
  if (core_ == nullptr) return false;
  core_->post(std::move(task), posted_at);
  return true;
}

}  // namespace tambour::detail::loop
