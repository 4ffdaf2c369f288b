// A machine of a Simulation: the system calls that a program of its has.
//
// Each function takes what the system call of its name takes, returns what that returns and sets
// errno as that does; the man page is its documentation. What differs:
// - Nothing ever blocks: all descriptors are as if O_NONBLOCK and O_CLOEXEC were set.
// - No signals: EPIPE comes without SIGPIPE.
// - Of ancillary data, none is sent or received.
// - Descriptors count from `first_descriptor`, so that a virtual one that strays into a real system
//   call finds, in most programs, nothing there.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/event_loop.h>

namespace tambour {

class Simulation;
namespace backend::sim {
class Machine;
class Sim;
class World;
}  // namespace backend::sim

/// What fail_next() can make fail. Names with `v`, `msg`, `from` or `to` go with the plain ones.
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
};

/// Made by Simulation::add_host(), and belongs to it. One process with its own descriptors.
class SimulatedHost {
 public:
  static constexpr int first_descriptor = 1024;

  explicit SimulatedHost(std::unique_ptr<backend::sim::Machine> machine) noexcept;
  SimulatedHost(const SimulatedHost&) = delete;
  SimulatedHost& operator=(const SimulatedHost&) = delete;
  ~SimulatedHost();

  /// For an EventLoop of this host.
  [[nodiscard]] LoopOptions loop_options() noexcept;

  [[nodiscard]] const std::string& name() const noexcept;
  /// "10.0.0.1" for the first host. It is 127.0.0.1 to itself.
  [[nodiscard]] std::string ip() const;
  /// This host's address and a port, as bind() and connect() take it.
  [[nodiscard]] sockaddr_in endpoint(std::uint16_t port) const noexcept;
  [[nodiscard]] sockaddr_in6 endpoint6(std::uint16_t port) const noexcept;

  // Any number of AF_INET, AF_INET6 and AF_UNIX sockets, SOCK_STREAM and SOCK_DGRAM.
  int socket(int domain, int type, int protocol) noexcept;
  int socketpair(int domain, int type, int protocol, int* fds) noexcept;
  int pipe2(int* fds, int flags) noexcept;
  int eventfd(unsigned initial, int flags) noexcept;
  int dup(int fd) noexcept;
  int dup2(int fd, int number) noexcept;  ///< EBADF where that is below `first_descriptor`.
  int close(int fd) noexcept;

  int bind(int fd, const sockaddr* address, socklen_t size) noexcept;
  int listen(int fd, int backlog) noexcept;
  int accept4(int fd, sockaddr* address, socklen_t* size, int flags) noexcept;
  /// EINPROGRESS, and later writable, but for AF_UNIX and datagrams.
  int connect(int fd, const sockaddr* address, socklen_t size) noexcept;
  int shutdown(int fd, int how) noexcept;
  int unlink(const char* path) noexcept;  ///< Of a file, or the name of a Unix socket.
  int lstat(const char* path, struct stat* into) noexcept;  ///< st_mode; st_ino of sockets.

  /// Regular files, in memory, that last as long as the host. Names are only compared: there are
  /// folders nowhere, and no permissions. O_CREAT, O_EXCL, O_TRUNC, O_APPEND and the access mode.
  int open(const char* path, int flags, mode_t permissions) noexcept;
  ssize_t pread(int fd, void* into, std::size_t size, off_t offset) noexcept;
  ssize_t pwrite(int fd, const void* from, std::size_t size, off_t offset) noexcept;
  int fsync(int fd) noexcept;
  int fstat(int fd, struct stat* into) noexcept;  ///< st_size and st_mode.
  int ftruncate(int fd, off_t size) noexcept;

  /// getaddrinfo(3) for hosts of the simulation, by their names, and "localhost": IPv6 first. 0,
  /// EAI_NONAME, or EAI_SYSTEM where fail_next() has it so.
  int look_up(const char* name, int family, std::vector<sockaddr_storage>& found);

  ssize_t read(int fd, void* into, std::size_t size) noexcept;
  ssize_t write(int fd, const void* from, std::size_t size) noexcept;
  ssize_t readv(int fd, const iovec* buffers, int count) noexcept;
  ssize_t writev(int fd, const iovec* buffers, int count) noexcept;
  /// MSG_PEEK, MSG_TRUNC; MSG_DONTWAIT, MSG_NOSIGNAL and MSG_CMSG_CLOEXEC say what is so anyway;
  /// others EOPNOTSUPP.
  ssize_t recv(int fd, void* into, std::size_t size, int flags) noexcept;
  ssize_t recvfrom(int fd, void* into, std::size_t size, int flags, sockaddr* address,
                   socklen_t* address_size) noexcept;
  ssize_t recvmsg(int fd, msghdr* message, int flags) noexcept;
  ssize_t send(int fd, const void* from, std::size_t size, int flags) noexcept;
  ssize_t sendto(int fd, const void* from, std::size_t size, int flags, const sockaddr* address,
                 socklen_t address_size) noexcept;
  ssize_t sendmsg(int fd, const msghdr* message, int flags) noexcept;
  /// Without a time limit, and each message by a call of its own: so they are traced, and fail.
  int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept;
  int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept;

  /// SO_ERROR, SO_TYPE, SO_DOMAIN, SO_ACCEPTCONN, SO_SNDBUF, SO_RCVBUF.
  int getsockopt(int fd, int level, int option, void* value, socklen_t* size) noexcept;
  /// SO_LINGER with a time of zero, SO_SNDBUF (streams: bytes of that direction, as given),
  /// SO_RCVBUF (datagrams). Other options of SOL_SOCKET, TCP and IP are accepted, to no effect.
  int setsockopt(int fd, int level, int option, const void* value, socklen_t size) noexcept;
  int getsockname(int fd, sockaddr* address, socklen_t* size) noexcept;
  int getpeername(int fd, sockaddr* address, socklen_t* size) noexcept;

  /// RLIMIT_NOFILE: how many descriptors may be open before EMFILE. 1024 at first.
  void set_descriptors_max(std::size_t count) noexcept;
  [[nodiscard]] std::size_t descriptors() const noexcept;

  /// The next `times` calls of a kind, after `skipped` more that do not, fail with `error` (errno)
  /// and without effect. Again for the same kind: in place of the former.
  void fail_next(SystemCall call, int error, unsigned times = 1, unsigned skipped = 0) noexcept;

  /// Resets the connection of a stream socket, as a middlebox would: ECONNRESET at both ends.
  void reset(int fd) noexcept;

  /// Closes all descriptors, as the end of the process does. Its loops and watchers are the
  /// caller's to destroy. Where the power failed, Simulation::isolate() first.
  void close_all() noexcept;

 private:
  friend class Simulation;
  friend class backend::sim::Sim;
  std::unique_ptr<backend::sim::Machine> machine_;
};

}  // namespace tambour
