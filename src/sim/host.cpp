// sim::Host: translates system calls into operations of the simulation.

#include <tambour/sim/host.h>

#include <netinet/in.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/machine.h"
#include "sim/sim.h"
#include "sim/sockets/datagram_socket.h"
#include "sim/sockets/pipe.h"
#include "sim/sockets/stream_socket.h"

namespace tambour::sim {

using namespace detail;  // NOLINT(google-build-using-namespace): this is its outside.

namespace {

constexpr int type_mask = 0xf;  // Masks out SOCK_NONBLOCK and SOCK_CLOEXEC.

/// Returns 0 or a negated errno value.
int check_socket(int domain, int type) noexcept {
  if (domain != AF_INET && domain != AF_INET6 && domain != AF_UNIX) return -EAFNOSUPPORT;
  const int plain = type & type_mask;
  if (plain == SOCK_STREAM || plain == SOCK_DGRAM) return 0;
  return plain > SOCK_PACKET ? -EINVAL : -ESOCKTNOSUPPORT;
}

std::shared_ptr<Socket> make_socket(Machine& machine, int domain, int type) {
  if ((type & type_mask) == SOCK_STREAM) return std::make_shared<StreamSocket>(machine, domain);
  return std::make_shared<DatagramSocket>(machine, domain);
}

int flags_supported(int flags, int known) noexcept {
  return (flags & ~(known | MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC)) == 0 ? 0 : -EOPNOTSUPP;
}

bool bad_vector(const iovec* buffers, std::int64_t count) noexcept {
  constexpr std::int64_t iov_max = 1024;
  return count < 0 || count > iov_max || (buffers == nullptr && count != 0);
}

ssize_t receive(Machine& machine, SystemCall call, int fd, Message& message) {
  if (call == SystemCall::read) {
    return machine.call_on_file(call, fd, [&](File& file) { return file.receive(message); });
  }
  if (const int error = flags_supported(message.flags, MSG_PEEK | MSG_TRUNC)) {
    return machine.call(call, fd, [&] { return error; });
  }
  return machine.call_on_socket(call, fd, [&](Socket& socket) { return socket.receive(message); });
}

ssize_t send(Machine& machine, SystemCall call, int fd, Message& message, const sockaddr* to,
             socklen_t to_size) {
  if (call == SystemCall::write) {
    return machine.call_on_file(call, fd, [&](File& file) { return file.send(message); });
  }
  return machine.call_on_socket(call, fd, [&](Socket& socket) -> ssize_t {
    if (const int error = flags_supported(message.flags, MSG_MORE)) return error;
    if (to == nullptr || to_size == 0) return socket.send(message);
    if (socket.type() == SOCK_STREAM) {
      // tcp(7) ignores the address; unix(7) rejects any address.
      if (socket.family() != AF_UNIX) return socket.send(message);
      return socket.peer() != nullptr ? -EISCONN : -EOPNOTSUPP;
    }
    Address address;
    if (const int error = parse(to, to_size, socket.family(), address)) return error;
    message.to = &address;
    return socket.send(message);
  });
}

}  // namespace

Host::Host(tambour::detail::OwnedPointer<Machine> machine) noexcept : machine_(std::move(machine)) {
  machine_->system = std::make_unique<detail::backend::SystemOf<Host>>(*this);
}

Host::~Host() = default;

Result<std::unique_ptr<detail::backend::Backend>> Host::open_backend() {
  return std::make_unique<detail::Sim>(*machine_);
}

LoopOptions Host::loop_options() noexcept {
  LoopOptions options;
  options.backend = BackendKind::simulated;
  options.simulated_host = this;
  return options;
}

const std::string& Host::name() const noexcept { return machine_->name; }

std::string Host::ip() const {
  const std::string text = host_address(AF_INET, machine_->number).text();
  return text.substr(0, text.rfind(':'));
}

sockaddr_in Host::endpoint(std::uint16_t port) const noexcept {
  Address address = host_address(AF_INET, machine_->number);
  address.port = port;
  sockaddr_in in{};
  socklen_t size = sizeof in;
  store(address, AF_INET, reinterpret_cast<sockaddr*>(&in), &size);
  return in;
}

sockaddr_in6 Host::endpoint6(std::uint16_t port) const noexcept {
  Address address = host_address(AF_INET6, machine_->number);
  address.port = port;
  sockaddr_in6 in6{};
  socklen_t size = sizeof in6;
  store(address, AF_INET6, reinterpret_cast<sockaddr*>(&in6), &size);
  return in6;
}

int Host::socket(int domain, int type, int) noexcept {
  return int(machine_->call(SystemCall::socket, -1, [&] {
    if (const int error = check_socket(domain, type)) return error;
    if (const int error = machine_->room_for(1)) return error;
    return machine_->install(make_socket(*machine_, domain, type));
  }));
}

int Host::socketpair(int domain, int type, int, int* fds) noexcept {
  return int(machine_->call(SystemCall::socketpair, -1, [&] {
    if (const int error = check_socket(domain, type)) return error;
    if (domain != AF_UNIX) return -EOPNOTSUPP;
    if (const int error = machine_->room_for(2)) return error;
    const auto one = make_socket(*machine_, domain, type);
    const auto other = make_socket(*machine_, domain, type);
    if ((type & type_mask) == SOCK_STREAM) {
      StreamSocket::pair(static_cast<StreamSocket&>(*one), static_cast<StreamSocket&>(*other));
    } else {
      DatagramSocket::pair(static_cast<DatagramSocket&>(*one),
                           static_cast<DatagramSocket&>(*other));
    }
    fds[0] = machine_->install(one);
    fds[1] = machine_->install(other);
    return 0;
  }));
}

int Host::pipe2(int* fds, int) noexcept {
  return int(machine_->call(SystemCall::pipe, -1, [&] {
    if (const int error = machine_->room_for(2)) return error;
    const auto [reader, writer] = PipeEnd::open(machine_->world);
    fds[0] = machine_->install(reader);
    fds[1] = machine_->install(writer);
    return 0;
  }));
}

int Host::eventfd(unsigned initial, int flags) noexcept {
  return int(machine_->call(SystemCall::eventfd, -1, [&] {
    if (const int error = machine_->room_for(1)) return error;
    return machine_->install(std::make_shared<EventCounter>(initial, (flags & EFD_SEMAPHORE) != 0));
  }));
}

int Host::dup(int fd) noexcept {
  return int(machine_->call(SystemCall::dup, fd, [&] {
    auto file = machine_->file(fd);
    if (file == nullptr) return -EBADF;
    if (const int error = machine_->room_for(1)) return error;
    return machine_->install(std::move(file));
  }));
}

int Host::dup2(int fd, int number) noexcept {
  return int(machine_->call(SystemCall::dup, fd, [&] {
    auto file = machine_->file(fd);
    constexpr int numbers_max = 1 << 20;  // The default of fs.nr_open, see proc_sys_fs(5).
    if (file == nullptr || number < first_descriptor || number >= numbers_max) return -EBADF;
    return fd == number ? fd : machine_->install_at(number, std::move(file));
  }));
}

int Host::close(int fd) noexcept {
  return int(machine_->call(SystemCall::close, fd, [&] { return machine_->close(fd); }));
}

int Host::bind(int fd, const sockaddr* address, socklen_t size) noexcept {
  return int(machine_->call_on_socket(SystemCall::bind, fd, [&](Socket& socket) {
    Address to;
    if (const int error = parse(address, size, socket.family(), to)) return error;
    return socket.bind(to);
  }));
}

int Host::listen(int fd, int backlog) noexcept {
  return int(machine_->call_on_socket(SystemCall::listen, fd,
                                      [&](Socket& socket) { return socket.listen(backlog); }));
}

int Host::accept4(int fd, sockaddr* address, socklen_t* size, int) noexcept {
  return int(machine_->call_on_socket(SystemCall::accept, fd, [&](Socket& socket) {
    // accept(2) allocates a descriptor first: on EMFILE the connection stays in the queue.
    if (const int error = machine_->room_for(1)) return error;
    if (const int error = socket.acceptable()) return error;
    const auto accepted = socket.accept();
    if (const Address* peer = accepted->peer()) store(*peer, accepted->family(), address, size);
    return machine_->install(accepted);
  }));
}

int Host::connect(int fd, const sockaddr* address, socklen_t size) noexcept {
  return int(machine_->call_on_socket(SystemCall::connect, fd, [&](Socket& socket) {
    Address to;
    if (const int error = parse(address, size, socket.family(), to)) return error;
    return socket.connect(to);
  }));
}

int Host::shutdown(int fd, int mode) noexcept {
  return int(machine_->call_on_socket(SystemCall::shutdown, fd,
                                      [&](Socket& socket) { return socket.shutdown(mode); }));
}

// Not a call of the program, so it has neither faults nor a line in the trace.
std::size_t Host::unacknowledged(int fd) noexcept {
  const auto file = machine_->file(fd);
  Socket* const socket = file != nullptr ? file->as_socket() : nullptr;
  return socket != nullptr ? socket->unacknowledged() : 0;
}

int Host::unlink(const char* path) noexcept {
  return int(machine_->call(SystemCall::unlink, -1, [&] { return machine_->unlink(path); }));
}

int Host::lstat(const char* path, struct stat* into) noexcept {
  return int(machine_->call(SystemCall::lstat, -1, [&] { return machine_->lstat(path, *into); }));
}

ssize_t Host::read(int fd, void* into, std::size_t size) noexcept {
  const iovec buffer{.iov_base = into, .iov_len = size};
  return readv(fd, &buffer, 1);
}

ssize_t Host::write(int fd, const void* from, std::size_t size) noexcept {
  const iovec buffer{.iov_base = const_cast<void*>(from), .iov_len = size};
  return writev(fd, &buffer, 1);
}

ssize_t Host::readv(int fd, const iovec* buffers, int count) noexcept {
  if (bad_vector(buffers, count))
    return machine_->call(SystemCall::read, fd, [] { return -EINVAL; });
  Message message{.buffers = {buffers, std::size_t(count)}};
  return receive(*machine_, SystemCall::read, fd, message);
}

ssize_t Host::writev(int fd, const iovec* buffers, int count) noexcept {
  if (bad_vector(buffers, count))
    return machine_->call(SystemCall::write, fd, [] { return -EINVAL; });
  Message message{.buffers = {buffers, std::size_t(count)}};
  return ::tambour::sim::send(*machine_, SystemCall::write, fd, message, nullptr, 0);
}

ssize_t Host::recv(int fd, void* into, std::size_t size, int flags) noexcept {
  return recvfrom(fd, into, size, flags, nullptr, nullptr);
}

ssize_t Host::recvfrom(int fd, void* into, std::size_t size, int flags, sockaddr* address,
                       socklen_t* address_size) noexcept {
  iovec buffer{.iov_base = into, .iov_len = size};
  msghdr message{};
  message.msg_iov = &buffer;
  message.msg_iovlen = 1;
  message.msg_name = address;
  message.msg_namelen = address_size != nullptr ? *address_size : 0;
  const ssize_t result = recvmsg(fd, &message, flags);
  if (result >= 0 && address_size != nullptr) *address_size = message.msg_namelen;
  return result;
}

ssize_t Host::recvmsg(int fd, msghdr* header, int flags) noexcept {
  const auto count = std::int64_t(header->msg_iovlen);
  if (bad_vector(header->msg_iov, count))
    return machine_->call(SystemCall::recv, fd, [] { return -EMSGSIZE; });
  Message message{.buffers = {header->msg_iov, std::size_t(count)}, .flags = flags};
  const ssize_t result = receive(*machine_, SystemCall::recv, fd, message);
  if (result < 0) return result;
  header->msg_controllen = 0;
  header->msg_flags = message.flags_out;
  if (message.from.family == AF_UNSPEC || header->msg_name == nullptr) {
    header->msg_namelen = 0;
    return result;
  }
  const int family = machine_->file(fd)->as_socket()->family();
  store(message.from, family, static_cast<sockaddr*>(header->msg_name), &header->msg_namelen);
  return result;
}

ssize_t Host::send(int fd, const void* from, std::size_t size, int flags) noexcept {
  return sendto(fd, from, size, flags, nullptr, 0);
}

ssize_t Host::sendto(int fd, const void* from, std::size_t size, int flags, const sockaddr* address,
                     socklen_t address_size) noexcept {
  const iovec buffer{.iov_base = const_cast<void*>(from), .iov_len = size};
  Message message{.buffers = {&buffer, 1}, .flags = flags};
  return ::tambour::sim::send(*machine_, SystemCall::send, fd, message, address, address_size);
}

ssize_t Host::sendmsg(int fd, const msghdr* header, int flags) noexcept {
  const auto count = std::int64_t(header->msg_iovlen);
  if (bad_vector(header->msg_iov, count))
    return machine_->call(SystemCall::send, fd, [] { return -EMSGSIZE; });
  if (header->msg_controllen != 0)
    return machine_->call(SystemCall::send, fd, [] { return -EOPNOTSUPP; });
  Message message{.buffers = {header->msg_iov, std::size_t(count)}, .flags = flags};
  return ::tambour::sim::send(*machine_, SystemCall::send, fd, message,
                              static_cast<const sockaddr*>(header->msg_name), header->msg_namelen);
}

int Host::recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept {
  unsigned done = 0;
  while (done < count) {
    const ssize_t result = recvmsg(fd, &messages[done].msg_hdr, flags);
    if (result < 0) break;
    messages[done++].msg_len = unsigned(result);
  }
  if (done == 0) return count == 0 ? 0 : -1;
  // recvmmsg(2): an error after the first message is reported by the next call.
  if (done < count && errno != EAGAIN) machine_->file(fd)->as_socket()->leave_error(errno);
  return int(done);
}

int Host::sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) noexcept {
  unsigned done = 0;
  while (done < count) {
    const ssize_t result = sendmsg(fd, &messages[done].msg_hdr, flags);
    if (result < 0) break;
    messages[done++].msg_len = unsigned(result);
  }
  return done == 0 && count > 0 ? -1 : int(done);
}

}  // namespace tambour::sim
