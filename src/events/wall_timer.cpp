// WallTimer: the handle, and the next time of aligned and computed timers.
#include <tambour/events/wall_timer.h>

#include <cerrno>
#include <utility>

#include <tambour/loop/event_loop.h>

#include "base/check.h"
#include "base/failure.h"
#include "events/wall_timers.h"
#include "loop/core.h"
#include "loop/loop_callback.h"

namespace tambour {
namespace {

[[noreturn]] void fail_while_computing(const char* text, std::source_location created_at) noexcept {
  detail::base::fail_check(
      "WallTimer (created in %s:%u) %s by the function that computes its next time; do that in the "
      "timer's callback, or in EventLoop::post()",
      created_at.file_name(), unsigned(created_at.line()), text);
}

}  // namespace

WallTimer::WallTimer(EventLoop& loop, Function function, std::source_location created_at) noexcept
    : detail::ReadyNode(&run, created_at),
      LoopCallback(detail::loop::core_of(loop), std::move(function)) {}

WallTimer::WallTimer(WallTimer&& other) noexcept
    : detail::ReadyNode(static_cast<detail::ReadyNode&&>(other)),
      LoopCallback(static_cast<LoopCallback&&>(other)),
      rule_(other.rule_),
      started_(std::exchange(other.started_, false)),
      heap_index_(std::exchange(other.heap_index_, 0)),
      deadline_ns_(other.deadline_ns_),
      interval_ns_(other.interval_ns_),
      offset_ns_(other.offset_ns_),
      next_(std::move(other.next_)) {
  if (other.computing_) [[unlikely]]
    fail_while_computing("moved", created_at());
  if (started_) core_->service<detail::events::WallTimers>().moved(*this);
}

WallTimer& WallTimer::operator=(WallTimer&& other) noexcept {
  return detail::loop::replace_handle(*this, other);
}

WallTimer::~WallTimer() {
  stop();
  if (core_ != nullptr) core_->defer_delete(next_.release());
}

/// Stops the timer and makes sure that it can be started.
Result<> WallTimer::open() noexcept {
  core_->check_thread();
  stop();
  auto service = core_->open_service<detail::events::WallTimers>();
  if (!service) return std::unexpected(service.error());
  return (*service)->open();
}

void WallTimer::insert() noexcept {
  started_ = true;
  core_->add_reference();
  core_->service<detail::events::WallTimers>().insert(*this);
}

Result<> WallTimer::start_at(WallTime time) noexcept {
  if (auto opened = open(); !opened) return opened;
  rule_ = Rule::once;
  deadline_ns_ = time.time_since_epoch().count();
  insert();
  return {};
}

Result<> WallTimer::start_every(Duration interval, Duration offset) noexcept {
  if (auto opened = open(); !opened) return opened;
  if (interval <= Duration::zero()) return detail::base::failure(EINVAL);
  rule_ = Rule::interval;
  interval_ns_ = interval.count();
  offset_ns_ = offset.count() % interval_ns_;
  if (offset_ns_ < 0) offset_ns_ += interval_ns_;
  deadline_ns_ = time_after(core_->wall_ns());
  insert();
  return {};
}

Result<> WallTimer::start_by(Next next) {
  if (auto opened = open(); !opened) return opened;
  rule_ = Rule::computed;
  core_->defer_delete(next_.release());
  next_ = std::move(next);
  deadline_ns_ = time_after(core_->wall_ns());
  insert();
  return {};
}

std::int64_t WallTimer::time_after(std::int64_t now_ns) {
  if (rule_ == Rule::interval) {
    std::int64_t since_last_ns = (now_ns - offset_ns_) % interval_ns_;
    if (since_last_ns < 0) since_last_ns += interval_ns_;
    return detail::base::saturating_add(now_ns - since_last_ns, interval_ns_);
  }
  computing_ = true;
  try {
    const WallTime next = next_(WallTime(Duration(now_ns)));
    computing_ = false;
    return next.time_since_epoch().count();
  } catch (...) {
    computing_ = false;
    stop();
    throw;
  }
}

void WallTimer::recompute() noexcept {
  core_->check_thread();
  if (started_ && rule_ == Rule::computed)
    core_->service<detail::events::WallTimers>().queue_recompute(*this);
}

void WallTimer::stop() noexcept {
  if (computing_) [[unlikely]]
    fail_while_computing("stopped, changed or destroyed", created_at());
  if (!started_) return;
  core_->check_thread();
  unlink();
  started_ = false;
  core_->service<detail::events::WallTimers>().remove(*this);
  core_->drop_reference();
}

void WallTimer::set_function(Function function) noexcept {
  core_->check_thread();
  replace_function(std::move(function));
}

void WallTimer::run(detail::ReadyNode& ready) {
  auto& self = static_cast<WallTimer&>(ready);
  const std::int64_t now_ns = self.core_->wall_ns();
  // Not due if it was queued to compute its next time, or if the clock has been set back since.
  const bool is_due = self.deadline_ns_ <= now_ns;
  if (is_due && self.rule_ == Rule::once) {
    self.stop();
  } else {
    if (self.rule_ != Rule::once) self.deadline_ns_ = self.time_after(now_ns);
    self.core_->service<detail::events::WallTimers>().move(self);
  }
  if (is_due) self.function_();
}

}  // namespace tambour
