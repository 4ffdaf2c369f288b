// Machine: the table of descriptors of a host, its ports and names, and the faults that the test
// has asked for.
#include "sim/machine.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/libc/glibc_functions.h"

namespace tambour::sim::detail {
namespace {

constexpr std::array<std::string_view, 40> call_names{
    "socket", "socketpair", "pipe",       "eventfd",         "dup",         "close",   "bind",
    "listen", "accept",     "connect",    "shutdown",        "read",        "write",   "recv",
    "send",   "getsockopt", "setsockopt", "getsockname",     "getpeername", "unlink",  "open",
    "pread",  "pwrite",     "fsync",      "fstat",           "ftruncate",   "look_up", "lstat",
    "statx",  "rename",     "mkdir",      "rmdir",           "link",        "symlink", "readlink",
    "chmod",  "utimens",    "fallocate",  "copy_file_range", "getdents"};

bool makes_descriptors(sim::SystemCall system_call) noexcept {
  return system_call <= sim::SystemCall::dup || system_call == sim::SystemCall::accept ||
         system_call == sim::SystemCall::open;
}

bool waits(sim::SystemCall system_call) noexcept {
  return system_call == sim::SystemCall::accept ||
         (system_call >= sim::SystemCall::read && system_call <= sim::SystemCall::send);
}

std::string_view name_of_error(int error) noexcept {
  const char* text = tambour::detail::base::strerrorname_np(error);
  return text != nullptr ? text : "?";
}

}  // namespace

int Machine::install(FilePointer opened) {
  const auto free = std::ranges::find(files_, nullptr);
  const auto index = free - files_.begin();
  opened->add_descriptor();
  if (free == files_.end()) {
    files_.push_back(std::move(opened));
  } else {
    *free = std::move(opened);
  }
  ++descriptors_;
  return sim::Host::first_descriptor + int(index);
}

int Machine::install_at(int fd, FilePointer opened) {
  const auto index = std::size_t(fd - sim::Host::first_descriptor);
  if (index >= files_.size()) files_.resize(index + 1);
  opened->add_descriptor();  // First, because it may be the file that is closed here.
  close(fd);
  files_[index] = std::move(opened);
  ++descriptors_;
  return fd;
}

int Machine::close(int fd) {
  const FilePointer closed = file(fd);
  if (closed == nullptr) return -EBADF;
  files_[std::size_t(fd - sim::Host::first_descriptor)].reset();
  --descriptors_;
  if (closed->drop_descriptor()) closed->close();
  return 0;
}

void Machine::close_all() {
  for (std::size_t i = 0; i < files_.size(); ++i) close(sim::Host::first_descriptor + int(i));
}

void Machine::fail_next(sim::SystemCall system_call, int error, unsigned times,
                        unsigned skipped) noexcept {
  faults_[std::size_t(system_call)] = {.error = error, .times = times, .skipped = skipped};
}

int Machine::fault(sim::SystemCall system_call, int fd) {
  Fault& wanted = faults_[std::size_t(system_call)];
  if (wanted.times != 0) {
    if (wanted.skipped != 0) {
      --wanted.skipped;
    } else {
      --wanted.times;
      return -wanted.error;
    }
  }
  return chance_of_fault(system_call, fd);
}

int Machine::chance_of_fault(sim::SystemCall system_call, int fd) {
  const sim::Options& options = world.options;
  if (makes_descriptors(system_call)) {
    if (world.random.chance(options.no_descriptors))
      return world.random.chance(0.5) ? -EMFILE : -ENFILE;
    if (world.random.chance(options.no_memory)) return -ENOMEM;
  }
  if (system_call == sim::SystemCall::send && world.random.chance(options.no_memory))
    return -ENOBUFS;
  if (waits(system_call) && world.random.chance(options.would_block)) {
    // An edge-triggered watcher needs another event, because the file was ready all along.
    world.schedule_in(world.draw_delay_ns(), [opened = std::weak_ptr(file(fd))] {
      if (const FilePointer later = opened.lock()) later->changed();
    });
    return -EAGAIN;
  }
  return 0;
}

std::int64_t Machine::finish(sim::SystemCall system_call, int fd, std::int64_t outcome) {
  if (world.options.trace) {
    auto line = world.trace_line(name);
    line << call_names[std::size_t(system_call)];
    if (fd >= 0) line << " " << fd;
    line << " = ";
    if (outcome < 0) {
      line << name_of_error(int(-outcome));
    } else {
      line << outcome;
    }
  }
  if (outcome >= 0) return outcome;
  errno = int(-outcome);
  return -1;
}

bool Machine::is_own(const Address& address) const noexcept {
  return address.loopback() || host_number(address) == number;
}

Machine* Machine::route(const Address& to) const noexcept {
  // connect(2) to the wildcard address connects to the local host.
  if (is_own(to) || to.any()) return world.machines[number - 1];
  const unsigned host = host_number(to);
  return host == 0 || host > world.machines.size() ? nullptr : world.machines[host - 1];
}

Address Machine::source_for(const Address& to) const noexcept {
  if (to.loopback() || to.any()) return loopback_address(to.family);
  return host_address(to.family, number);
}

bool Machine::is_taken(int type, const Address& address) const noexcept {
  const auto bound = ports_.find({type, address.port});
  if (bound == ports_.end()) return false;
  return std::ranges::any_of(bound->second, [&](const Socket* other) {
    const Address& theirs = other->local();
    if (theirs.family != address.family) return theirs.any() && address.any();
    return theirs.any() || address.any() || theirs.ip == address.ip;
  });
}

int Machine::bind(Socket& socket, Address& address) {
  if (address.family == AF_UNIX) {
    NodePointer file;
    if (!address.path.starts_with('\0') && tree.find(address.path, false, file) == 0)
      return -EADDRINUSE;
    const auto wanted = unix_name(socket.type(), address.path);
    const BoundName bound{.socket = &socket, .inode = last_inode_ + 1};
    if (!paths_.emplace(wanted, bound).second) return -EADDRINUSE;
    ++last_inode_;
    return 0;
  }
  if (!address.any() && !is_own(address)) return -EADDRNOTAVAIL;
  if (address.port == 0) {
    // ip(7): the default of ip_local_port_range.
    constexpr std::uint16_t first = 32768;
    constexpr std::uint16_t count = 28232;
    const std::uint64_t offset = world.random.below(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      address.port = std::uint16_t(first + (offset + i) % count);
      if (!is_taken(socket.type(), address)) break;
    }
  }
  if (is_taken(socket.type(), address)) return -EADDRINUSE;
  ports_[{socket.type(), address.port}].push_back(&socket);
  return 0;
}

void Machine::unbind(Socket& socket, const Address& address) noexcept {
  if (address.family == AF_UNIX) {
    const auto bound = paths_.find(unix_name(socket.type(), address.path));
    if (bound == paths_.end() || bound->second.socket != &socket) return;
    // The file of a path is kept; an abstract name is removed.
    if (address.path[0] == '\0') {
      paths_.erase(bound);
    } else {
      bound->second.socket = nullptr;
    }
    return;
  }
  const auto bound = ports_.find({socket.type(), address.port});
  if (bound == ports_.end()) return;
  std::erase(bound->second, &socket);
  if (bound->second.empty()) ports_.erase(bound);
}

int Machine::unlink(const std::string& path) {
  return paths_.erase(unix_name(0, path)) == 1 ? 0 : tree.unlink(path);
}

int Machine::lstat(const std::string& path, struct stat& into) const {
  if (const auto bound = paths_.find(unix_name(0, path)); bound != paths_.end()) {
    into = {};
    into.st_mode = S_IFSOCK | 0777;
    into.st_ino = bound->second.inode;
    return 0;
  }
  NodePointer file;
  if (const int error = tree.find(path, false, file)) return error;
  describe(*file, into);
  return 0;
}

int Machine::error_for_missing(int type, const std::string& path) const {
  if (path.starts_with('\0')) return -ECONNREFUSED;
  const auto bound = paths_.find(unix_name(type, path));
  if (bound == paths_.end()) return -ENOENT;
  // unix_find_bsd(): the path belongs to a socket of another type.
  const Socket* const socket = bound->second.socket;
  return socket != nullptr && socket->type() != type ? -EPROTOTYPE : -ECONNREFUSED;
}

Socket* Machine::find(int type, const Address& address) const noexcept {
  if (address.family == AF_UNIX) {
    const auto bound = paths_.find(unix_name(type, address.path));
    if (bound == paths_.end() || bound->second.socket == nullptr) return nullptr;
    return bound->second.socket->type() == type ? bound->second.socket : nullptr;
  }
  const auto bound = ports_.find({type, address.port});
  if (bound == ports_.end()) return nullptr;
  Socket* wildcard = nullptr;
  for (Socket* socket : bound->second) {
    const Address& theirs = socket->local();
    if (theirs.family == address.family && theirs.ip == address.ip) return socket;
    // ipv6(7): a socket on the IPv6 wildcard also receives IPv4. If `address` is the wildcard, any
    // socket on the port matches.
    const bool takes = theirs.family == address.family || theirs.family == AF_INET6;
    if (takes && (theirs.any() || address.any())) wildcard = socket;
  }
  return wildcard;
}

}  // namespace tambour::sim::detail
