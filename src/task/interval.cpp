// Interval: the time of the next tick.
#include <tambour/task/interval.h>

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "loop/core.h"

namespace tambour {

using detail::base::saturating_add;
using detail::base::saturating_multiply;

Interval::Interval(EventLoop& loop, Duration period, MissedTicks missed,
                   std::source_location created_at) noexcept
    : core_(&detail::loop::core_of(loop)),
      period_(period),
      missed_(missed),
      created_at_(created_at) {
  core_->check_thread_of(created_at);
  if (period <= Duration::zero()) [[unlikely]] {
    detail::base::fail_check(
        "Interval (created in %s:%u) got a period of %lld ns; it must be positive",
        created_at.file_name(), unsigned(created_at.line()),
        static_cast<long long>(period.count()));
  }
  core_->attach();
  reset();
}

Interval::~Interval() {
  core_->check_thread_unless_closed(created_at_);
  if (waiting_ != nullptr) {
    waiting_->interval_ = nullptr;
    waiting_->cancel(*core_);
  }
  core_->detach();
}

void Interval::reset() noexcept {
  core_->check_thread_of(created_at_);
  check_not_waiting();
  next_ = saturating_add(TimePoint(Duration(core_->clock_ns())), period_);
}

void Interval::reset_at(TimePoint time) noexcept {
  core_->check_thread_of(created_at_);
  check_not_waiting();
  next_ = std::max(time, TimePoint());
}

void Interval::begin_wait(Tick& tick) noexcept {
  core_->check_thread_of(created_at_);
  check_not_waiting();
  waiting_ = &tick;
}

void Interval::check_not_waiting() const noexcept {
  if (waiting_ == nullptr) [[likely]]
    return;
  detail::base::fail_check(
      "Interval (created in %s:%u) used while a task awaits its tick(); let one task await it, or "
      "give each task an Interval of its own",
      created_at_.file_name(), unsigned(created_at_.line()));
}

TimePoint Interval::consume() noexcept {
  const TimePoint due = next_;
  const TimePoint now(Duration(core_->clock_ns()));
  next_ = saturating_add(due, period_);
  if (missed_ == MissedTicks::delay) {
    constexpr Duration late_after = std::chrono::milliseconds(5);
    if (now > saturating_add(due, std::min(late_after, period_)))
      next_ = saturating_add(now, period_);
  } else if (missed_ == MissedTicks::skip && next_ <= now) {
    const auto passed = (now - next_) / period_ + 1;
    skipped_ += static_cast<std::uint64_t>(passed);
    next_ = saturating_add(next_, Duration(saturating_multiply(passed, period_.count())));
  }
  return due;
}

}  // namespace tambour
