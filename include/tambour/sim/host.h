// A simulated machine with one process: its system calls.
//
// Each function has the parameters, the result and the errno values of the system call of the same
// name; see its man page. Differences:
// - System calls never block: all file descriptors behave as with O_NONBLOCK and O_CLOEXEC.
// - There are no signals: EPIPE is returned without SIGPIPE.
// - Ancillary data is neither sent nor received.
// - File descriptors start at `first_descriptor`, so that a virtual one that is passed to a real
//   system call by mistake usually fails with EBADF.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/loop/event_loop.h>

namespace tambour::sim::detail {
class Machine;
class Sim;
class World;
}  // namespace tambour::sim::detail

#pragma GCC visibility push(default)

namespace tambour::sim {

class Simulation;

/// The system calls that fail_next() can make fail. Each includes its variants with `v`, `msg`,
/// `from` or `to`.
enum class SystemCall : std::uint8_t {
  socket,
  socketpair,
  pipe,
  eventfd,
  dup,
  close,
  bind,
  listen,
  accept,
  connect,
  shutdown,
  read,
  write,
  recv,
  send,
  getsockopt,
  setsockopt,
  getsockname,
  getpeername,
  unlink,
  open,
  pread,
  pwrite,
  fsync,
  fstat,
  ftruncate,
  look_up,
  lstat,
  statx,
  rename,
  mkdir,
  rmdir,
  link,
  symlink,
  readlink,
  chmod,
  utimens,
  fallocate,
  copy_file_range,
  getdents,
};

/// A host with one process and its own file descriptors. Created and owned by a Simulation; see
/// Simulation::add_host().
class Host final : public detail::VirtualHost {
 public:
  static constexpr int first_descriptor = 1024;

  /// For Simulation::add_host().
  explicit Host(tambour::detail::OwnedPointer<detail::Machine> machine) noexcept;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();

  /// Called by the loop.
  [[nodiscard]] Result<std::unique_ptr<detail::backend::Backend>> open_backend() override;

  /// Options for an EventLoop on this host.
  [[nodiscard]] LoopOptions loop_options() noexcept;

  /// The name that was given to add_host().
  [[nodiscard]] const std::string& name() const noexcept;
  /// "10.0.0.1" for the first host. The host itself can also use 127.0.0.1.
  [[nodiscard]] std::string ip() const;
  /// This host's address with a port, for bind() and connect().
  [[nodiscard]] sockaddr_in endpoint(std::uint16_t port) const noexcept;
  [[nodiscard]] sockaddr_in6 endpoint6(std::uint16_t port) const noexcept;

  /// As the system calls of these names. AF_INET, AF_INET6 and AF_UNIX; SOCK_STREAM and SOCK_DGRAM.
  int socket(int domain, int type, int protocol) noexcept;
  int socketpair(int domain, int type, int protocol, int* fds) noexcept;
  int pipe2(int* fds, int flags) noexcept;
  int eventfd(unsigned initial, int flags) noexcept;
  int dup(int fd) noexcept;
  int dup2(int fd, int number) noexcept;  ///< EBADF if below `first_descriptor`.
  int close(int fd) noexcept;

  /// As the system calls of these names, on the sockets of this host.
  int bind(int fd, const sockaddr* address, socklen_t size) noexcept;
  int listen(int fd, int backlog) noexcept;
  int accept4(int fd, sockaddr* address, socklen_t* size, int flags) noexcept;
  /// Fails with EINPROGRESS and later becomes writable, except for AF_UNIX and datagram sockets.
  int connect(int fd, const sockaddr* address, socklen_t size) noexcept;
  int shutdown(int fd, int mode) noexcept;
  /// The bytes of a stream socket that its peer has not read yet; ioctl(2) with SIOCOUTQ.
  [[nodiscard]] std::size_t unacknowledged(int fd) noexcept;
  int unlink(const char* path) noexcept;  ///< A file or a Unix socket.
  int lstat(const char* path, struct stat* into) noexcept;

  /// Files in memory, which exist as long as the host: regular files, directories and symbolic
  /// links. A new host has the directories that every system has, such as /etc, /tmp and /var/tmp;
  /// relative paths begin at "/". Permissions are stored, but not checked. A Unix socket is found
  /// only by the same text of the path with which it was bound, and is not listed. Supports
  /// O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY, O_NOFOLLOW, O_TMPFILE and the access mode.
  int open(const char* path, int flags, mode_t permissions) noexcept;
  ssize_t pread(int fd, void* into, std::size_t size, off_t offset) noexcept;
  ssize_t pwrite(int fd, const void* from, std::size_t size, off_t offset) noexcept;
  int fsync(int fd) noexcept;
  int fstat(int fd, struct stat* into) noexcept;
  int ftruncate(int fd, off_t size) noexcept;
  int fallocate(int fd, int mode, off_t offset, off_t size) noexcept;
  ssize_t copy_file_range(int from, off_t* from_at, int to, off_t* to_at,
                          std::size_t size) noexcept;
  /// Neither "." nor ".." is listed.
  ssize_t getdents64(int fd, void* into, std::size_t size) noexcept;

