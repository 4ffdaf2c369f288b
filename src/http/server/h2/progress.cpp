// H2Connection: time limits of clients that do not answer, and of responses that they hold up.
#include <algorithm>
#include <cerrno>
#include <new>

#include "base/clock.h"
#include "http/server/h2/connection.h"

namespace tambour::http {
namespace {

namespace h2 = detail::h2;

/// Of the PING that asks a silent client for an answer.
constexpr std::string_view alive_ping = "is alive";

}  // namespace

/// Ends a connection whose client does not answer, and resets streams that it holds up with small
/// windows.
void H2Connection::check_progress() noexcept {
  if (has_failed_ || !check_client()) return;
  if (sender_.is_stalled()) {
    static_cast<void>(fail(h2::ErrorCode::enhance_your_calm, "The window stays closed for too long",
                           H2Event::stalled_connection));
    return;
  }
  for_each_stream([this](H2Stream& stream) {
    if (!sender_.is_stalled(stream)) return;
    count(H2Event::stalled_stream);
    reset(stream, h2::ErrorCode::cancel, system_error(ETIMEDOUT));
  });
  if (!streams_.empty()) {
    if (spares_until_ <= loop_.now())
      record_memory_.release(stream_);
    else
      check_by(spares_until_);
    return check_by(next_check());
  }
  if (!release_spares()) check_by(spares_until_);
}

/// Returns false if the connection has to end.
bool H2Connection::check_client() noexcept {
  const TimePoint now = loop_.now();
  const Http2Options& http_2 = options().http_2;
  if (settings_deadline_ <= now) {
    // Clients such as h2load write nothing as long as there is something to read.
    const TimePoint since = sender_.is_writing() ? now : sender_.written_at();
    settings_deadline_ = detail::base::saturating_add(since, http_2.settings_timeout);
    if (settings_deadline_ <= now)
      return fail(h2::ErrorCode::settings_timeout, "The settings were not acknowledged",
                  H2Event::settings_timeout);
  }
  // While nothing is read, the limits of writing apply.
  if (http_2.ping_interval <= Duration::zero() || !is_receiving_ || streams_.empty()) return true;
  if (ping_deadline_ <= now) {
    count(H2Event::ping_timeout);
    fail_streams(system_error(ETIMEDOUT));
    stream_.close();
    return false;
  }
  if (ping_deadline_ != never) return true;
  if (detail::base::saturating_add(received_at_, http_2.ping_interval) > now) return true;
  ping_deadline_ = detail::base::saturating_add(now, http_2.ping_timeout);
  try {
    frame_budget_.ping(sender_.queue(), alive_ping);
  } catch (const std::bad_alloc&) {
    stream_.close();
  }
  sender_.wake();
  return true;
}

TimePoint H2Connection::next_check() const noexcept {
  const TimePoint now = loop_.now();
  TimePoint next = settings_deadline_;
  if (const Duration period = options().write_timeout / 4; period > Duration::zero())
    next = std::min(next, detail::base::saturating_add(now, period));
  const Duration ping_interval = options().http_2.ping_interval;
  if (ping_interval <= Duration::zero()) return next;
  // While nothing is read, check_client() waits for no answer, and received_at_ may be long ago.
  if (ping_deadline_ != never && is_receiving_)
    return std::min(next, std::max(ping_deadline_, now));
  const TimePoint silent_at = detail::base::saturating_add(received_at_, ping_interval);
  return std::min(next,
                  silent_at > now ? silent_at : detail::base::saturating_add(now, ping_interval));
}

void H2Connection::check_by(TimePoint deadline) noexcept {
  if (deadline == never || (progress_timer_.is_started() && progress_timer_.deadline() <= deadline))
    return;
  progress_timer_.start_at(deadline);
}

}  // namespace tambour::http
