// Writing without SIGPIPE, by system calls that have no MSG_NOSIGNAL: write(2), writev(2),
// sendfile(2), splice(2).
//
// The kernel raises the signal whenever it meets a closed peer, also if the call has transferred a
// part before and therefore returns its size instead of EPIPE. To block it takes two system calls,
// which a program that ignores the signal does not need.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "base/process_number.h"

namespace tambour::detail::base {

/// Blocks SIGPIPE in this thread while it exists. A signal that was pending before is kept.
class BrokenPipeBlock {
 public:
  BrokenPipeBlock() noexcept {
    sigemptyset(&broken_pipe_);
    sigaddset(&broken_pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &broken_pipe_, &mask_before_);
    // A signal that was not blocked is not pending: it would have been delivered.
    if (sigismember(&mask_before_, SIGPIPE) == 0) return;
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) != 0;
  }
  BrokenPipeBlock(const BrokenPipeBlock&) = delete;
  BrokenPipeBlock& operator=(const BrokenPipeBlock&) = delete;
  ~BrokenPipeBlock() { ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr); }

  /// Consumes the signal that a call may have raised: one that transferred less than all of its
  /// bytes. It was directed to this thread, and stays pending while it is blocked. Preserves errno.
  void consume_signal() const noexcept {
    if (was_pending_) return;
    const int error = errno;
    constexpr timespec at_once{};
    while (::sigtimedwait(&broken_pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    errno = error;
  }

 private:
  sigset_t broken_pipe_{};
  sigset_t mask_before_{};
  bool was_pending_ = false;
};

/// True if the program ignores SIGPIPE. What sigaction(2) has answered is used for a tick of the
/// kernel's clock, at most 10 ms: a program that ignores the signal, and makes it end the process
/// again, may get it once more within that time.
[[nodiscard]] inline bool is_broken_pipe_ignored() noexcept {
  static thread_local constinit std::int64_t found_at_ns = -1;
  static thread_local constinit bool is_ignored = false;
  static thread_local constinit unsigned found_by = 0;  // A child may change it after fork(2).
  // Read from memory that the kernel shares with the process, and advanced by its ticks.
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const std::int64_t now_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  if (now_ns != found_at_ns || process_number() != found_by) {
    struct sigaction current{};
    is_ignored = ::sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
    found_at_ns = now_ns;
    found_by = process_number();
  }
  return is_ignored;
}

/// Calls `function`, which writes up to `size` bytes, without raising SIGPIPE, and returns what it
/// returns.
template <class Function, class... Args>
ssize_t without_sigpipe(std::size_t size, Function function, Args... args) noexcept {
  if (is_broken_pipe_ignored()) return function(args...);
  const BrokenPipeBlock block;
  const ssize_t written = function(args...);
  const bool failed = written < 0 && errno == EPIPE;
  const bool is_partial = written >= 0 && static_cast<std::size_t>(written) < size;
  if (failed || is_partial) block.consume_signal();
  return written;
}

}  // namespace tambour::detail::base
