// What glibc has and musl 1.2.5 has not: wrappers of system calls, structures of the kernel with 64
// bits, and names of signals and errors.
#pragma once

#include <features.h>

#ifdef __GLIBC__
#include <dirent.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <cstring>

namespace tambour::detail::base {

using ::dirent64;
using ::epoll_pwait2;
using ::getdents64;
using ::renameat2;
using ::rlimit64;
using ::sigabbrev_np;
using ::strerrorname_np;

}  // namespace tambour::detail::base
#else
#include <dirent.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <span>

namespace tambour::detail::base {

using dirent64 = ::dirent;
using rlimit64 = ::rlimit;

inline int epoll_pwait2(int epoll, epoll_event* events, int capacity, const timespec* timeout,
                        const sigset_t* mask) noexcept {
  constexpr std::size_t kernel_mask_size = 8;  // Not sizeof(sigset_t).
  return int(::syscall(SYS_epoll_pwait2, epoll, events, capacity, timeout, mask, kernel_mask_size));
}

inline ssize_t getdents64(int fd, void* into, std::size_t size) noexcept {
  return ::syscall(SYS_getdents64, fd, into, size);
}

inline int renameat2(int from_directory, const char* from, int to_directory, const char* to,
                     unsigned flags) noexcept {
  return int(::syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
}

struct NumberName {
  int number;
  const char* name;
};

inline const char* name_of(std::span<const NumberName> names, int number) noexcept {
  const auto found = std::ranges::find(names, number, &NumberName::number);
  return found != names.end() ? found->name : nullptr;
}

inline const char* sigabbrev_np(int number) noexcept {
  static constexpr NumberName names[] = {
      {SIGHUP, "HUP"},   {SIGINT, "INT"},       {SIGQUIT, "QUIT"}, {SIGILL, "ILL"},
      {SIGTRAP, "TRAP"}, {SIGABRT, "ABRT"},     {SIGBUS, "BUS"},   {SIGFPE, "FPE"},
      {SIGKILL, "KILL"}, {SIGUSR1, "USR1"},     {SIGSEGV, "SEGV"}, {SIGUSR2, "USR2"},
      {SIGPIPE, "PIPE"}, {SIGALRM, "ALRM"},     {SIGTERM, "TERM"}, {SIGCHLD, "CHLD"},
      {SIGCONT, "CONT"}, {SIGSTOP, "STOP"},     {SIGTSTP, "TSTP"}, {SIGTTIN, "TTIN"},
      {SIGTTOU, "TTOU"}, {SIGURG, "URG"},       {SIGXCPU, "XCPU"}, {SIGXFSZ, "XFSZ"},
      {SIGPROF, "PROF"}, {SIGVTALRM, "VTALRM"}, {SIGSYS, "SYS"},   {SIGWINCH, "WINCH"},
      {SIGPWR, "PWR"},   {SIGIO, "POLL"}};
  return name_of(names, number);
}

/// The errors that simulated calls fail with most often; null for others.
inline const char* strerrorname_np(int number) noexcept {
  static constexpr NumberName names[] = {{EACCES, "EACCES"},
                                         {EADDRINUSE, "EADDRINUSE"},
                                         {EADDRNOTAVAIL, "EADDRNOTAVAIL"},
                                         {EAGAIN, "EAGAIN"},
                                         {EBADF, "EBADF"},
                                         {ECANCELED, "ECANCELED"},
                                         {ECONNABORTED, "ECONNABORTED"},
                                         {ECONNREFUSED, "ECONNREFUSED"},
                                         {ECONNRESET, "ECONNRESET"},
                                         {EEXIST, "EEXIST"},
                                         {EHOSTUNREACH, "EHOSTUNREACH"},
                                         {EINPROGRESS, "EINPROGRESS"},
                                         {EINTR, "EINTR"},
                                         {EINVAL, "EINVAL"},
                                         {EIO, "EIO"},
                                         {EMFILE, "EMFILE"},
                                         {EMSGSIZE, "EMSGSIZE"},
                                         {ENETUNREACH, "ENETUNREACH"},
                                         {ENFILE, "ENFILE"},
                                         {ENOBUFS, "ENOBUFS"},
                                         {ENOENT, "ENOENT"},
                                         {ENOMEM, "ENOMEM"},
                                         {ENOSPC, "ENOSPC"},
                                         {ENOSYS, "ENOSYS"},
                                         {ENOTCONN, "ENOTCONN"},
                                         {EOPNOTSUPP, "EOPNOTSUPP"},
                                         {EPERM, "EPERM"},
                                         {EPIPE, "EPIPE"},
                                         {ETIMEDOUT, "ETIMEDOUT"}};
  return name_of(names, number);
}

}  // namespace tambour::detail::base
#endif
