// The system calls on sockets and files that a loop makes on behalf of its user: those of the
// kernel, or those of a simulated host.
#pragma once

#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <string>
#include <vector>

namespace tambour::detail::backend {

/// Each function behaves like its namesake in section 2 of the manual: on error it returns -1 and
/// sets errno.
class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  virtual int socket(int domain, int type, int protocol) noexcept = 0;
  virtual int socketpair(int domain, int type, int protocol, int* fds) noexcept = 0;
  virtual int pipe2(int* fds, int flags) noexcept = 0;
  virtual int close(int fd) noexcept = 0;
  virtual int bind(int fd, const sockaddr* address, socklen_t size) noexcept = 0;
  virtual int listen(int fd, int backlog) noexcept = 0;
  virtual int accept4(int fd, sockaddr* address, socklen_t* size, int flags) noexcept = 0;
  virtual int connect(int fd, const sockaddr* address, socklen_t size) noexcept = 0;
  virtual int shutdown(int fd, int mode) noexcept = 0;
  virtual ssize_t read(int fd, void* into, std::size_t size) noexcept = 0;
  /// Never raises SIGPIPE.
  virtual ssize_t write(int fd, const void* from, std::size_t size) noexcept = 0;
  virtual ssize_t recv(int fd, void* into, std::size_t size, int flags) noexcept = 0;
  virtual ssize_t send(int fd, const void* from, std::size_t size, int flags) noexcept = 0;
  /// Sets O_NONBLOCK: fcntl(2). No effect on a simulated host.
  virtual int make_nonblocking(int fd) noexcept = 0;
  /// Never raises SIGPIPE. Waits for `to` unless it is in non-blocking mode. Fails with EOPNOTSUPP
  /// on a simulated host.
  virtual ssize_t sendfile(int to, int from, off_t* offset, std::size_t size) noexcept = 0;
  virtual ssize_t recvmsg(int fd, msghdr* message, int flags) noexcept = 0;
  virtual ssize_t sendmsg(int fd, const msghdr* message, int flags) noexcept = 0;
  /// Without a timeout.
  virtual int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept = 0;
  virtual int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept = 0;
  virtual int getsockopt(int fd, int level, int option, void* value, socklen_t* size) noexcept = 0;
  virtual int setsockopt(int fd, int level, int option, const void* value,
                         socklen_t size) noexcept = 0;
  virtual int getsockname(int fd, sockaddr* address, socklen_t* size) noexcept = 0;
  virtual int getpeername(int fd, sockaddr* address, socklen_t* size) noexcept = 0;
  /// Returns the number of bytes that were sent and that the peer has not acknowledged (SIOCOUTQ of
  /// tcp(7) and unix(7); a Unix socket also counts the kernel's overhead). Zero if unknown.
  [[nodiscard]] virtual std::size_t unacknowledged(int fd) noexcept = 0;
  virtual int unlink(const char* path) noexcept = 0;
  /// Sets at least st_mode, st_dev and st_ino.
  virtual int lstat(const char* path, struct stat* into) noexcept = 0;
  virtual int open(const char* path, int flags, mode_t permissions) noexcept = 0;
  virtual ssize_t pread(int fd, void* into, std::size_t size, off_t offset) noexcept = 0;
  /// Like pread(), but fails with EAGAIN instead of waiting for the disk, and with EOPNOTSUPP or
  /// ENOSYS if that is not possible: preadv2(2), RWF_NOWAIT.
  virtual ssize_t pread_cached(int fd, void* into, std::size_t size, off_t offset) noexcept = 0;
  virtual ssize_t pwrite(int fd, const void* from, std::size_t size, off_t offset) noexcept = 0;
  virtual int fsync(int fd) noexcept = 0;
  virtual int fstat(int fd, struct stat* into) noexcept = 0;
  /// Call after open() with O_NONBLOCK, which keeps open() from waiting for the other end of a
  /// FIFO. Fails with ESPIPE if the file is not seekable (a FIFO, a terminal); otherwise makes it
  /// blocking again. `flags` are those of open(). Never waits for a disk or a file server.
  virtual int confirm_file(int fd, int flags) noexcept = 0;
  virtual int ftruncate(int fd, off_t size) noexcept = 0;
  virtual int fallocate(int fd, int mode, off_t offset, off_t size) noexcept = 0;
  virtual ssize_t copy_file_range(int from, off_t* from_at, int to, off_t* to_at,
                                  std::size_t size) noexcept = 0;
  virtual ssize_t getdents64(int fd, void* into, std::size_t size) noexcept = 0;
  /// Of an open file if `path` is empty and `flags` has AT_EMPTY_PATH; otherwise `fd` is ignored,
  /// and relative paths begin at the working directory, as in all functions below.
  virtual int statx(int fd, const char* path, int flags, struct statx* into) noexcept = 0;
  virtual int renameat2(const char* from, const char* to, unsigned flags) noexcept = 0;
  virtual int mkdir(const char* path, mode_t permissions) noexcept = 0;
  virtual int rmdir(const char* path) noexcept = 0;
  virtual int link(const char* from, const char* to) noexcept = 0;
  /// Gives a name to an open file that has none: O_TMPFILE of open(2).
  virtual int link_unnamed(int fd, const char* to) noexcept = 0;
  virtual int symlink(const char* target, const char* path) noexcept = 0;
  virtual ssize_t readlink(const char* path, char* into, std::size_t size) noexcept = 0;
  virtual int chmod(const char* path, mode_t permissions) noexcept = 0;
  virtual int utimensat(const char* path, const timespec* times, int flags) noexcept = 0;
  /// realpath(3).
  virtual int realpath(const char* path, std::string& into) noexcept = 0;
  /// Removes a file, or a directory with everything in it. Follows no symbolic link. Fails with
  /// ENAMETOOLONG if directories are nested too deeply, and with ECANCELED when `is_stopped`
  /// becomes true.
  virtual int remove_all(const char* path, const std::atomic<bool>& is_stopped) noexcept = 0;
  /// Like getaddrinfo(3) without a port. Returns 0 or an EAI_ value.
  virtual int look_up(const char* host, int family, std::vector<sockaddr_storage>& found) = 0;
};

