// The same calls on the kernel and on a simulated host, and a record of their results.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tambour/tambour.h>

namespace tambour::test {

class Calls {
 public:
  Calls() = default;
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  virtual ~Calls() = default;

  virtual int socket(int domain, int type) = 0;
  virtual int socketpair(int domain, int type, int* fds) = 0;
  virtual int pipe2(int* fds) = 0;
  virtual int eventfd(unsigned initial, int flags) = 0;
  virtual int dup(int fd) = 0;
  virtual int close(int fd) = 0;
  virtual int bind(int fd, const sockaddr* address, socklen_t size) = 0;
  virtual int listen(int fd, int backlog) = 0;
  virtual int accept(int fd, sockaddr* address, socklen_t* size) = 0;
  virtual int connect(int fd, const sockaddr* address, socklen_t size) = 0;
  virtual int shutdown(int fd, int mode) = 0;
  virtual ssize_t read(int fd, void* into, std::size_t size) = 0;
  virtual ssize_t write(int fd, const void* from, std::size_t size) = 0;
  virtual ssize_t recvfrom(int fd, void* into, std::size_t size, int flags, sockaddr* address,
                           socklen_t* address_size) = 0;
  virtual ssize_t sendto(int fd, const void* from, std::size_t size, int flags,
                         const sockaddr* address, socklen_t address_size) = 0;
  virtual int getsockopt(int fd, int level, int option, void* value, socklen_t* size) = 0;
  virtual int setsockopt(int fd, int level, int option, const void* value, socklen_t size) = 0;
  virtual int getsockname(int fd, sockaddr* address, socklen_t* size) = 0;
  virtual int getpeername(int fd, sockaddr* address, socklen_t* size) = 0;

  /// A loop that can watch these descriptors.
  virtual EventLoop& loop() = 0;
};

/// Makes calls and records their results in a form that is identical on both sides: descriptors are
/// numbered in the order of their creation, and ports are omitted.
class Recorder {
 public:
  explicit Recorder(Calls& calls) noexcept : calls_(calls) {}

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  void say(std::string_view words) { text_.append(words) += '\n'; }

  int socket(int domain, int type);
  struct Two {
    int one;
    int other;
  };
  Two socketpair(int type);
  Two pipe();
  int eventfd(unsigned initial, int flags = 0);
  /// A TCP connection over 127.0.0.1: the connecting and the accepted socket.
  Two tcp();
  /// Bound to a free port of 127.0.0.1 or ::1.
  int bound(int domain, int type);
  int tcp_listener(int backlog = 5);

  int dup(int fd);
  void close(int fd);
  void listen(int fd, int backlog = 5);
  int accept(int fd);
  /// Connects to the address to which `target` is bound.
  void connect(int fd, int target);
  void connect_unix(int fd, std::string_view name);
  /// Calls bind, connect and sendto with every size that is too small for `family`, and with an
  /// address family that differs from the socket's.
  void bad_addresses(int fd, int family);
  void bind_unix(int fd, std::string_view name);
  void bind_where(int fd, int target);
  void shutdown(int fd, int mode);
  void read(int fd, std::size_t size);
  void write(int fd, std::string_view bytes);
  void recv(int fd, std::size_t size, int flags = 0);
  void send(int fd, std::string_view bytes, int flags = 0);
  void send_to(int fd, std::string_view bytes, int target);
  /// Records the data received and whether the source is the address of `sender`.
  void recv_from(int fd, int sender);
  void error_of(int fd);
  void option(int fd, int option);
  void linger_reset(int fd);
  void names(int fd);
  /// Like names(), with a buffer that is too small.
  void names_cut_short(int fd, unsigned size);
  /// Records the events that a loop reports.
  void ready(int fd);
  /// Writes until it would block; records only that.
  void fill(int fd);
  void drain(int fd);

 private:
  struct Where {
    sockaddr_storage address{};
    socklen_t size = sizeof(sockaddr_storage);
    [[nodiscard]] sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&address); }
  };
  Where where(int fd);
  void result(std::string_view text, ssize_t outcome);

  Calls& calls_;
  std::string text_;
};

}  // namespace tambour::test
