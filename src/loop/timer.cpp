// Timer: the handle. The wheel is in base/timing_wheel.h.
#include <tambour/loop/timer.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <expected>
#include <utility>

#include <tambour/loop/event_loop.h>

#include "base/check.h"
#include "base/clock.h"
#include "loop/core.h"
#include "loop/loop_callback.h"

namespace tambour {
namespace {

void check_function(const Timer::Function& function, std::source_location created_at) noexcept {
  if (function) [[likely]]
    return;
  detail::base::fail_check("Timer (created in %s:%u) got an empty function; give it one to invoke",
                           created_at.file_name(), unsigned(created_at.line()));
}

Duration duration_of(double seconds) noexcept {
  // In seconds, close to the range of a 64-bit count of nanoseconds.
  constexpr double limit = 9.2e9;
  if (seconds >= limit) return Duration::max();
  if (seconds <= -limit) return Duration::min();
  // Rounded up: a fraction of a nanosecond must not make the timer early.
  return Duration(static_cast<std::int64_t>(std::ceil(seconds * 1e9)));
}

}  // namespace

Timer::Timer(EventLoop& loop, Function function, std::source_location created_at)
    : TimerNode(&run, created_at), LoopCallback(detail::loop::core_of(loop), std::move(function)) {
  core_->check_thread_of(created_at);
  check_function(function_, created_at);
}

Timer::Timer(Timer&& other) noexcept = default;
Timer& Timer::operator=(Timer&& other) noexcept {
  return detail::loop::replace_handle(*this, other);
}

Timer::~Timer() { stop(); }

void Timer::arm(std::int64_t deadline_ns) noexcept {
  unqueue();
  started_ = true;
  core_->timers().arm(*this, deadline_ns);
}

void Timer::arm_after(std::int64_t from_ns, std::int64_t delay_ns) noexcept {
  arm(detail::base::saturating_add(from_ns, std::max(delay_ns, std::int64_t{0})));
}

void Timer::start(Duration delay) noexcept { start(delay, Duration::zero()); }

void Timer::start(Duration delay, Duration interval) noexcept {
  core_->check_thread_of(created_at());
  unqueue();
  repeating_ = interval.count() > 0;
  period_ns_ = repeating_ ? interval.count() : delay.count();
  arm_after(core_->clock_ns(), delay.count());
}

Result<> Timer::start_seconds(double delay, double interval) noexcept {
  if (std::isnan(delay) || std::isnan(interval)) return std::unexpected(system_error(EINVAL));
  start(duration_of(delay), duration_of(interval));
  return {};
}

void Timer::start_at(TimePoint deadline) noexcept {
  core_->check_thread_of(created_at());
  unqueue();
  repeating_ = false;
  period_ns_ = 0;
  arm(std::max<std::int64_t>(deadline.time_since_epoch().count(), 0));
}

/// Servers reset a timer at each message.
[[gnu::flatten]] void Timer::reset(Duration delay) noexcept {
  core_->check_thread_of(created_at());
  if (!repeating_) period_ns_ = delay.count();
  arm_after(core_->now_ns(), delay.count());
}

[[gnu::flatten]] void Timer::reset() noexcept {
  core_->check_thread_of(created_at());
  arm_after(core_->now_ns(), period_ns_);
}

void Timer::stop() noexcept {
  if (!started_) return;
  // A timer that was due when its loop was destroyed had left the wheel, so abandon() did not stop
  // it.
  core_->check_thread_unless_closed(created_at());
  unqueue();
  core_->timers().cancel(*this);
  started_ = false;
}

void Timer::set_function(Function function) noexcept {
  core_->check_thread_of(created_at());
  check_function(function, created_at());
  replace_function(std::move(function));
}

void Timer::run(detail::ReadyNode& ready) {
  auto& self = static_cast<Timer&>(ready);
  if (!self.repeating_) {
    self.started_ = false;
    self.prefetch_hinted();
  }
  self.function_();
}

}  // namespace tambour
