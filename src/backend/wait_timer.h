// A timerfd(2) that ends long waits in place of their timeouts.
//
// A wait with a timeout starts and cancels a timer of the kernel, although nearly every wait of a
// busy loop ends with an event. The timerfd stays armed over many waits: it expires no later than
// the first of them must end. If a deadline is postponed, the timerfd expires early, ends one wait,
// and is armed again; so it costs at most two system calls and one wakeup for each `wait_min_ns`,
// unless deadlines become earlier. See docs/decisions/0097-waits-with-a-timerfd.md.
#pragma once

#include <cstdint>

#include <tambour/base/unique_fd.h>

#include "base/clock.h"

namespace tambour::detail::backend {

/// Owns the timerfd, which its owner registers with the kernel, edge-triggered. If the timerfd
/// cannot be opened, registered or armed, it stays closed, and all waits have timeouts.
class WaitTimer {
 public:
  /// Shorter waits have timeouts, which are subject to the timer slack of the thread. Longer than a
  /// usual request, and short enough for a program with a timer that repeats in each second.
  static constexpr std::int64_t wait_min_ns = base::ns_per_s / 10;

  /// Returns false if no timerfd is available: for lack of descriptors or memory, or because a
  /// seccomp filter forbids it.
  bool open() noexcept;
  void close() noexcept;
  /// Gives up the descriptor without closing it.
  void disown() noexcept;

  [[nodiscard]] bool is_open() const noexcept { return timerfd_.is_open(); }
  /// True if open() was called, also if it failed.
  [[nodiscard]] bool was_opened() const noexcept { return was_opened_; }
  [[nodiscard]] int fd() const noexcept { return timerfd_.get(); }

  /// `generation`: of the registration, see FdRecords::take_generation().
  void note_added(std::uint32_t generation) noexcept { generation_ = generation; }
  /// Returns whether an event is that of the timerfd.
  [[nodiscard]] bool is_event_of_timer(int fd, std::uint32_t generation) const noexcept {
    return fd == timerfd_.get() && generation == generation_;
  }
  void note_expired() noexcept { expires_ns_ = base::end_of_time_ns; }

  /// Returns true if a wait without a timeout ends by `until_ns`, or need not end.
  [[nodiscard]] bool is_set_by(std::int64_t until_ns) const noexcept {
    return expires_ns_ <= until_ns;
  }
  /// Returns true if set() should be called for a wait with this timeout.
  [[nodiscard]] bool should_set(std::int64_t timeout_ns) const noexcept {
    return timeout_ns >= wait_min_ns && timerfd_.is_open();
  }
  /// Arms the timerfd for `until_ns`. Returns false if that has failed.
  bool set(std::int64_t until_ns) noexcept;

 private:
  UniqueFd timerfd_;
  bool was_opened_ = false;
  std::uint32_t generation_ = 0;
  std::int64_t expires_ns_ = base::end_of_time_ns;  ///< end_of_time_ns: not armed.
};

}  // namespace tambour::detail::backend
