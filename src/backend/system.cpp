// System: the calls of the real kernel. Writing to a closed pipe raises no SIGPIPE.
#include "backend/system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "base/broken_pipe.h"
#include "base/libc/glibc_functions.h"
#include "base/system_call.h"

namespace tambour::detail::backend {
namespace {

using base::Call;

ssize_t write_quietly(int fd, const void* from, std::size_t size) noexcept {
  return base::without_sigpipe(size, ::write, fd, from, size);
}

ssize_t sendfile_quietly(int to, int from, off_t* offset, std::size_t size) noexcept {
  return base::without_sigpipe(size, ::sendfile, to, from, offset, size);
}

struct Kernel {
  static int socket(int domain, int type, int protocol) noexcept {
    return base::system_call(Call::socket, ::socket, domain, type, protocol);
  }
  static int socketpair(int domain, int type, int protocol, int* fds) noexcept {
    return base::system_call(Call::socketpair, ::socketpair, domain, type, protocol, fds);
  }
  static int pipe2(int* fds, int flags) noexcept {
    return base::system_call(Call::pipe, ::pipe2, fds, flags);
  }
  static constexpr auto close = ::close;
  static int bind(int fd, const sockaddr* address, socklen_t size) noexcept {
    return base::system_call(Call::bind, ::bind, fd, address, size);
  }
  static int listen(int fd, int backlog) noexcept {
    return base::system_call(Call::listen, ::listen, fd, backlog);
  }
  static int accept4(int fd, sockaddr* address, socklen_t* size, int flags) noexcept {
    return base::system_call(Call::accept, ::accept4, fd, address, size, flags);
  }
  static int connect(int fd, const sockaddr* address, socklen_t size) noexcept {
    return base::system_call(Call::connect, ::connect, fd, address, size);
  }
  static int shutdown(int fd, int mode) noexcept {
    return base::system_call(Call::shutdown, ::shutdown, fd, mode);
  }
  static ssize_t read(int fd, void* into, std::size_t size) noexcept {
    return base::system_call(Call::read, ::read, fd, into, size);
  }
  static ssize_t write(int fd, const void* from, std::size_t size) noexcept {
    return base::system_call(Call::write, write_quietly, fd, from, size);
  }
  static ssize_t recv(int fd, void* into, std::size_t size, int flags) noexcept {
    return base::system_call(Call::recv, ::recv, fd, into, size, flags);
  }
  static ssize_t send(int fd, const void* from, std::size_t size, int flags) noexcept {
    return base::system_call(Call::send, ::send, fd, from, size, flags);
  }
  static int make_nonblocking(int fd) noexcept {
    const int flags = base::system_call(Call::fcntl, ::fcntl, fd, F_GETFL);
    if (flags < 0 || (flags & O_NONBLOCK) != 0) return flags < 0 ? -1 : 0;
    return base::system_call(Call::fcntl, ::fcntl, fd, F_SETFL, flags | O_NONBLOCK);
  }
  static ssize_t sendfile(int to, int from, off_t* offset, std::size_t size) noexcept {
    return base::system_call(Call::sendfile, sendfile_quietly, to, from, offset, size);
  }
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
  static int getsockopt(int fd, int level, int option, void* value, socklen_t* size) noexcept {
    return base::system_call(Call::getsockopt, ::getsockopt, fd, level, option, value, size);
  }
  static int setsockopt(int fd, int level, int option, const void* value, socklen_t size) noexcept {
    return base::system_call(Call::setsockopt, ::setsockopt, fd, level, option, value, size);
  }
  static int getsockname(int fd, sockaddr* address, socklen_t* size) noexcept {
    return base::system_call(Call::getsockname, ::getsockname, fd, address, size);
  }
  static constexpr auto getpeername = ::getpeername;
  static std::size_t unacknowledged(int fd) noexcept {
    int queued = 0;
    return ::ioctl(fd, SIOCOUTQ, &queued) == 0 && queued > 0 ? static_cast<std::size_t>(queued) : 0;
  }
  static int unlink(const char* path) noexcept {
    return base::system_call(Call::file_remove, ::unlink, path);
  }
  static int lstat(const char* path, struct stat* into) noexcept {
    return base::system_call(Call::stat, ::lstat, path, into);
  }
  static int open(const char* path, int flags, mode_t permissions) noexcept {
    return base::system_call(Call::file_open, ::open, path, flags, permissions);
  }
  static ssize_t pread(int fd, void* into, std::size_t size, off_t offset) noexcept {
    return base::system_call(Call::file_read, ::pread, fd, into, size, offset);
  }
  static ssize_t pread_cached(int fd, void* into, std::size_t size, off_t offset) noexcept {
    const iovec place{.iov_base = into, .iov_len = size};
    return base::system_call(Call::file_read_cached, ::preadv2, fd, &place, 1, offset,
                             int{RWF_NOWAIT});
  }
  static ssize_t pwrite(int fd, const void* from, std::size_t size, off_t offset) noexcept {
    return base::system_call(Call::file_write, ::pwrite, fd, from, size, offset);
  }
  static int fsync(int fd) noexcept { return base::system_call(Call::file_sync, ::fsync, fd); }
  static int fstat(int fd, struct stat* into) noexcept {
    return base::system_call(Call::file_size, ::fstat, fd, into);
  }
  static int confirm_file(int fd, int flags) noexcept {
    if (base::system_call(Call::file_seek, ::lseek, fd, off_t{0}, SEEK_CUR) < 0) return -1;
    return base::system_call(Call::fcntl, ::fcntl, fd, F_SETFL, flags & (O_DIRECT | O_APPEND));
  }
  static int ftruncate(int fd, off_t size) noexcept {
    return base::system_call(Call::file_truncate, ::ftruncate, fd, size);
  }
  static int fallocate(int fd, int mode, off_t offset, off_t size) noexcept {
    return base::system_call(Call::file_allocate, ::fallocate, fd, mode, offset, size);
  }
  static ssize_t copy_file_range(int from, off_t* from_at, int to, off_t* to_at,
                                 std::size_t size) noexcept {
    return base::system_call(Call::file_copy, ::copy_file_range, from, from_at, to, to_at, size,
                             0U);
  }
  static ssize_t getdents64(int fd, void* into, std::size_t size) noexcept {
    return base::system_call(Call::file_list, base::getdents64, fd, into, size);
  }
  static int statx(int fd, const char* path, int flags, struct statx* into) noexcept {
    const int from = *path == '\0' ? fd : AT_FDCWD;
    constexpr unsigned fields = STATX_BASIC_STATS | STATX_BTIME;
    return base::system_call(Call::file_status, ::statx, from, path, flags, fields, into);
  }
  static int renameat2(const char* from, const char* to, unsigned flags) noexcept {
    return base::system_call(Call::file_rename, base::renameat2, AT_FDCWD, from, AT_FDCWD, to,
                             flags);
  }
  static int mkdir(const char* path, mode_t permissions) noexcept {
    return base::system_call(Call::file_make_directory, ::mkdir, path, permissions);
  }
  static int rmdir(const char* path) noexcept {
    return base::system_call(Call::file_remove, ::rmdir, path);
  }
  static int link(const char* from, const char* to) noexcept {
    return base::system_call(Call::file_link, ::link, from, to);
  }
  static int link_unnamed(int fd, const char* to) noexcept {
    // AT_EMPTY_PATH needs a privilege before Linux 6.10; without /proc there is no other way.
    std::array<char, 32> from{"/proc/self/fd/"};
    char* const number = from.data() + std::strlen(from.data());
    std::to_chars(number, from.data() + from.size() - 1, fd);
    const int outcome = base::system_call(Call::file_link, ::linkat, AT_FDCWD, from.data(),
                                          AT_FDCWD, to, int{AT_SYMLINK_FOLLOW});
    if (outcome == 0 || errno != ENOENT) return outcome;
    return base::system_call(Call::file_link, ::linkat, fd, "", AT_FDCWD, to, int{AT_EMPTY_PATH});
  }
  static int symlink(const char* target, const char* path) noexcept {
    return base::system_call(Call::file_link, ::symlink, target, path);
  }
  static ssize_t readlink(const char* path, char* into, std::size_t size) noexcept {
    return base::system_call(Call::file_read_link, ::readlink, path, into, size);
  }
  static int chmod(const char* path, mode_t permissions) noexcept {
    return base::system_call(Call::file_change, ::chmod, path, permissions);
  }
  static int utimensat(const char* path, const timespec* times, int flags) noexcept {
    return base::system_call(Call::file_change, ::utimensat, AT_FDCWD, path, times, flags);
  }
  static int realpath(const char* path, std::string& into) noexcept {
    if (const auto planned = base::planned_outcome(Call::file_read_link)) {
      errno = -*planned;
      return -1;
    }
    const std::unique_ptr<char, decltype(&std::free)> found(::realpath(path, nullptr), &std::free);
    if (found == nullptr) return -1;
    try {
      into = found.get();
    } catch (const std::bad_alloc&) {
      errno = ENOMEM;
      return -1;
    }
    return 0;
  }
  static int remove_all(const char* path, const std::atomic<bool>& is_stopped) noexcept {
    return backend::remove_all(path, is_stopped);
  }
  static int look_up(const char* host, int family, std::vector<sockaddr_storage>& found) {
    if (const auto planned = base::planned_outcome(Call::look_up)) {
      errno = -*planned;
      return EAI_SYSTEM;
    }
    addrinfo hints{};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;  // Otherwise each address is returned once per type.
    addrinfo* first = nullptr;
    if (const int value = ::getaddrinfo(host, nullptr, &hints, &first)) return value;
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(first, &::freeaddrinfo);
    for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next)
      std::memcpy(&found.emplace_back(), entry->ai_addr, entry->ai_addrlen);
    return 0;
  }
};

}  // namespace

System& kernel() noexcept {
  static Kernel functions;
  static SystemOf<Kernel> system(functions);
  return system;
}

}  // namespace tambour::detail::backend
