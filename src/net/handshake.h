// The engine of handshakes: its steps, time limit and outcome.
#pragma once

#include <cerrno>
#include <cstdint>
#include <utility>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/readiness.h>
#include <tambour/loop/timer.h>

#include "io/transport.h"
#include "net/outcome.h"

namespace tambour::detail::net {

/// The handshake of a filter. Streams, connections and byte streams wait for the next step each in
/// their way: a task for the readiness of a socket, the loop for the same, and a task for the bytes
/// of the stream below. Everything else is the same, and is here.
///
/// Ownership: refers to what waits, which owns it. Allocates nothing.
/// Thread: that of the loop.
class Handshake {
 public:
  /// If `limit` passes before the handshake ends, it fails with ETIMEDOUT, and `on_expiry` is
  /// invoked, which must end the wait for the next step and may destroy this object. Zero: no
  /// limit. The size of `on_expiry` must be that of a pointer.
  ///
  /// A timer rather than timeout(), because each connection of a server has one, and because the
  /// task of the handshake then continues in the iteration in which the handshake ends: the stream
  /// is read again before the kernel reports an event for which no operation waits.
  template <class OnExpiry>
  Handshake(EventLoop& loop, Duration limit, OnExpiry on_expiry)
      : alarm_(loop, [this, on_expiry] {
          expire();
          on_expiry();
        }) {
    static_assert(sizeof(OnExpiry) <= sizeof(void*));
    if (limit > Duration::zero()) alarm_.start(limit);
  }
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  /// Makes the next step. Returns the event that the step after it waits for: Events::read or
  /// Events::write, or Events::none if the handshake has ended.
  Events advance(const io::Transport& transport) noexcept {
    if (!has_ended()) note(transport.handshake());
    return awaited_;
  }
  /// Waiting for the next step has failed with `outcome`. No effect if the handshake has ended.
  void fail(std::int32_t outcome) noexcept {
    if (!has_ended()) note(outcome);
  }
  /// Ends the time limit. To be called if the handshake is given up, but not destroyed.
  void stop() noexcept { alarm_.stop(); }

  /// What the next step waits for. Before the first one, Events::read.
  [[nodiscard]] Events awaited() const noexcept { return awaited_; }
  [[nodiscard]] bool has_ended() const noexcept { return awaited_ == Events::none; }
  /// 0 if the handshake is complete or in progress; otherwise a negated number of an error.
  [[nodiscard]] std::int32_t outcome() const noexcept { return outcome_; }
  [[nodiscard]] Result<> result() const noexcept { return result_of(outcome_); }
  /// Also true if the limit has passed after the end.
  [[nodiscard]] bool has_expired() const noexcept { return has_expired_; }

 private:
  void note(std::int32_t answer) noexcept {
    awaited_ = answer == -EAGAIN        ? Events::read
               : answer == -EINPROGRESS ? Events::write
                                        : Events::none;
    if (has_ended()) outcome_ = answer;
  }
  void expire() noexcept {
    has_expired_ = true;
    fail(-ETIMEDOUT);
  }

  Timer alarm_;
  std::int32_t outcome_ = 0;
  Events awaited_ = Events::read;
  bool has_expired_ = false;
};

}  // namespace tambour::detail::net
