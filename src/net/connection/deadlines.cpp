// The timeouts of a connection.
//
// The kernel does not report acknowledgements, so the connection asks for them: if a limit expires,
// and during lingering also every eighth of the limit. Lingering has to end soon after the last
// progress, because the program has no use for the connection any more.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <new>
#include <utility>

#include "net/connection/parts.h"

namespace tambour {
namespace {

/// The longest time of lingering while the server shuts down, after the peer has acknowledged
/// everything.
constexpr std::int64_t drain_linger_ns = base::ns_per_s;
constexpr std::int64_t samples_per_linger = 8;

}  // namespace

/// Throws std::bad_alloc; in that case nothing has changed.
Connection::Deadlines& Connection::make_deadlines() {
  if (deadlines() == nullptr) {
    auto made = std::make_unique<Deadlines>();
    const std::int64_t now_ns = loop::core_of(*loop_).clock_ns();
    if (!idle_off_) made->idle_ns = callbacks_->limits.idle_timeout.count();
    made->received_ns = made->accepted_ns = now_ns;
    extras().deadlines = std::move(made);
    // In the constructor `fd` is not set yet; start() takes the sample.
    if (fd >= 0) static_cast<void>(sample_acknowledged());
  }
  Deadlines& times = *extras_->deadlines;
  if (!times.timer) times.timer.emplace(*loop_, [this] { check_deadlines(); });
  return times;
}

/// Sets `since` to now and starts the limits that count from it. If memory runs out, the connection
/// is closed with ENOMEM, because it must not continue without its limits.
void Connection::start_deadlines(std::int64_t Deadlines::* since) noexcept {
  try {
    make_deadlines().*since = loop::core_of(*loop_).clock_ns();
    arm_deadlines();
  } catch (const std::bad_alloc&) {
    end(ENOMEM);
  }
}

/// Starts the limit of close_after_write() unless it has been started, and takes a sample: what the
/// peer acknowledges later is progress.
void Connection::start_lingering() noexcept {
  if (callbacks_->limits.linger <= Duration::zero()) return;
  Deadlines* const times = deadlines();
  if (times != nullptr && times->lingers_since_ns > 0) {
    note_acknowledged(loop::core_of(*loop_).now_ns());
    return arm_deadlines();
  }
  if (times != nullptr) static_cast<void>(sample_acknowledged());
  start_deadlines(&Deadlines::lingers_since_ns);
}

/// Returns whether the limit of close_after_write() counts.
bool Connection::lingers() const noexcept {
  return callbacks_->limits.linger > Duration::zero() && deadlines()->lingers_since_ns > 0 &&
         (unsent_bytes() > 0 || write_shut_down_);
}

std::int64_t Connection::linger_ns() const noexcept {
  const std::int64_t limit_ns = callbacks_->limits.linger.count();
  const bool all_acknowledged = write_shut_down_ && deadlines()->queued == 0;
  const bool is_short = owner_ != nullptr && owner_->drains() && all_acknowledged;
  return is_short ? std::min(limit_ns, drain_linger_ns) : limit_ns;
}

/// When the peer may have acknowledged bytes that the limit of lingering has to know about.
std::int64_t Connection::next_sample_ns() const noexcept {
  if (!lingers() || (write_shut_down_ && deadlines()->queued == 0)) return base::end_of_time_ns;
  const bool drains = owner_ != nullptr && owner_->drains();
  const std::int64_t limit_ns = callbacks_->limits.linger.count();
  return base::saturating_add(
      deadlines()->sampled_ns,
      (drains ? std::min(limit_ns, drain_linger_ns) : limit_ns) / samples_per_linger);
}

std::int64_t Connection::next_deadline_ns() const noexcept {
  const Deadlines& times = *extras_->deadlines;
  const ConnectionLimits& limits = callbacks_->limits;
  std::int64_t next_ns = times.fixed_ns;
  const auto consider = [&next_ns](std::int64_t since_ns, std::int64_t limit_ns) {
    if (limit_ns > 0) next_ns = std::min(next_ns, base::saturating_add(since_ns, limit_ns));
  };
  consider(std::max(times.received_ns, times.accepted_ns), times.idle_ns);
  if (reads()) {
    consider(times.received_ns, limits.read_timeout.count());
    if (times.message_started_ns > 0)
      consider(times.message_started_ns, limits.message_timeout.count());
  }
  if (unsent_bytes() > 0) {
    consider(times.accepted_ns, limits.write_timeout.count());
  }
  if (lingers()) consider(std::max(times.accepted_ns, times.lingers_since_ns), linger_ns());
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

/// Returns true if the peer has acknowledged more bytes than at the last sample. Bytes that were
/// sent and acknowledged between two samples do not count if the queue was empty at both: they were
/// progress when the kernel accepted them.
bool Connection::sample_acknowledged() noexcept {
  Deadlines& times = *extras_->deadlines;
  times.sampled_ns = loop::core_of(*loop_).now_ns();
  const auto queued =
      static_cast<std::int64_t>(loop::core_of(*loop_).backend().system().unacknowledged(fd));
  const bool in_flight = std::max(queued, std::exchange(times.queued, queued)) > 0;
  const std::int64_t acknowledged = times.taken - queued;
  return acknowledged > std::exchange(times.acknowledged, acknowledged) && in_flight;
}

/// The kernel accepts more only after a large part of its send buffer, which may hold megabytes,
/// has become free. Progress of a slow peer shows only in what the peer has acknowledged.
void Connection::check_deadlines() noexcept {
  const std::int64_t now_ns = loop::core_of(*loop_).now_ns();
  if (std::min(next_deadline_ns(), next_sample_ns()) <= now_ns) note_acknowledged(now_ns);
  const std::int64_t next_ns = next_deadline_ns();
  if (next_ns <= now_ns) return end_at_limit(ETIMEDOUT);
  if (next_ns == base::end_of_time_ns) return drop_unneeded();
  deadlines()->timer->start_at(TimePoint(Duration(std::min(next_ns, next_sample_ns()))));
}

void Connection::note_acknowledged(std::int64_t now_ns) noexcept {
  Deadlines& times = *deadlines();
  const std::int64_t before_ns = times.sampled_ns;
  if (!sample_acknowledged()) return;
  // The last acknowledgement cannot be followed by progress. Its time is not known, only that it
  // came after the sample before; the earlier time keeps the limit of lingering.
  const bool is_last = write_shut_down_ && times.queued == 0;
  times.accepted_ns = is_last ? std::max(times.accepted_ns, before_ns) : now_ns;
}

/// Frees what an idle connection does not need. The deadlines of a connection whose reading is
/// paused are kept if it has a limit on reading, which counts again after reading is resumed.
void Connection::drop_unneeded() noexcept {
  if (const Deadlines* const times = deadlines();
      times != nullptr && next_deadline_ns() == base::end_of_time_ns) {
    const bool has_read_limit =
        callbacks_->limits.read_timeout > Duration::zero() || times->message_started_ns > 0;
    if (reads() || peer_half_closed_ || !has_read_limit) extras_->deadlines.reset();
  }
  if (extras_ != nullptr && extras_->is_default()) extras_.reset();
}

/// Called after on_message, with what the callback left in the buffer.
void Connection::note_message(std::size_t received, bool consumed) noexcept {
  const ConnectionLimits& limits = callbacks_->limits;
  Deadlines* const times = deadlines();
  if (input_.empty()) {
    if (times != nullptr) times->message_started_ns = 0;
    return;
  }
  if (times != nullptr && !consumed && times->message_started_ns > 0) {
    if (limits.message_rate_min == 0) return;
    const std::uint64_t earned_ns =
        static_cast<std::uint64_t>(base::ns_per_s) * received / limits.message_rate_min;
    // At most the whole `message_timeout` is left, or a fast peer could save up hours.
    times->message_started_ns = std::min(
        base::saturating_add(times->message_started_ns, static_cast<std::int64_t>(earned_ns)),
        loop::core_of(*loop_).clock_ns());
    return;
  }
  start_deadlines(&Deadlines::message_started_ns);
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
  times.received_ns = loop::core_of(*loop_).clock_ns();
  arm_deadlines();
}

void Connection::set_deadline(Duration time) {
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

}  // namespace tambour
