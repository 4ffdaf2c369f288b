// The timeouts of a connection: which of the limits of net/pace/ count, and one timer for all.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <new>
#include <utility>

#include "net/connection/parts.h"

namespace tambour::detail::net {
/// Throws std::bad_alloc; in that case nothing has changed.
ConnectionCore::Deadlines& ConnectionCore::make_deadlines() {
  if (deadlines() == nullptr) {
    auto times = std::make_unique<Deadlines>(loop::core_of(*loop_).clock_ns());
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
void ConnectionCore::start_deadline(Start start) noexcept {
  try {
    start(make_deadlines(), loop::core_of(*loop_).clock_ns());
    arm_deadlines();
  } catch (const std::bad_alloc&) {
    end(ENOMEM);
  }
}

/// Bytes begin to wait.
void ConnectionCore::start_write_timeout() noexcept {
  if (callbacks_->limits.write_timeout <= Duration::zero()) return;
  start_deadline([](Deadlines& times, std::int64_t now_ns) { times.sending.restart(now_ns); });
}

/// Starts the limit of close_after_write() unless it has been started, and takes a sample: what the
/// peer acknowledges later is progress.
void ConnectionCore::start_lingering() noexcept {
  if (callbacks_->limits.linger <= Duration::zero()) return;
  Deadlines* const times = deadlines();
  if (times != nullptr && times->linger.is_started()) {
    note_acknowledged(loop::core_of(*loop_).now_ns());
    return arm_deadlines();
  }
  if (times != nullptr) static_cast<void>(sample_acknowledged());
  start_deadline([](Deadlines& later, std::int64_t now_ns) { later.linger.start(now_ns); });
}

/// Returns whether the limit of close_after_write() counts.
bool ConnectionCore::lingers() const noexcept {
  return callbacks_->limits.linger > Duration::zero() && deadlines()->linger.is_started() &&
         (unsent_bytes() > 0 || write_shut_down_);
}

bool ConnectionCore::drains() const noexcept { return owner_ != nullptr && owner_->drains(); }

/// When the peer may have acknowledged bytes that the limit of lingering has to know about.
std::int64_t ConnectionCore::next_sample_ns() const noexcept {
  const Deadlines& times = *deadlines();
  if (!lingers() || (write_shut_down_ && times.sending.is_acknowledged()))
    return base::end_of_time_ns;
  return LingerTime::next_sample_ns(
      times.sending, linger_limit(callbacks_->limits.linger, drains(), drain_linger));
}

std::int64_t ConnectionCore::next_deadline_ns() const noexcept {
  const Deadlines& times = *extras_->deadlines;
  const ConnectionLimits& limits = callbacks_->limits;
  std::int64_t next_ns = times.fixed_ns;
  const auto consider = [&next_ns](std::int64_t since_ns, std::int64_t limit_ns) {
    if (limit_ns > 0) next_ns = std::min(next_ns, base::saturating_add(since_ns, limit_ns));
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
    const Duration limit = linger_limit(limits.linger, is_acknowledged && drains(), drain_linger);
    next_ns = std::min(next_ns, times.linger.deadline_ns(times.sending, limit));
  }
  return next_ns;
}

/// Called after anything that may have made the next deadline earlier. A later deadline is found
/// when the timer expires.
void ConnectionCore::arm_deadlines() noexcept {
  Deadlines* const times = deadlines();
  if (times == nullptr || !times->timer) return;
  const std::int64_t next_ns = std::min(next_deadline_ns(), next_sample_ns());
  if (next_ns < times->timer->deadline().time_since_epoch().count())
    times->timer->start_at(TimePoint(Duration(next_ns)));
}

bool ConnectionCore::sample_acknowledged() noexcept {
  loop::Core& core = loop::core_of(*loop_);
  return extras_->deadlines->sending.sample(core.backend().system(), Operation::fd, core.now_ns());
}

void ConnectionCore::check_deadlines() noexcept {
  const std::int64_t now_ns = loop::core_of(*loop_).now_ns();
  if (std::min(next_deadline_ns(), next_sample_ns()) <= now_ns) note_acknowledged(now_ns);
  const std::int64_t next_ns = next_deadline_ns();
  if (next_ns <= now_ns) return end_at_limit(ETIMEDOUT);
  if (next_ns == base::end_of_time_ns) return drop_unneeded();
  deadlines()->timer->start_at(TimePoint(Duration(std::min(next_ns, next_sample_ns()))));
}

void ConnectionCore::note_acknowledged(std::int64_t now_ns) noexcept {
  backend::System& system = loop::core_of(*loop_).backend().system();
  deadlines()->sending.update(system, Operation::fd, now_ns, write_shut_down_);
}

/// Frees what an idle connection does not need. The deadlines of a connection whose reading is
/// paused are kept if it has a limit on reading, which counts again after reading is resumed.
void ConnectionCore::drop_unneeded() noexcept {
  if (const Deadlines* const times = deadlines();
      times != nullptr && next_deadline_ns() == base::end_of_time_ns) {
    const bool has_read_limit =
        callbacks_->limits.read_timeout > Duration::zero() || times->message.is_started();
    if (reads() || peer_half_closed_ || !has_read_limit) extras_->deadlines.reset();
  }
  if (extras_ != nullptr && extras_->is_default()) extras_.reset();
}

/// Called after on_message, with what the callback left in the buffer.
void ConnectionCore::note_message(std::size_t received, bool consumed) noexcept {
  const ConnectionLimits& limits = callbacks_->limits;
  Deadlines* const times = deadlines();
  if (input_.empty()) {
    if (times != nullptr) times->message.stop();
    return;
  }
  if (times != nullptr && !consumed && times->message.is_started())
    return times->message.earn(received, limits.message_rate_min, loop::core_of(*loop_).clock_ns());
  start_deadline([](Deadlines& later, std::int64_t now_ns) { later.message.start(now_ns); });
}

void ConnectionCore::set_idle_timeout(Duration time) {
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
  times.received_ns = loop::core_of(*loop_).clock_ns();
  arm_deadlines();
}

void ConnectionCore::set_deadline(Duration time) {
  check_thread("set_deadline");
  if (ended_) return;
  if (time <= Duration::zero()) {
    if (Deadlines* const times = deadlines()) times->fixed_ns = base::end_of_time_ns;
    return drop_unneeded();
  }
  Deadlines& times = make_deadlines();
  times.fixed_ns = base::saturating_add(loop::core_of(*loop_).clock_ns(), time.count());
  arm_deadlines();
}

}  // namespace tambour::detail::net
