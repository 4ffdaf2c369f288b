// The time limits of the peers of WebSockets: pings, pongs, and the closing handshake.
//
// A Timer of its own would be a tenth of the memory of an idle WebSocket. The connections of a loop
// share one, for the earliest of their deadlines, which are in a timing wheel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <optional>

#include <tambour/base/clock.h>
#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/namespaces.h>
#include <tambour/detail/wheel_node.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/timer.h>

#include "base/clock.h"
#include "base/timing_wheel.h"
#include "loop/core.h"
#include "loop/service.h"

namespace tambour::http::detail::websocket {

/// The deadline of one connection, which derives from it, stops it before it is destroyed, and has
/// opened PeerTimers before it starts it.
class PeerTimer : private tambour::detail::WheelNode {
 public:
  PeerTimer(const PeerTimer&) = delete;
  PeerTimer& operator=(const PeerTimer&) = delete;

 protected:
  PeerTimer() = default;
  ~PeerTimer() = default;

 private:
  friend class PeerTimers;

  bool is_due_ = false;  ///< It is not in the wheel, but in the list of those that have expired.
};

/// Ownership: a service of the loop. Thread: that of the loop.
class PeerTimers final : public tambour::detail::loop::Service {
 public:
  explicit PeerTimers(tambour::detail::loop::Core& core) noexcept : core_(core) {
    wheel_.expire(core.now_ns(), [](Node&) {});  // Sets the wheel's time.
  }

  /// Throws std::bad_alloc.
  static void open(EventLoop& loop) {
    const auto service = tambour::detail::loop::core_of(loop).open_service<PeerTimers>();
    if (!service) throw std::bad_alloc();
    PeerTimers& self = **service;
    if (!self.timer_) self.timer_.emplace(loop, [&self] { self.run(); });
  }

  [[nodiscard]] static bool is_started(const PeerTimer& timer) noexcept { return timer.in_wheel(); }

  /// Restarts a started timer.
  static void start_at(EventLoop& loop, PeerTimer& timer, TimePoint deadline) noexcept {
    PeerTimers& self = of(loop);
    if (timer.is_due_) self.leave(timer);
    self.wheel_.arm(timer, std::max<std::int64_t>(deadline.time_since_epoch().count(), 0));
    if (deadline < self.timer_->deadline()) self.timer_->start_at(deadline);
  }

  static void stop(EventLoop& loop, PeerTimer& timer) noexcept {
    if (!is_started(timer)) return;
    PeerTimers& self = of(loop);
    self.leave(timer);
    // It would keep run() from returning.
    if (self.wheel_.size() == 0) self.timer_->stop();
  }

  void close() noexcept override {
    while (Node* const node = due_.front()) leave(static_cast<PeerTimer&>(*node));
    wheel_.drain([](Node&) {});
    timer_.reset();
  }

 private:
  using Node = tambour::detail::WheelNode;

  [[nodiscard]] static PeerTimers& of(EventLoop& loop) noexcept {
    return tambour::detail::loop::core_of(loop).service<PeerTimers>();
  }

  void leave(PeerTimer& timer) noexcept {
    if (!timer.is_due_) return wheel_.cancel(timer);
    timer.is_due_ = false;
    // NOLINTNEXTLINE(google-readability-casting): as in IntrusiveList, to a private base class.
    ((tambour::detail::ListHook<Node>&)timer).unlink();
  }

  /// In connection.cpp. What a connection does then may stop and start the timers of others.
  void run() noexcept;

  tambour::detail::loop::Core& core_;
  tambour::detail::base::TimingWheel wheel_;
  tambour::detail::IntrusiveList<Node> due_;
  std::optional<Timer> timer_;
};

}  // namespace tambour::http::detail::websocket
