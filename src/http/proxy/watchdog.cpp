// Watchdog: limits that are compared when a timer expires.
#include "http/proxy/watchdog.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/clock.h"

namespace tambour::http::detail::proxy {
namespace {

/// The connection of the client is watched only for a connection or a response that takes longer,
/// because that costs a system call.
constexpr Duration watch_delay = std::chrono::milliseconds(100);

}  // namespace

Watchdog::Watchdog(EventLoop& loop, const ReverseProxyOptions& options)
    : loop_(loop), options_(options), timer_(loop, [this] { check(); }) {}

void Watchdog::begin_request(const Request& request) noexcept {
  request_ = &request;
  is_client_gone_ = false;
  deadline_ = never;
  if (options_.total_timeout > Duration::zero())
    deadline_ = base::saturating_add(loop_.now(), options_.total_timeout);
}

void Watchdog::end_request() noexcept {
  end();
  gone_.reset();
  request_ = nullptr;
}

Duration Watchdog::limit_within_request(Duration limit) const noexcept {
  if (deadline_ == never) return limit;
  const Duration left = std::max(deadline_ - loop_.now(), Duration(1));
  return limit > Duration::zero() ? std::min(limit, left) : left;
}

void Watchdog::begin(client::Exchange& exchange) noexcept {
  exchange_ = &exchange;
  is_head_awaited_ = true;
  limit_ = options_.head_timeout;
  since_ = loop_.now();
  if (!gone_) {
    timer_.reset(watch_delay);
  } else if (is_client_gone_) {
    exchange.abort(system_error(ECANCELED));
  } else {
    restart();
  }
}

void Watchdog::end() noexcept {
  exchange_ = nullptr;
  timer_.stop();
}

void Watchdog::end_upload_wait() noexcept {
  if (!is_head_awaited_) return;
  since_ = loop_.now();
  limit_ = options_.head_timeout;
  restart_if_late();
}

void Watchdog::begin_body_wait() noexcept {
  is_head_awaited_ = false;
  since_ = loop_.now();
  limit_ = options_.body_idle_timeout;
  restart_if_late();
}

/// Only if the timer, which may be that of an earlier wait, would expire too late.
void Watchdog::restart_if_late() noexcept {
  const TimePoint end = limit_ > Duration::zero() ? base::saturating_add(since_, limit_) : never;
  if (!timer_.is_started() || end < timer_.deadline()) restart();
}

void Watchdog::restart() noexcept {
  TimePoint next = deadline_;
  if (limit_ > Duration::zero()) next = std::min(next, base::saturating_add(since_, limit_));
  if (next != never) timer_.start_at(next);
}

void Watchdog::watch_client() noexcept {
  try {
    if (!gone_) gone_.emplace(request_->disconnect_token(), Gone{*this});
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): tried again later.
  }
}

Watchdog::Connecting::Connecting(Watchdog& watchdog, TaskScope& scope) noexcept
    : watchdog_(watchdog) {
  watchdog.connecting_ = &scope;
  if (!watchdog.gone_) watchdog.timer_.reset(watch_delay);
  if (watchdog.is_client_gone_) scope.request_stop();
}

Watchdog::Connecting::~Connecting() {
  watchdog_.connecting_ = nullptr;
  watchdog_.timer_.stop();
}

void Watchdog::check() {
  watch_client();
  if (exchange_ == nullptr) return;
  const TimePoint now = loop_.now();
  const bool is_silent = limit_ > Duration::zero() && now - since_ >= limit_;
  if (is_silent || now >= deadline_) return exchange_->abort(system_error(ETIMEDOUT));
  restart();
}

void Watchdog::Gone::operator()() const noexcept {
  self.is_client_gone_ = true;
  if (self.exchange_ != nullptr) self.exchange_->abort(system_error(ECANCELED));
  if (self.connecting_ != nullptr) self.connecting_->request_stop();
}

}  // namespace tambour::http::detail::proxy
