// select(2), for completeness and for comparison. Only descriptors below FD_SETSIZE (1024).
#pragma once

#include <sys/select.h>

#include <cstdint>

#include "backend/readiness.h"

namespace tambour::detail::backend {

/// select(2) cannot report that the peer closed the connection; it reports the descriptor as
/// readable. Events::closed is therefore reported together with Events::read, at the cost of a
/// poll(2), and fails with EOPNOTSUPP without Events::read. A pending error is reported as
/// readiness, as select(2) does.
class Select {
 public:
  static constexpr BackendTraits traits{.kind = BackendKind::select,
                                        .name = "select",
                                        .supports_edge_triggered = false,
                                        .reports_peer_closed = false,
                                        .features = {},
                                        .fallback_reason = {}};
  static constexpr bool kernel_keeps_registrations = false;
  static constexpr int fd_end = FD_SETSIZE;

  int open() noexcept;
  int reopen() noexcept { return open(); }
  int set(const Change& change) noexcept;

  template <class Sink>
  void wait(std::int64_t timeout_ns, Sink&& sink) noexcept {
    const int count = wait_for_events(timeout_ns);
    if (count < 0) {
      for (int fd = 0; fd < end_; ++fd) {
        if (is_watched(fd) && !is_open(fd)) {
          clear(fd);
          sink.fail(fd, EBADF);
        }
      }
      return;
    }
    int left = count;
    for (int fd = 0; left > 0 && fd < end_; ++fd) {
      const Events events = take_result(fd, left);
      if (events != Events::none) sink(fd, events, 0);
    }
  }

 private:
  /// Returns the number of bits set in the results, 0 if interrupted, or -1 if one of the
  /// descriptors is closed (EBADF).
  int wait_for_events(std::int64_t timeout_ns) noexcept;
  Events take_result(int fd, int& left) noexcept;
  [[nodiscard]] bool is_watched(int fd) const noexcept;
  static bool is_open(int fd) noexcept;
  void clear(int fd) noexcept;

  fd_set read_;
  fd_set write_;
  fd_set urgent_;
  fd_set closed_;  ///< Those in read_ that also ask for Events::closed.
  fd_set ready_read_;
  fd_set ready_write_;
  fd_set ready_urgent_;
  int end_ = 0;  ///< One more than the highest watched descriptor.
};

}  // namespace tambour::detail::backend
