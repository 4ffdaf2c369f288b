// Runs the conformance suite in a simulation: the linker redirects the suite's system calls, its
// clock and its list of variants here (--wrap, see CMakeLists.txt).
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <ctime>
#include <thread>
#include <vector>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace {

using namespace std::chrono_literals;

// Leaked on purpose: objects of the tests may still use it at exit.
tambour::sim::Simulation& simulation() {
  static auto* const instance = new tambour::sim::Simulation(1);
  return *instance;
}

tambour::sim::Host& host() {
  static tambour::sim::Host& only = [] -> tambour::sim::Host& {
    tambour::sim::Host& created = simulation().add_host("host");
    created.set_descriptors_max(100'000);
    return created;
  }();
  return only;
}

bool is_virtual(int fd) noexcept { return fd >= tambour::sim::Host::first_descriptor; }

const std::thread::id main_thread = std::this_thread::get_id();

}  // namespace

// NOLINTBEGIN: the names are the linker's.
const std::vector<tambour::test::Variant>& simulated_variants() asm(
    "__wrap__ZN7tambour4test12all_variantsEv");
const std::vector<tambour::test::Variant>& simulated_variants() {
  static const std::vector<tambour::test::Variant> variants{
      {.name = "sim", .options = host().loop_options()}};
  return variants;
}

std::chrono::steady_clock::time_point virtual_now() asm(
    "__wrap__ZNSt6chrono3_V212steady_clock3nowEv");
std::chrono::steady_clock::time_point real_now() asm("__real__ZNSt6chrono3_V212steady_clock3nowEv");
std::chrono::steady_clock::time_point virtual_now() {
  if (std::this_thread::get_id() != main_thread) return real_now();
  simulation().spend(100ns);  // Time passes, so that a thread that polls the clock makes progress.
  return simulation().now();
}

extern "C" {
int __wrap_pipe2(int* fds, int flags) { return host().pipe2(fds, flags); }
int __wrap_socketpair(int domain, int type, int protocol, int* fds) {
  return host().socketpair(domain, type, protocol, fds);
}
int __wrap_socket(int domain, int type, int protocol) {
  return host().socket(domain, type, protocol);
}
int __wrap_eventfd(unsigned initial, int flags) { return host().eventfd(initial, flags); }

int __real_close(int fd);
int __wrap_close(int fd) { return is_virtual(fd) ? host().close(fd) : __real_close(fd); }

int __real_dup(int fd);
int __wrap_dup(int fd) { return is_virtual(fd) ? host().dup(fd) : __real_dup(fd); }

int __real_dup2(int fd, int number);
int __wrap_dup2(int fd, int number) {
  return is_virtual(fd) ? host().dup2(fd, number) : __real_dup2(fd, number);
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  if (!is_virtual(fd)) return __real_fcntl(fd, command, argument);
  const bool duplicates = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
  return duplicates ? host().dup(fd) : 0;
}

ssize_t __real_read(int fd, void* into, size_t size);
ssize_t __wrap_read(int fd, void* into, size_t size) {
  return is_virtual(fd) ? host().read(fd, into, size) : __real_read(fd, into, size);
}

ssize_t __real_write(int fd, const void* from, size_t size);
ssize_t __wrap_write(int fd, const void* from, size_t size) {
  return is_virtual(fd) ? host().write(fd, from, size) : __real_write(fd, from, size);
}

ssize_t __wrap_recv(int fd, void* into, size_t size, int flags) {
  return host().recv(fd, into, size, flags);
}
ssize_t __wrap_send(int fd, const void* from, size_t size, int flags) {
  return host().send(fd, from, size, flags);
}
int __wrap_bind(int fd, const sockaddr* address, socklen_t size) {
  return host().bind(fd, address, size);
}
int __wrap_listen(int fd, int backlog) { return host().listen(fd, backlog); }
int __wrap_accept(int fd, sockaddr* address, socklen_t* size) {
  return host().accept4(fd, address, size, 0);
}

// The suite connects blocking sockets; within one host, a connection completes immediately.
int __wrap_connect(int fd, const sockaddr* address, socklen_t size) {
  const int outcome = host().connect(fd, address, size);
  sockaddr_storage peer;
  socklen_t peer_size = sizeof peer;
  const bool connected =
      host().getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0;
  if (!connected) errno = EINPROGRESS;
  return connected ? 0 : outcome;
}

int __wrap_shutdown(int fd, int mode) { return host().shutdown(fd, mode); }
int __wrap_getsockname(int fd, sockaddr* address, socklen_t* size) {
  return host().getsockname(fd, address, size);
}
int __wrap_getsockopt(int fd, int level, int option, void* value, socklen_t* size) {
  return host().getsockopt(fd, level, option, value, size);
}

int __real_nanosleep(const timespec* time, timespec* rest);
int __wrap_nanosleep(const timespec* time, timespec* rest) {
  if (std::this_thread::get_id() != main_thread) return __real_nanosleep(time, rest);
  simulation().spend(std::chrono::seconds(time->tv_sec) + std::chrono::nanoseconds(time->tv_nsec));
  return 0;
}
}
// NOLINTEND
