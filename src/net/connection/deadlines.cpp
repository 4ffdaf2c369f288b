// The timeouts of a connection: which of the limits of net/pace/ count, and one timer for all.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <new>
#include <utility>

#include "net/connection/parts.h"

namespace tambour {
/// Throws std::bad_alloc; in that case nothing has changed.
Connection::Deadlines& Connection::make_deadlines() {
  if (deadlines() == nullptr) {
    auto times = std::make_unique<Deadlines>(detail::loop::core_of(*loop_).clock_ns());
    if (!idle_off_) times->idle_ns = callbacks_->limits.idle_timeout.count();
    extras().deadlines = std::move(times);
    // In the constructor `fd` is not set yet; start() takes the sample.
    if (Operation::fd >= 0) static_cast<void>(sample_acknowledged());
  }
  Deadlines& times = *extras_->deadlines;
  if (!times.timer) times.timer.emplace(*loop_, [this] { check_deadlines(); });
  return times;
}

/// Starts a limit, which counts from now. If memory runs out, the connection is closed with ENOMEM,
/// because it must not continue without its limits.
template <class Start>
void Connection::start_deadline(Start start) noexcept {
  try {
    start(make_deadlines(), detail::loop::core_of(*loop_).clock_ns());
    arm_deadlines();
  } catch (const std::bad_alloc&) {
    end(ENOMEM);
  }
}

/// Bytes begin to wait.
void Connection::start_write_timeout() noexcept {
  start_deadline([](Deadlines& times, std::int64_t now_ns) { times.sending.restart(now_ns); });
}

/// Starts the limit of close_after_write() unless it has been started, and takes a sample: what the
/// peer acknowledges later is progress.
void Connection::start_lingering() noexcept {
  if (callbacks_->limits.linger <= Duration::zero()) return;
  Deadlines* const times = deadlines();
  if (times != nullptr && times->linger.is_started()) {
    note_acknowledged(detail::loop::core_of(*loop_).now_ns());
    return arm_deadlines();
  }
  if (times != nullptr) static_cast<void>(sample_acknowledged());
  start_deadline([](Deadlines& later, std::int64_t now_ns) { later.linger.start(now_ns); });
}

/// Returns whether the limit of close_after_write() counts.
bool Connection::lingers() const noexcept {
  return callbacks_->limits.linger > Duration::zero() && deadlines()->linger.is_started() &&
         (unsent_bytes() > 0 || write_shut_down_);
}

bool Connection::drains() const noexcept { return owner_ != nullptr && owner_->drains(); }

/// When the peer may have acknowledged bytes that the limit of lingering has to know about.
std::int64_t Connection::next_sample_ns() const noexcept {
  const Deadlines& times = *deadlines();
  if (!lingers() || (write_shut_down_ && times.sending.is_acknowledged()))
    return detail::base::end_of_time_ns;
  return detail::net::LingerTime::next_sample_ns(
      times.sending,
      detail::net::linger_limit(callbacks_->limits.linger, drains(), detail::net::drain_linger));
}

std::int64_t Connection::next_deadline_ns() const noexcept {
  const Deadlines& times = *extras_->deadlines;
  const ConnectionLimits& limits = callbacks_->limits;
  std::int64_t next_ns = times.fixed_ns;
  const auto consider = [&next_ns](std::int64_t since_ns, std::int64_t limit_ns) {
    if (limit_ns > 0) next_ns = std::min(next_ns, detail::base::saturating_add(since_ns, limit_ns));
  };
  consider(std::max(times.received_ns, times.sending.progressed_ns()), times.idle_ns);
  if (reads()) {
    consider(times.received_ns, limits.read_timeout.count());
    if (times.message.is_started() && limits.message_timeout > Duration::zero())
      next_ns = std::min(next_ns, times.message.deadline_ns(limits.message_timeout.count()));
  }
  if (unsent_bytes() > 0) {
    consider(times.sending.progressed_ns(), limits.write_timeout.count());
  }
  if (lingers()) {
    const bool is_acknowledged = write_shut_down_ && times.sending.is_acknowledged();
    const Duration limit = detail::net::linger_limit(limits.linger, is_acknowledged && drains(),
                                                     detail::net::drain_linger);
    next_ns = std::min(next_ns, times.linger.deadline_ns(times.sending, limit));
  }
  return next_ns;
}

/// Called after anything that may have made the next deadline earlier. A later deadline is found
/// when the timer expires.
void Connection::arm_deadlines() noexcept {
  Deadlines* const times = deadlines();
  if (times == nullptr || !times->timer) return;
  const std::int64_t next_ns = std::min(next_deadline_ns(), next_sample_ns());
  if (next_ns < times->timer->deadline().time_since_epoch().count())
    times->timer->start_at(TimePoint(Duration(next_ns)));
}

bool Connection::sample_acknowledged() noexcept {
  detail::loop::Core& core = detail::loop::core_of(*loop_);
  return extras_->deadlines->sending.sample(core.backend().system(), Operation::fd, core.now_ns());
}

void Connection::check_deadlines() noexcept {
  const std::int64_t now_ns = detail::loop::core_of(*loop_).now_ns();
  if (std::min(next_deadline_ns(), next_sample_ns()) <= now_ns) note_acknowledged(now_ns);
  const std::int64_t next_ns = next_deadline_ns();
  if (next_ns <= now_ns) return end_at_limit(ETIMEDOUT);
  if (next_ns == detail::base::end_of_time_ns) return drop_unneeded();
  deadlines()->timer->start_at(TimePoint(Duration(std::min(next_ns, next_sample_ns()))));
}

void Connection::note_acknowledged(std::int64_t now_ns) noexcept {
  detail::backend::System& system = detail::loop::core_of(*loop_).backend().system();
  deadlines()->sending.update(system, Operation::fd, now_ns, write_shut_down_);
}

/// Frees what an idle connection does not need. The deadlines of a connection whose reading is
/// paused are kept if it has a limit on reading, which counts again after reading is resumed.
void Connection::drop_unneeded() noexcept {
  if (const Deadlines* const times = deadlines();
      times != nullptr && next_deadline_ns() == detail::base::end_of_time_ns) {
    const bool has_read_limit =
        callbacks_->limits.read_timeout > Duration::zero() || times->message.is_started();
    if (reads() || peer_half_closed_ || !has_read_limit) extras_->deadlines.reset();
  }
  if (extras_ != nullptr && extras_->is_default()) extras_.reset();
}

/// Called after on_message, with what the callback left in the buffer.
void Connection::note_message(std::size_t received, bool consumed) noexcept {
  const ConnectionLimits& limits = callbacks_->limits;
  Deadlines* const times = deadlines();
  if (input_.empty()) {
    if (times != nullptr) times->message.stop();
    return;
  }
  if (times != nullptr && !consumed && times->message.is_started())
    return times->message.earn(received, limits.message_rate_min,
                               detail::loop::core_of(*loop_).clock_ns());
  start_deadline([](Deadlines& later, std::int64_t now_ns) { later.message.start(now_ns); });
}

void Connection::set_idle_timeout(Duration time) {
  check_thread("set_idle_timeout");
  if (ended_) return;
  if (time <= Duration::zero()) {
    idle_off_ = true;
    if (Deadlines* const times = deadlines()) times->idle_ns = 0;
    return drop_unneeded();
  }
  Deadlines& times = make_deadlines();
  idle_off_ = false;
  times.idle_ns = time.count();
  times.received_ns = detail::loop::core_of(*loop_).clock_ns();
  arm_deadlines();
}

void Connection::set_deadline(Duration time) {
  check_thread("set_deadline");
  if (ended_) return;
  if (time <= Duration::zero()) {
    if (Deadlines* const times = deadlines()) times->fixed_ns = detail::base::end_of_time_ns;
    return drop_unneeded();
  }
  Deadlines& times = make_deadlines();
  times.fixed_ns =
      detail::base::saturating_add(detail::loop::core_of(*loop_).clock_ns(), time.count());
  arm_deadlines();
}

}  // namespace tambour