  /// With AT_EMPTY_PATH and an empty path, the status of `fd`; otherwise `fd` is ignored.
  int statx(int fd, const char* path, int flags, struct statx* into) noexcept;
  int renameat2(const char* from, const char* to, unsigned flags) noexcept;
  int mkdir(const char* path, mode_t permissions) noexcept;
  int rmdir(const char* path) noexcept;
  int link(const char* from, const char* to) noexcept;
  /// linkat(2) of an open file without a name: O_TMPFILE.
  int link_unnamed(int fd, const char* to) noexcept;
  int symlink(const char* target, const char* path) noexcept;
  ssize_t readlink(const char* path, char* into, std::size_t size) noexcept;
  int chmod(const char* path, mode_t permissions) noexcept;
  int utimensat(const char* path, const timespec* times, int flags) noexcept;
  /// realpath(3); fail_next() counts it as `readlink`.
  int realpath(const char* path, std::string& into) noexcept;
  /// Removes a directory with everything in it; fail_next() counts it as `rmdir`.
  int remove_all(const char* path, const std::atomic<bool>& is_stopped) noexcept;

  /// Like getaddrinfo(3), for the host names of the simulation and "localhost"; IPv6 first. Returns
  /// 0, EAI_NONAME, or EAI_SYSTEM after fail_next().
  int look_up(const char* name, int family, std::vector<sockaddr_storage>& found);

  /// As the system calls of these names, on the descriptors of this host. They never block.
  ssize_t read(int fd, void* into, std::size_t size) noexcept;
  ssize_t write(int fd, const void* from, std::size_t size) noexcept;
  ssize_t readv(int fd, const iovec* buffers, int count) noexcept;
  ssize_t writev(int fd, const iovec* buffers, int count) noexcept;
  /// Supports MSG_PEEK and MSG_TRUNC. MSG_DONTWAIT, MSG_NOSIGNAL and MSG_CMSG_CLOEXEC have no
  /// effect, because they are always in force. Other flags fail with EOPNOTSUPP.
  ssize_t recv(int fd, void* into, std::size_t size, int flags) noexcept;
  ssize_t recvfrom(int fd, void* into, std::size_t size, int flags, sockaddr* address,
                   socklen_t* address_size) noexcept;
  ssize_t recvmsg(int fd, msghdr* message, int flags) noexcept;
  ssize_t send(int fd, const void* from, std::size_t size, int flags) noexcept;
  ssize_t sendto(int fd, const void* from, std::size_t size, int flags, const sockaddr* address,
                 socklen_t address_size) noexcept;
  ssize_t sendmsg(int fd, const msghdr* message, int flags) noexcept;
  /// No timeout. Each message is a call of its own, for the trace and for fail_next().
  int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept;
  int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept;

  /// Supports SO_ERROR, SO_TYPE, SO_DOMAIN, SO_ACCEPTCONN, SO_SNDBUF, SO_RCVBUF.
  int getsockopt(int fd, int level, int option, void* value, socklen_t* size) noexcept;
  /// Supports SO_LINGER with a time of zero, SO_SNDBUF (streams: exact bytes of that direction) and
  /// SO_RCVBUF (datagrams). Other options of SOL_SOCKET, TCP and IP are accepted without effect.
  int setsockopt(int fd, int level, int option, const void* value, socklen_t size) noexcept;
  int getsockname(int fd, sockaddr* address, socklen_t* size) noexcept;
  int getpeername(int fd, sockaddr* address, socklen_t* size) noexcept;

  /// RLIMIT_NOFILE: the number of open file descriptors at which calls fail with EMFILE. Default:
  /// 1024.
  void set_descriptors_max(std::size_t count) noexcept;
  [[nodiscard]] std::size_t descriptors() const noexcept;

  /// After `skipped` more calls, the next `times` calls of a kind fail with `error` (errno) and
  /// without effect. Replaces a previous setting for the same kind.
  void fail_next(SystemCall call, int error, unsigned times = 1, unsigned skipped = 0) noexcept;

  /// Resets the connection of a stream socket, as a middlebox would: ECONNRESET on both ends.
  void reset(int fd) noexcept;

  /// Closes all file descriptors, as the end of the process does. The caller must destroy the loops
  /// and watchers of the host. To simulate a power failure, call Simulation::isolate() first.
  void close_all() noexcept;

 private:
  friend class Simulation;
  friend class detail::Sim;
  tambour::detail::OwnedPointer<detail::Machine> machine_;
};

}  // namespace tambour::sim

#pragma GCC visibility pop
