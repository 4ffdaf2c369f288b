// The time limits of a request that a proxy passes on, and the disappearance of its client.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/request.h>
#include <tambour/http/reverse_proxy.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/timer.h>
#include <tambour/task/scope.h>

#include "http/client/exchange.h"

namespace tambour::http::detail::proxy {

/// Aborts the exchange with a server when a limit has passed, or the client has gone. One timer is
/// started for a request, which most responses precede. It reads no clock and is not restarted when
/// bytes arrive: it compares when it expires.
class Watchdog {
 public:
  Watchdog(EventLoop& loop, const ReverseProxyOptions& options);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() = default;

  /// While a connection is awaited, which `scope` does: it is asked to stop when the client has
  /// gone.
  class Connecting {
   public:
    Connecting(Watchdog& watchdog, TaskScope& scope) noexcept;
    Connecting(const Connecting&) = delete;
    Connecting& operator=(const Connecting&) = delete;
    ~Connecting();

   private:
    Watchdog& watchdog_;
  };

  /// `request` must exist until end_request().
  void begin_request(const Request& request) noexcept;
  void end_request() noexcept;
  /// The head of the response is awaited. `exchange` must exist until end().
  void begin(client::Exchange& exchange) noexcept;
  void end() noexcept;
  /// The head of the response has arrived.
  void end_head_wait() noexcept {
    is_head_awaited_ = false;
    limit_ = Duration::zero();
  }
  /// The body of the request: while the client is waited for, the server is not late.
  void begin_upload_wait() noexcept {
    if (is_head_awaited_) limit_ = Duration::zero();
  }
  void end_upload_wait() noexcept;
  /// The server is asked for bytes of a body, or has sent them.
  void begin_body_wait() noexcept;
  void end_wait() noexcept { limit_ = Duration::zero(); }

  [[nodiscard]] bool is_client_gone() const noexcept { return is_client_gone_; }
  /// Whether the request should have ended: ReverseProxyOptions::total_timeout.
  [[nodiscard]] bool is_late() const noexcept { return loop_.now() >= deadline_; }
  /// `limit`, or what is left of the time for the whole request. Zero: no limit.
  [[nodiscard]] Duration limit_within_request(Duration limit) const noexcept;

 private:
  struct Gone {
    Watchdog& self;
    void operator()() const noexcept;
  };

  void check();
  void watch_client() noexcept;
  void restart_if_late() noexcept;
  void restart() noexcept;

  EventLoop& loop_;
  const ReverseProxyOptions& options_;
  const Request* request_ = nullptr;
  client::Exchange* exchange_ = nullptr;
  TaskScope* connecting_ = nullptr;
  TimePoint deadline_ = never;
  TimePoint since_{};
  Duration limit_{};  ///< From `since_`; zero: none.
  bool is_head_awaited_ = false;
  bool is_client_gone_ = false;
  Timer timer_;
  std::optional<std::stop_callback<Gone>> gone_;
};

}  // namespace tambour::http::detail::proxy
