// The way to the kernel: each system call that the library makes, and that can fail, is made here.
//
// In the library that is installed this is the call itself, down to the instruction. The tests have
// a second copy, compiled with TAMBOUR_FAULTS, where a plan is asked first and may answer in the
// kernel's place (tests/faults/faults.h).
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

struct io_uring;
struct io_uring_cqe;

namespace tambour::base {

/// What is called, as finely as the errors differ.
enum class Call : std::uint8_t {
  accept,
  bind,
  chmod,
  clone,
  connect,
  dup,
  epoll_add,
  epoll_create,
  epoll_modify,
  epoll_pwait2,
  epoll_remove,
  epoll_wait,
  eventfd,
  eventfd_read,
  eventfd_write,
  fcntl,
  file_open,
  file_read,
  file_seek,
  file_size,
  file_sync,
  file_truncate,
  file_write,
  flock,
  fstatat,
  getsockname,
  getsockopt,
  inotify_add,
  inotify_create,
  inotify_read,
  listen,
  look_up,
  mmap,
  nanosleep,
  pidfd_open,
  pipe,
  poll,
  ppoll,
  pselect,
  read,
  recv,
  recvmmsg,
  recvmsg,
  ring_completion,  ///< Not a call: a completion that is read.
  ring_enter,
  ring_open,
  seccomp,  ///< What tells whether there is a filter.
  send,
  sendmmsg,
  sendmsg,
  setsockopt,
  shutdown,
  socket,
  socketpair,
  stat,
  statfs,
  thread_create,
  timerfd_create,
  timerfd_read,
  timerfd_set,
  waitid,
  write,
};
inline constexpr std::size_t call_count = std::size_t{static_cast<std::uint8_t>(Call::write)} + 1;

#ifdef TAMBOUR_FAULTS
/// The outcome that is planned in place of this call: an errno value, negated, or, for a ring, how
/// many entries it was made to take. Nothing: the kernel is asked.
std::optional<int> planned_outcome(Call call, io_uring* ring = nullptr) noexcept;
/// Rewrites a completion, where that is planned.
void rewrite_completion(io_uring_cqe& completion) noexcept;
#else
constexpr std::optional<int> planned_outcome(Call /*call*/, io_uring* /*ring*/ = nullptr) noexcept {
  return std::nullopt;
}
inline void rewrite_completion(io_uring_cqe& /*completion*/) noexcept {}
#endif

/// A call that says -1 and leaves the reason in errno.
template <class Function, class... Args>
auto system_call(Call call, Function function, Args... args) noexcept {
  using Outcome = decltype(function(args...));
  if (const auto planned = planned_outcome(call)) {
    errno = -*planned;
    return Outcome{-1};
  }
  return function(args...);
}

/// The same, until no signal interrupts it.
template <class Function, class... Args>
auto uninterrupted(Call call, Function function, Args... args) noexcept {
  for (;;) {
    const auto outcome = system_call(call, function, args...);
    if (outcome >= 0 || errno != EINTR) return outcome;
  }
}

/// A call of liburing's, which says the reason itself, negated.
template <class Function, class... Args>
int ring_call(Call call, Function function, io_uring* ring, Args... args) noexcept {
  if (const auto planned = planned_outcome(call, ring)) return *planned;
  return function(ring, args...);
}

}  // namespace tambour::base
