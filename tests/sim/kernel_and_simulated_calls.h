// Makes the same calls on the kernel and on a simulation of one host.
#pragma once

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "sim/calls.h"

namespace tambour::test {

class KernelCalls final : public Calls {
 public:
  KernelCalls() { std::signal(SIGPIPE, SIG_IGN); }

  int socket(int domain, int type) override {
    return ::socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  }
  int socketpair(int domain, int type, int* fds) override {
    return ::socketpair(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds);
  }
  int pipe2(int* fds) override { return ::pipe2(fds, O_NONBLOCK | O_CLOEXEC); }
  int eventfd(unsigned initial, int flags) override {
    return ::eventfd(initial, flags | EFD_NONBLOCK | EFD_CLOEXEC);
  }
  int dup(int fd) override { return ::dup(fd); }
  int close(int fd) override { return ::close(fd); }
  int bind(int fd, const sockaddr* address, socklen_t size) override {
    return ::bind(fd, address, size);
  }
  int listen(int fd, int backlog) override { return ::listen(fd, backlog); }
  int accept(int fd, sockaddr* address, socklen_t* size) override {
    return ::accept4(fd, address, size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  }
  int connect(int fd, const sockaddr* address, socklen_t size) override {
    return ::connect(fd, address, size);
  }
  int shutdown(int fd, int mode) override { return ::shutdown(fd, mode); }
  ssize_t read(int fd, void* into, std::size_t size) override { return ::read(fd, into, size); }
  ssize_t write(int fd, const void* from, std::size_t size) override {
    return ::write(fd, from, size);
  }
  ssize_t recvfrom(int fd, void* into, std::size_t size, int flags, sockaddr* address,
                   socklen_t* address_size) override {
    return ::recvfrom(fd, into, size, flags, address, address_size);
  }
  ssize_t sendto(int fd, const void* from, std::size_t size, int flags, const sockaddr* address,
                 socklen_t address_size) override {
    return ::sendto(fd, from, size, flags, address, address_size);
  }
  int getsockopt(int fd, int level, int option, void* value, socklen_t* size) override {
    return ::getsockopt(fd, level, option, value, size);
  }
  int setsockopt(int fd, int level, int option, const void* value, socklen_t size) override {
    return ::setsockopt(fd, level, option, value, size);
  }
  int getsockname(int fd, sockaddr* address, socklen_t* size) override {
    return ::getsockname(fd, address, size);
  }
  int getpeername(int fd, sockaddr* address, socklen_t* size) override {
    return ::getpeername(fd, address, size);
  }
  EventLoop& loop() override { return loop_; }

 private:
  EventLoop loop_{{.backend = BackendKind::epoll}};
};

class SimulatedCalls final : public Calls {
 public:
  int socket(int domain, int type) override { return host_.socket(domain, type, 0); }
  int socketpair(int domain, int type, int* fds) override {
    return host_.socketpair(domain, type, 0, fds);
  }
  int pipe2(int* fds) override { return host_.pipe2(fds, 0); }
  int eventfd(unsigned initial, int flags) override { return host_.eventfd(initial, flags); }
  int dup(int fd) override { return host_.dup(fd); }
  int close(int fd) override { return host_.close(fd); }
  int bind(int fd, const sockaddr* address, socklen_t size) override {
    return host_.bind(fd, address, size);
  }
  int listen(int fd, int backlog) override { return host_.listen(fd, backlog); }
  int accept(int fd, sockaddr* address, socklen_t* size) override {
    return host_.accept4(fd, address, size, 0);
  }
  int connect(int fd, const sockaddr* address, socklen_t size) override {
    return host_.connect(fd, address, size);
  }
  int shutdown(int fd, int mode) override { return host_.shutdown(fd, mode); }
  ssize_t read(int fd, void* into, std::size_t size) override { return host_.read(fd, into, size); }
  ssize_t write(int fd, const void* from, std::size_t size) override {
    return host_.write(fd, from, size);
  }
  ssize_t recvfrom(int fd, void* into, std::size_t size, int flags, sockaddr* address,
                   socklen_t* address_size) override {
    return host_.recvfrom(fd, into, size, flags, address, address_size);
  }
  ssize_t sendto(int fd, const void* from, std::size_t size, int flags, const sockaddr* address,
                 socklen_t address_size) override {
    return host_.sendto(fd, from, size, flags, address, address_size);
  }
  int getsockopt(int fd, int level, int option, void* value, socklen_t* size) override {
    return host_.getsockopt(fd, level, option, value, size);
  }
  int setsockopt(int fd, int level, int option, const void* value, socklen_t size) override {
    return host_.setsockopt(fd, level, option, value, size);
  }
  int getsockname(int fd, sockaddr* address, socklen_t* size) override {
    return host_.getsockname(fd, address, size);
  }
  int getpeername(int fd, sockaddr* address, socklen_t* size) override {
    return host_.getpeername(fd, address, size);
  }
  EventLoop& loop() override { return loop_; }

 private:
  sim::Simulation simulation_;
  sim::Host& host_ = simulation_.add_host("host");
  EventLoop loop_{host_.loop_options()};
};

}  // namespace tambour::test
