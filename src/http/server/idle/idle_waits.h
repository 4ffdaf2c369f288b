// The time limits of the connections of HTTP/1 that wait for a request.
//
// A timer for each of these connections would be a third of their memory. Waits of one kind begin
// in the order in which they end, because they have the same limit, so each kind has one timer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/namespaces.h>
#include <tambour/loop/timer.h>
#include <tambour/net/stream.h>

namespace tambour::http {

class IdleWaits;

/// `released`: the connection has waited for some time with all that it needs to serve a request,
/// and has released it then.
enum class IdleKind : std::uint8_t { first_request, next_request, released };

/// A read that fails with ETIMEDOUT at a deadline, from construction to finish().
class IdleWait : private detail::ListHook<IdleWait> {
 public:
  /// `deadline` may be `never`. The stream must outlive the wait.
  IdleWait(IdleWaits& waits, IdleKind kind, Stream& stream, TimePoint deadline);
  IdleWait(const IdleWait&) = delete;
  IdleWait& operator=(const IdleWait&) = delete;
  ~IdleWait();

  /// Returns what the read has returned: ETIMEDOUT if the deadline was reached.
  [[nodiscard]] Result<std::size_t> finish(Result<std::size_t> received) noexcept;

 private:
  friend class IdleWaits;
  friend class detail::ListHook<IdleWait>;
  friend class detail::IntrusiveList<IdleWait>;

  IdleWaits& waits_;
  Stream& stream_;
  TimePoint deadline_;
  IdleKind kind_;
  bool has_expired_ = false;
};

/// Thread: that of the loop. Without waits, it holds nothing of the loop.
class IdleWaits {
 public:
  IdleWaits() = default;
  IdleWaits(const IdleWaits&) = delete;
  IdleWaits& operator=(const IdleWaits&) = delete;
  ~IdleWaits() = default;

  /// All waits end `limit` from now, at the latest.
  void shorten(Duration limit) noexcept;

 private:
  friend class IdleWait;
  struct Queue {
    detail::IntrusiveList<IdleWait> waits;
    std::optional<Timer> timer;  ///< Empty if no wait is there.
  };

  static void check(Queue& queue) noexcept;
  static void arm(Queue& queue) noexcept;
  [[nodiscard]] Queue& queue(IdleKind kind) noexcept {
    return queues_[static_cast<std::size_t>(kind)];
  }

  std::array<Queue, 3> queues_;
};

}  // namespace tambour::http
