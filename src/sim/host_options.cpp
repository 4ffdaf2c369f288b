// sim::Host: socket options, name resolution and control functions.

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <tambour/sim/host.h>

#include "sim/machine.h"

namespace tambour::sim {

using detail::Socket;

namespace {

std::optional<int> option_value(Socket& socket, int level, int option) noexcept {
  if (level != SOL_SOCKET) return std::nullopt;
  switch (option) {
    case SO_ERROR:
      return socket.take_error();
    case SO_TYPE:
      return socket.type();
    case SO_DOMAIN:
      return socket.family();
    case SO_ACCEPTCONN:
      return int(socket.listening());
    case SO_SNDBUF:
      return int(socket.buffer_bytes(true));
    case SO_RCVBUF:
      return int(socket.buffer_bytes(false));
    default:
      return std::nullopt;
  }
}

template <class Value>
bool copy_in(const void* from, socklen_t size, Value& to) noexcept {
  if (from == nullptr || size < sizeof to) return false;
  std::memcpy(&to, from, sizeof to);
  return true;
}

void add_address(const detail::Address& address, int family, std::vector<sockaddr_storage>& found) {
  sockaddr_storage& place = found.emplace_back();
  socklen_t size = sizeof place;
  detail::store(address, family, reinterpret_cast<sockaddr*>(&place), &size);
}

int set_socket_option(Socket& socket, int option, const void* value, socklen_t size) noexcept {
  if (option == SO_LINGER) {
    linger wanted;
    if (!copy_in(value, size, wanted)) return -EINVAL;
    socket.set_linger_reset(wanted.l_onoff != 0 && wanted.l_linger == 0);
    return 0;
  }
  int number;
  if (!copy_in(value, size, number)) return -EINVAL;
  if (option == SO_SNDBUF || option == SO_RCVBUF)
    socket.set_buffer_bytes(option == SO_SNDBUF, std::size_t(std::max(number, 1)));
  return 0;
}

}  // namespace

int Host::getsockopt(int fd, int level, int option, void* value, socklen_t* size) noexcept {
  return int(machine_->call_on_socket(SystemCall::getsockopt, fd, [&](Socket& socket) {
    const auto answer = option_value(socket, level, option);
    if (!answer) return -ENOPROTOOPT;
    *size = std::min<socklen_t>(*size, sizeof *answer);
    std::memcpy(value, &*answer, *size);
    return 0;
  }));
}

int Host::setsockopt(int fd, int level, int option, const void* value, socklen_t size) noexcept {
  return int(machine_->call_on_socket(SystemCall::setsockopt, fd, [&](Socket& socket) {
    if (level == SOL_SOCKET) return set_socket_option(socket, option, value, size);
    const bool known = level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6 ||
                       level == IPPROTO_UDP;
    return known && socket.family() != AF_UNIX ? 0 : -ENOPROTOOPT;
  }));
}

int Host::getsockname(int fd, sockaddr* address, socklen_t* size) noexcept {
  return int(machine_->call_on_socket(SystemCall::getsockname, fd, [&](Socket& socket) {
    store(socket.local(), socket.family(), address, size);
    return 0;
  }));
}

int Host::getpeername(int fd, sockaddr* address, socklen_t* size) noexcept {
  return int(machine_->call_on_socket(SystemCall::getpeername, fd, [&](Socket& socket) {
    const auto* peer = socket.peer();
    if (peer == nullptr) return -ENOTCONN;
    store(*peer, socket.family(), address, size);
    return 0;
  }));
}

int Host::look_up(const char* name, int family, std::vector<sockaddr_storage>& found) {
  const auto outcome = machine_->call(SystemCall::look_up, -1, [&] {
    const std::string_view wanted(name);
    const auto& machines = machine_->world.machines;
    const auto host = std::ranges::find(machines, wanted, &detail::Machine::name);
    for (const int value : {AF_INET6, AF_INET}) {
      if (family != AF_UNSPEC && family != value) continue;
      if (host != machines.end()) {
        add_address(detail::host_address(value, (*host)->number), value, found);
      } else if (wanted == "localhost") {
        add_address(detail::loopback_address(value), value, found);
      }
    }
    return std::int64_t(found.size());
  });
  if (outcome < 0) return EAI_SYSTEM;
  return outcome == 0 ? EAI_NONAME : 0;
}

void Host::set_descriptors_max(std::size_t count) noexcept { machine_->descriptors_max = count; }

std::size_t Host::descriptors() const noexcept { return machine_->descriptors(); }

void Host::fail_next(SystemCall call, int error, unsigned times, unsigned skipped) noexcept {
  machine_->fail_next(call, error, times, skipped);
}

void Host::reset(int fd) noexcept {
  const auto file = machine_->file(fd);
  if (file == nullptr || file->as_socket() == nullptr) return;
  machine_->world.trace_line(machine_->name) << "reset " << fd;
  file->as_socket()->reset();
}

void Host::close_all() noexcept {
  machine_->world.trace_line(machine_->name) << "closes all";
  machine_->close_all();
}

}  // namespace tambour::sim
