#include "backend/system.h"

#include <fcntl.h>
#include <netdb.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>

#include "base/system_call.h"

namespace tambour::backend {
namespace {

using base::Call;

/// For pipes there is no MSG_NOSIGNAL. A SIGPIPE that a write raises is the thread's own, pends
/// while it is blocked, and is taken back; one that was pending before stays.
ssize_t write_quietly(int fd, const void* from, std::size_t size) noexcept {
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  sigset_t pending;
  sigpending(&pending);
  const ssize_t written = ::write(fd, from, size);
  const int error = errno;
  if (written < 0 && error == EPIPE && sigismember(&pending, SIGPIPE) == 0) {
    constexpr timespec at_once{};
    while (::sigtimedwait(&broken_pipe, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

struct Kernel {
  static constexpr auto socket = ::socket;
  static constexpr auto socketpair = ::socketpair;
  static constexpr auto pipe2 = ::pipe2;
  static constexpr auto close = ::close;
  static constexpr auto bind = ::bind;
  static constexpr auto listen = ::listen;
  static constexpr auto accept4 = ::accept4;
  static constexpr auto connect = ::connect;
  static constexpr auto shutdown = ::shutdown;
  static constexpr auto read = ::read;
  static constexpr auto write = write_quietly;
  static constexpr auto recv = ::recv;
  static constexpr auto send = ::send;
  static ssize_t recvmsg(int fd, msghdr* message, int flags) noexcept {
    return base::system_call(Call::recvmsg, ::recvmsg, fd, message, flags);
  }
  static ssize_t sendmsg(int fd, const msghdr* message, int flags) noexcept {
    return base::system_call(Call::sendmsg, ::sendmsg, fd, message, flags);
  }
  static int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept {
    return base::system_call(Call::recvmmsg, ::recvmmsg, fd, messages, count, flags, nullptr);
  }
  static int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept {
    return base::system_call(Call::sendmmsg, ::sendmmsg, fd, messages, count, flags);
  }
  static constexpr auto getsockopt = ::getsockopt;
  static constexpr auto setsockopt = ::setsockopt;
  static constexpr auto getsockname = ::getsockname;
  static constexpr auto getpeername = ::getpeername;
  static constexpr auto unlink = ::unlink;
  static int open(const char* path, int flags, mode_t permissions) noexcept {
    return base::system_call(Call::file_open, ::open, path, flags, permissions);
  }
  static ssize_t pread(int fd, void* into, std::size_t size, off_t offset) noexcept {
    return base::system_call(Call::file_read, ::pread, fd, into, size, offset);
  }
  static ssize_t pwrite(int fd, const void* from, std::size_t size, off_t offset) noexcept {
    return base::system_call(Call::file_write, ::pwrite, fd, from, size, offset);
  }
  static int fsync(int fd) noexcept { return base::system_call(Call::file_sync, ::fsync, fd); }
  static int fstat(int fd, struct stat* into) noexcept {
    return base::system_call(Call::file_size, ::fstat, fd, into);
  }
  static int ftruncate(int fd, off_t size) noexcept {
    return base::system_call(Call::file_truncate, ::ftruncate, fd, size);
  }
  static int look_up(const char* host, int family, std::vector<sockaddr_storage>& found) {
    if (const auto planned = base::planned_outcome(Call::look_up)) {
      errno = -*planned;
      return EAI_SYSTEM;
    }
    addrinfo hints{};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;  // Else each address comes once for each type.
    addrinfo* first = nullptr;
    if (const int value = ::getaddrinfo(host, nullptr, &hints, &first)) return value;
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(first, &::freeaddrinfo);
    for (const addrinfo* each = first; each != nullptr; each = each->ai_next)
      std::memcpy(&found.emplace_back(), each->ai_addr, each->ai_addrlen);
    return 0;
  }
};

}  // namespace

System& kernel() noexcept {
  static Kernel functions;
  static SystemOf<Kernel> system(functions);
  return system;
}

}  // namespace tambour::backend
