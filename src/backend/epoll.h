// epoll(7), level-triggered by default.
#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>

#include <tambour/base/unique_fd.h>

#include "backend/readiness.h"

namespace tambour::detail::backend {

/// Pitfalls of epoll that this class works around:
/// - A registration belongs to the open file description, not to the descriptor. close(2) removes
///   it only with the last duplicate; until then events are reported, for a descriptor number that
///   may refer to another file.
/// - EPOLL_CTL_ADD of a registered file fails with EEXIST, which is the cheapest way to check for
///   it. If a registration was left behind with a former file, a duplicate can bring that file
///   back: the existing registration may then have any former generation and other events.
/// - Regular files are rejected with EPERM.
class Epoll {
 public:
  static constexpr BackendTraits traits{.kind = BackendKind::epoll,
                                        .name = "epoll",
                                        .supports_edge_triggered = true,
                                        .reports_peer_closed = true,
                                        .features = {},
                                        .fallback_reason = {}};
  static constexpr bool kernel_keeps_registrations = true;
  static constexpr int fd_end = std::numeric_limits<int>::max();

  int open() noexcept;
  int reopen() noexcept { return open(); }
  void disown() noexcept { static_cast<void>(epoll_.release()); }
  int set(const Change& change) noexcept;
  int add_wait_timer(int fd, std::uint32_t generation) noexcept;
  [[nodiscard]] int fd() const noexcept { return epoll_.get(); }

  template <class Sink>
  void wait(std::int64_t timeout_ns, Sink&& sink) noexcept {
    const int count = wait_for_events(timeout_ns);
    if (sink.outgrows_caches()) {
      for (int i = 0; i < count; ++i) {
        // The record must be in a cache before the address of the operation can be read from it.
        if (i + far < count) sink.prefetch_record(fd_of(i + far));
        if (i + near < count) sink.prefetch_operation(fd_of(i + near));
        report(events_[static_cast<std::size_t>(i)], sink);
      }
    } else {
      const epoll_event* const end = events_.get() + std::max(count, 0);
      for (const epoll_event* event = events_.get(); event != end; ++event) report(*event, sink);
    }
    if (count == capacity_) [[unlikely]]
      grow();
  }

 private:
  /// The number of events to prefetch ahead.
  static constexpr int far = 8;
  static constexpr int near = 4;

  /// The user data of a registration. The members are copied separately, because compilers
  /// otherwise extract them from one register.
  static void set_data(epoll_event& event, int fd, std::uint32_t generation) noexcept {
    std::memcpy(data_of(event), &fd, sizeof(fd));
    std::memcpy(data_of(event) + sizeof(fd), &generation, sizeof(generation));
  }
  static int fd_of(const epoll_event& event) noexcept {
    int fd;
    std::memcpy(&fd, data_of(event), sizeof(fd));
    return fd;
  }
  static std::uint32_t generation_of(const epoll_event& event) noexcept {
    std::uint32_t generation;
    std::memcpy(&generation, data_of(event) + sizeof(int), sizeof(generation));
    return generation;
  }
  static const std::byte* data_of(const epoll_event& event) noexcept {
    return reinterpret_cast<const std::byte*>(&event) + offsetof(epoll_event, data);
  }
  static std::byte* data_of(epoll_event& event) noexcept {
    return reinterpret_cast<std::byte*>(&event) + offsetof(epoll_event, data);
  }

  [[nodiscard]] int fd_of(int index) const noexcept {
    return fd_of(events_[static_cast<std::size_t>(index)]);
  }

  template <class Sink>
  static void report(const epoll_event& event, Sink&& sink) noexcept {
    sink(fd_of(event), Events(event.events & 0xffff), generation_of(event));
  }

  int wait_for_events(std::int64_t timeout_ns) noexcept;
  int call_epoll_wait(int timeout_ms) noexcept;
  int wait_milliseconds(std::int64_t timeout_ns) noexcept;
  int wait_with_ppoll(std::int64_t timeout_ns) noexcept;
  void choose_precise() noexcept;
  void grow() noexcept;

  /// How a timeout of less than a second is made exact.
  enum class Precise : std::uint8_t {
    undecided,
    epoll_pwait2,  ///< Nanosecond timeouts, since Linux 5.11.
    ppoll,         ///< epoll_wait(2) for whole milliseconds, ppoll(2) for the rest.
    none,          ///< Whole milliseconds.
  };

  /// Most loops receive fewer events in one wait; a wait that fills the array doubles it. The
  /// kernel loads the socket of each event when it reports the event, and again when the program
  /// reads: with more events in between, the caches have lost the socket.
  static constexpr int initial_capacity = 64;
  static constexpr int capacity_max = 256;

  UniqueFd epoll_;
  Precise precise_ = Precise::undecided;
  int capacity_ = 0;
  std::unique_ptr<epoll_event[]> events_;  // NOLINT(modernize-avoid-c-arrays)
};

}  // namespace tambour::detail::backend
