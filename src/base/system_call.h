// The wrapper of every system call of the library that can fail.
//
// In the installed library a wrapper compiles to the call itself. In a build with TAMBOUR_FAULTS a
// fault plan can replace the kernel's result (tests/faults/faults.h).
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

struct io_uring;
struct io_uring_cqe;

namespace tambour::detail::base {

/// Identifies a system call, as finely as its errors differ.
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
  file_allocate,
  file_change,  ///< Mode or times.
  file_copy,
  file_link,
  file_list,
  file_make_directory,
  file_open,
  file_read,
  file_read_cached,
  file_read_link,
  file_remove,
  file_rename,
  file_seek,
  file_size,
  file_status,
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
  ring_completion,  ///< Not a call: the reading of a completion.
  ring_enter,
  ring_open,
  ring_register,
  seccomp,  ///< The calls that detect a filter.
  send,
  sendfile,
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
  wait_timer_create,  ///< timerfd_create(2) for waits, which have timeouts instead.
  wait_timer_set,
  waitid,
  write,
};
inline constexpr std::size_t call_count = std::size_t{static_cast<std::uint8_t>(Call::write)} + 1;

#ifdef TAMBOUR_FAULTS
/// Returns the planned result instead of this call: a negated errno value or, for a ring, the
/// number of entries submitted by the plan. Without a value, the call is made.
std::optional<int> planned_outcome(Call call, io_uring* ring = nullptr) noexcept;
/// Rewrites a completion if the plan contains a failure for it.
void rewrite_completion(io_uring_cqe& completion) noexcept;
#else
constexpr std::optional<int> planned_outcome(Call /*call*/, io_uring* /*ring*/ = nullptr) noexcept {
  return std::nullopt;
}
inline void rewrite_completion(io_uring_cqe& /*completion*/) noexcept {}
#endif

/// Makes a call that returns -1 and sets errno on error.
template <class Function, class... Args>
auto system_call(Call call, Function function, Args... args) noexcept {
  using Outcome = decltype(function(args...));
  if (const auto planned = planned_outcome(call)) {
    errno = -*planned;
    return Outcome{-1};
  }
  return function(args...);
}

/// Like system_call(), and repeats the call while it fails with EINTR.
template <class Function, class... Args>
auto uninterrupted(Call call, Function function, Args... args) noexcept {
  for (;;) {
    const auto outcome = system_call(call, function, args...);
    if (outcome >= 0 || errno != EINTR) return outcome;
  }
}

/// Makes a liburing call, which returns a negated errno value on error.
template <class Function, class... Args>
int ring_call(Call call, Function function, io_uring* ring, Args... args) noexcept {
  if (const auto planned = planned_outcome(call, ring)) return *planned;
  return function(ring, args...);
}

}  // namespace tambour::detail::base
