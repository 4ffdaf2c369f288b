// The implementation of a sim::Host: its descriptors, names and ports, and injected faults.
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/sim/host.h>

#include "backend/system.h"
#include "sim/file.h"
#include "sim/file_tree.h"
#include "sim/sockets/address.h"
#include "sim/world.h"

namespace tambour::sim::detail {

class Machine {
 public:
  Machine(World& in, std::string_view called, unsigned numbered)
      : world(in), name(called), number(numbered), tree(in) {}

  World& world;
  const std::string name;
  const unsigned number;  ///< Counts from 1.
  std::size_t descriptors_max = 1024;
  unsigned loops_made = 0;
  std::unique_ptr<backend::System> system;  ///< The host's system calls, for use by its loops.

  // Descriptors.
  [[nodiscard]] FilePointer file(int fd) const noexcept {
    const auto index = std::size_t(fd - sim::Host::first_descriptor);
    return fd >= sim::Host::first_descriptor && index < files_.size() ? files_[index] : nullptr;
  }
  [[nodiscard]] std::size_t descriptors() const noexcept { return descriptors_; }
  /// Returns 0, or -EMFILE if `count` more descriptors would exceed the limit.
  [[nodiscard]] int room_for(std::size_t count) const noexcept {
    return descriptors_ + count <= descriptors_max ? 0 : -EMFILE;
  }
  /// Returns the lowest free descriptor. The limit must have been checked with room_for().
  int install(FilePointer opened);
  /// Closes `fd` first if it is open.
  int install_at(int fd, FilePointer opened);
  int close(int fd);
  void close_all();

  /// Performs a system call: injects a fault or runs `body`, which returns a result or a negated
  /// errno value, then writes the trace and returns as the system call does.
  template <class Body>
  std::int64_t call(sim::SystemCall system_call, int fd, Body&& body) {
    std::int64_t outcome = fault(system_call, fd);
    if (outcome == 0) outcome = body();
    return finish(system_call, fd, outcome);
  }
  /// Like call(), for calls on an open file: `body(file)`.
  template <class Body>
  std::int64_t call_on_file(sim::SystemCall system_call, int fd, Body&& body) {
    return call(system_call, fd, [&]() -> std::int64_t {
      const FilePointer opened = file(fd);
      return opened == nullptr ? -EBADF : body(*opened);
    });
  }
  /// Like call_on_file(), for sockets: `body(socket)`.
  template <class Body>
  std::int64_t call_on_socket(sim::SystemCall system_call, int fd, Body&& body) {
    return call_on_file(system_call, fd, [&](File& opened) -> std::int64_t {
      Socket* socket = opened.as_socket();
      return socket == nullptr ? -ENOTSOCK : body(*socket);
    });
  }
  void fail_next(sim::SystemCall system_call, int error, unsigned times, unsigned skipped) noexcept;

  /// An open file shares ownership of its node.
  FileTree tree;

  // Names.
  /// Returns 0 or a negated errno value. Chooses a port if `address` has none.
  int bind(Socket& socket, Address& address);
  void unbind(Socket& socket, const Address& address) noexcept;
  int unlink(const std::string& path);
  int lstat(const std::string& path, struct stat& into) const;
  /// Returns the socket bound to `address`, or null.
  [[nodiscard]] Socket* find(int type, const Address& address) const noexcept;
  /// AF_UNIX: returns true if the name exists in the file system, even without a bound socket.
  [[nodiscard]] bool path_exists(const std::string& path) const {
    return paths_.contains(unix_name(0, path));
  }
  /// AF_UNIX: returns the negated errno value of a call whose target name has no matching socket.
  [[nodiscard]] int error_for_missing(int type, const std::string& path) const;
  /// Returns the machine that has this address, or null.
  [[nodiscard]] Machine* route(const Address& to) const noexcept;
  /// The source address of packets to `to`.
  [[nodiscard]] Address source_for(const Address& to) const noexcept;

 private:
  struct Fault {
    int error = 0;
    unsigned times = 0;
    unsigned skipped = 0;
  };

  int fault(sim::SystemCall system_call, int fd);
  int chance_of_fault(sim::SystemCall system_call, int fd);
  std::int64_t finish(sim::SystemCall system_call, int fd, std::int64_t outcome);
  [[nodiscard]] bool is_own(const Address& address) const noexcept;
  [[nodiscard]] bool is_taken(int type, const Address& address) const noexcept;

  std::vector<FilePointer> files_;
  std::size_t descriptors_ = 0;
  std::array<Fault, 64> faults_{};
  std::map<std::pair<int, std::uint16_t>, std::vector<Socket*>> ports_;  ///< By type and port.
  /// A path is unique among sockets of all types and outlives its socket; an abstract name is
  /// unique per type.
  using UnixName = std::pair<int, std::string>;
  static UnixName unix_name(int type, const std::string& path) {
    return {path.starts_with('\0') ? type : 0, path};
  }
  struct BoundName {
    Socket* socket;
    ino_t inode;
  };
  std::map<UnixName, BoundName> paths_;
  ino_t last_inode_ = 0;
};

}  // namespace tambour::sim::detail
