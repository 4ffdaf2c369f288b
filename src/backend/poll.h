// poll(2): passes every descriptor to the kernel at every wait. Simple, but slow with more than a
// few hundred descriptors.
#pragma once

#include <poll.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "backend/readiness.h"

namespace tambour::detail::backend {

class Poll {
 public:
  static constexpr BackendTraits traits{.kind = BackendKind::poll,
                                        .name = "poll",
                                        .supports_edge_triggered = false,
                                        .reports_peer_closed = true,
                                        .features = {},
                                        .fallback_reason = {}};
  static constexpr bool kernel_keeps_registrations = false;
  static constexpr int fd_end = std::numeric_limits<int>::max();

  int open() noexcept { return 0; }
  int reopen() noexcept;
  int set(const Change& change) noexcept;

  template <class Sink>
  void wait(std::int64_t timeout_ns, Sink&& sink) noexcept {
    int left = wait_for_events(timeout_ns);
    for (std::size_t i = 0; left > 0 && i < polled_.size(); ++i) {
      const pollfd& polled = polled_[i];
      if (polled.revents == 0) continue;
      --left;
      if ((polled.revents & POLLNVAL) != 0) {
        // Removed after the loop, because remove() reorders `polled_`.
        sink.fail(polled.fd, EBADF);
        gone_.push_back(polled.fd);
      } else {
        sink(polled.fd, Events(static_cast<std::uint16_t>(polled.revents)), 0);
      }
    }
    remove_closed();
  }

 private:
  int wait_for_events(std::int64_t timeout_ns) noexcept;
  void remove(int fd) noexcept;
  void remove_closed() noexcept;

  std::vector<pollfd> polled_;
  std::vector<std::int32_t> index_of_;  ///< Indexed by descriptor; -1: not polled.
  std::vector<int> gone_;
};

}  // namespace tambour::detail::backend