/// Implements System with any class that has these functions.
template <class Host>
class SystemOf final : public System {
 public:
  explicit SystemOf(Host& host) noexcept : host_(host) {}

  int socket(int domain, int type, int protocol) noexcept override {
    return host_.socket(domain, type, protocol);
  }
  int socketpair(int domain, int type, int protocol, int* fds) noexcept override {
    return host_.socketpair(domain, type, protocol, fds);
  }
  int pipe2(int* fds, int flags) noexcept override { return host_.pipe2(fds, flags); }
  int close(int fd) noexcept override { return host_.close(fd); }
  int bind(int fd, const sockaddr* address, socklen_t size) noexcept override {
    return host_.bind(fd, address, size);
  }
  int listen(int fd, int backlog) noexcept override { return host_.listen(fd, backlog); }
  int accept4(int fd, sockaddr* address, socklen_t* size, int flags) noexcept override {
    return host_.accept4(fd, address, size, flags);
  }
  int connect(int fd, const sockaddr* address, socklen_t size) noexcept override {
    return host_.connect(fd, address, size);
  }
  int shutdown(int fd, int mode) noexcept override { return host_.shutdown(fd, mode); }
  ssize_t read(int fd, void* into, std::size_t size) noexcept override {
    return host_.read(fd, into, size);
  }
  ssize_t write(int fd, const void* from, std::size_t size) noexcept override {
    return host_.write(fd, from, size);
  }
  ssize_t recv(int fd, void* into, std::size_t size, int flags) noexcept override {
    return host_.recv(fd, into, size, flags);
  }
  ssize_t send(int fd, const void* from, std::size_t size, int flags) noexcept override {
    return host_.send(fd, from, size, flags);
  }
  int make_nonblocking(int fd) noexcept override {
    if constexpr (requires { host_.make_nonblocking(fd); }) {
      return host_.make_nonblocking(fd);
    } else {
      return 0;  // Nothing blocks there.
    }
  }
  ssize_t sendfile(int to, int from, off_t* offset, std::size_t size) noexcept override {
    if constexpr (requires { host_.sendfile(to, from, offset, size); }) {
      return host_.sendfile(to, from, offset, size);
    } else {
      errno = EOPNOTSUPP;
      return -1;
    }
  }
  ssize_t recvmsg(int fd, msghdr* message, int flags) noexcept override {
    return host_.recvmsg(fd, message, flags);
  }
  ssize_t sendmsg(int fd, const msghdr* message, int flags) noexcept override {
    return host_.sendmsg(fd, message, flags);
  }
  int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept override {
    return host_.recvmmsg(fd, messages, count, flags);
  }
  int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept override {
    return host_.sendmmsg(fd, messages, count, flags);
  }
  int getsockopt(int fd, int level, int option, void* value, socklen_t* size) noexcept override {
    return host_.getsockopt(fd, level, option, value, size);
  }
  int setsockopt(int fd, int level, int option, const void* value,
                 socklen_t size) noexcept override {
    return host_.setsockopt(fd, level, option, value, size);
  }
  int getsockname(int fd, sockaddr* address, socklen_t* size) noexcept override {
    return host_.getsockname(fd, address, size);
  }
  int getpeername(int fd, sockaddr* address, socklen_t* size) noexcept override {
    return host_.getpeername(fd, address, size);
  }
  std::size_t unacknowledged(int fd) noexcept override { return host_.unacknowledged(fd); }
  int unlink(const char* path) noexcept override { return host_.unlink(path); }
  int lstat(const char* path, struct stat* into) noexcept override {
    return host_.lstat(path, into);
  }
  int open(const char* path, int flags, mode_t permissions) noexcept override {
    return host_.open(path, flags, permissions);
  }
  ssize_t pread(int fd, void* into, std::size_t size, off_t offset) noexcept override {
    return host_.pread(fd, into, size, offset);
  }
  ssize_t pread_cached(int fd, void* into, std::size_t size, off_t offset) noexcept override {
    if constexpr (requires { host_.pread_cached(fd, into, size, offset); }) {
      return host_.pread_cached(fd, into, size, offset);
    } else {
      errno = EOPNOTSUPP;
      return -1;
    }
  }
  ssize_t pwrite(int fd, const void* from, std::size_t size, off_t offset) noexcept override {
    return host_.pwrite(fd, from, size, offset);
  }
  int fsync(int fd) noexcept override { return host_.fsync(fd); }
  int fstat(int fd, struct stat* into) noexcept override { return host_.fstat(fd, into); }
  int confirm_file(int fd, int flags) noexcept override {
    if constexpr (requires { host_.confirm_file(fd, flags); }) {
      return host_.confirm_file(fd, flags);
    } else {
      return 0;  // A simulated host has only regular files.
    }
  }
  int ftruncate(int fd, off_t size) noexcept override { return host_.ftruncate(fd, size); }
  int fallocate(int fd, int mode, off_t offset, off_t size) noexcept override {
    return host_.fallocate(fd, mode, offset, size);
  }
  ssize_t copy_file_range(int from, off_t* from_at, int to, off_t* to_at,
                          std::size_t size) noexcept override {
    return host_.copy_file_range(from, from_at, to, to_at, size);
  }
  ssize_t getdents64(int fd, void* into, std::size_t size) noexcept override {
    return host_.getdents64(fd, into, size);
  }
  int statx(int fd, const char* path, int flags, struct statx* into) noexcept override {
    return host_.statx(fd, path, flags, into);
  }
  int renameat2(const char* from, const char* to, unsigned flags) noexcept override {
    return host_.renameat2(from, to, flags);
  }
  int mkdir(const char* path, mode_t permissions) noexcept override {
    return host_.mkdir(path, permissions);
  }
  int rmdir(const char* path) noexcept override { return host_.rmdir(path); }
  int link(const char* from, const char* to) noexcept override { return host_.link(from, to); }
  int link_unnamed(int fd, const char* to) noexcept override { return host_.link_unnamed(fd, to); }
  int symlink(const char* target, const char* path) noexcept override {
    return host_.symlink(target, path);
  }
  ssize_t readlink(const char* path, char* into, std::size_t size) noexcept override {
    return host_.readlink(path, into, size);
  }
  int chmod(const char* path, mode_t permissions) noexcept override {
    return host_.chmod(path, permissions);
  }
  int utimensat(const char* path, const timespec* times, int flags) noexcept override {
    return host_.utimensat(path, times, flags);
  }
  int realpath(const char* path, std::string& into) noexcept override {
    return host_.realpath(path, into);
  }
  int remove_all(const char* path, const std::atomic<bool>& is_stopped) noexcept override {
    return host_.remove_all(path, is_stopped);
  }
  int look_up(const char* host, int family, std::vector<sockaddr_storage>& found) override {
    return host_.look_up(host, family, found);
  }

 private:
  Host& host_;
};

/// The system calls of the kernel.
System& kernel() noexcept;

/// The number of directories inside each other that remove_all() descends into. Each has an open
/// descriptor meanwhile.
inline constexpr unsigned remove_depth_max = 256;

/// System::remove_all() of the kernel. A symbolic link that another process puts in the place of a
/// directory meanwhile is removed, not followed.
int remove_all(const char* path, const std::atomic<bool>& is_stopped) noexcept;

}  // namespace tambour::detail::backend
