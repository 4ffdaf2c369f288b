#include <tambour/timer.h>

#include <memory>
#include <utility>

#include <tambour/event_loop.h>

#include "base/clock.h"
#include "loop/core.h"

namespace tambour {

Timer::Timer(EventLoop& loop, Function function, std::source_location created_at)
    : Ready(&run, created_at), core_(loop.core_), function_(std::move(function)) {
  core_->check_thread();
  core_->timers().attach();
  core_->attach();
}

Timer::Timer(Timer&& other) noexcept
    : Ready(static_cast<Ready&&>(other)),
      started_(std::exchange(other.started_, false)),
      heap_index_(std::exchange(other.heap_index_, 0)),
      core_(std::exchange(other.core_, nullptr)),
      deadline_ns_(other.deadline_ns_),
      queued_ns_(other.queued_ns_),
      delay_ns_(other.delay_ns_),
      interval_ns_(other.interval_ns_),
      function_(std::move(other.function_)) {
  if (core_ != nullptr) core_->timers().moved(*this);
}

Timer& Timer::operator=(Timer&& other) noexcept {
  if (this != &other) {
    std::destroy_at(this);
    std::construct_at(this, std::move(other));
  }
  return *this;
}

Timer::~Timer() {
  if (core_ == nullptr) return;  // Moved from.
  stop();
  core_->timers().detach(*this);
  core_->retire(function_.release());
  core_->detach();
}

void Timer::arm(std::int64_t deadline_ns) noexcept {
  core_->check_thread();
  unlink();
  deadline_ns_ = deadline_ns;
  if (!started_) {
    started_ = true;
    core_->add_reference();
  }
  core_->timers().arm(*this);
}

void Timer::start(Duration delay) noexcept { start(delay, Duration::zero()); }

void Timer::start(Duration delay, Duration interval) noexcept {
  core_->check_thread();
  delay_ns_ = delay.count();
  interval_ns_ = interval.count();
  arm(base::saturating_add(core_->clock_ns(), delay_ns_ > 0 ? delay_ns_ : 0));
}

void Timer::start_at(TimePoint deadline) noexcept {
  delay_ns_ = 0;
  interval_ns_ = 0;
  const std::int64_t deadline_ns = deadline.time_since_epoch().count();
  arm(deadline_ns > 0 ? deadline_ns : 0);
}

void Timer::reset(Duration delay) noexcept {
  delay_ns_ = delay.count();
  arm(base::saturating_add(core_->now_ns(), delay_ns_ > 0 ? delay_ns_ : 0));
}

void Timer::reset() noexcept {
  const std::int64_t again_ns = interval_ns_ > 0 ? interval_ns_ : delay_ns_;
  arm(base::saturating_add(core_->now_ns(), again_ns > 0 ? again_ns : 0));
}

void Timer::stop() noexcept {
  if (!started_) return;
  // One that was due when its loop was destroyed is in no heap any more, and was not abandoned.
  if (!core_->closed()) core_->check_thread();
  unlink();
  started_ = false;
  core_->drop_reference();
}

void Timer::set_function(Function function) noexcept {
  core_->check_thread();
  core_->retire(function_.release());
  function_ = std::move(function);
}

void Timer::run(Ready& ready) {
  auto& self = static_cast<Timer&>(ready);
  if (self.interval_ns_ <= 0) {
    self.started_ = false;
    self.core_->drop_reference();
  }
  self.function_();
}

}  // namespace tambour
