// select(2): for completeness and for comparison. Descriptors below FD_SETSIZE (1024) only.
#pragma once

#include <sys/select.h>

#include <cstdint>

#include "backend/readiness.h"

namespace tambour::backend {

/// The call has no word for a peer that closed: one is readable, so Events::closed is told along
/// with Events::read, at the price of a poll(2), and refused without it (EOPNOTSUPP). A pending
/// error arrives, as it does from the call, as readiness.
class Select {
 public:
  static constexpr BackendTraits traits{.kind = BackendKind::select,
                                        .name = "select",
                                        .edges = false,
                                        .closed = false,
                                        .features = {},
                                        .fell_back = {}};
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
  /// The number of bits that are set in the results, 0 when interrupted, -1 where one of the
  /// descriptors is none.
  int wait_for_events(std::int64_t timeout_ns) noexcept;
  Events take_result(int fd, int& left) noexcept;
  [[nodiscard]] bool is_watched(int fd) const noexcept;
  static bool is_open(int fd) noexcept;
  void clear(int fd) noexcept;

  fd_set read_;
  fd_set write_;
  fd_set urgent_;
  fd_set closed_;  ///< Of those in read_: who wants to be told of that too.
  fd_set ready_read_;
  fd_set ready_write_;
  fd_set ready_urgent_;
  int end_ = 0;  ///< One more than the highest descriptor watched.
};

}  // namespace tambour::backend
