// The inside of a SimulatedHost: its descriptors, its names and ports, the faults it was given.
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

#include <tambour/simulated_host.h>

#include "backend/sim/address.h"
#include "backend/sim/file.h"
#include "backend/sim/world.h"
#include "backend/system.h"

namespace tambour::backend::sim {

class Machine {
 public:
  Machine(World& in, std::string_view called, unsigned numbered)
      : world(in), name(called), number(numbered) {}

  World& world;
  const std::string name;
  const unsigned number;  ///< From 1.
  std::size_t descriptors_max = 1024;
  unsigned loops_made = 0;
  std::unique_ptr<System> system;  ///< The host's functions, for what its loops do themselves.

  // Descriptors.
  [[nodiscard]] FilePointer file(int fd) const noexcept {
    const auto index = std::size_t(fd - SimulatedHost::first_descriptor);
    return fd >= SimulatedHost::first_descriptor && index < files_.size() ? files_[index] : nullptr;
  }
  [[nodiscard]] std::size_t descriptors() const noexcept { return descriptors_; }
  /// 0, or EMFILE negated where there is no room for so many more.
  [[nodiscard]] int room_for(std::size_t count) const noexcept {
    return descriptors_ + count <= descriptors_max ? 0 : -EMFILE;
  }
  /// The lowest free number, for which there is room.
  int install(FilePointer opened);
  /// Closes what is there.
  int install_at(int fd, FilePointer opened);
  int close(int fd);
  void close_all();

  /// Makes a system call: looks for a fault, runs `body`, which returns a result or an errno value
  /// negated, traces, and returns as the system call does.
  template <class Body>
  std::int64_t call(SystemCall what, int fd, Body&& body) {
    std::int64_t outcome = fault(what, fd);
    if (outcome == 0) outcome = body();
    return finish(what, fd, outcome);
  }
  /// The same for calls on an open file: `body(file)`.
  template <class Body>
  std::int64_t call_on_file(SystemCall what, int fd, Body&& body) {
    return call(what, fd, [&]() -> std::int64_t {
      const FilePointer opened = file(fd);
      return opened == nullptr ? -EBADF : body(*opened);
    });
  }
  /// On a socket: `body(socket)`.
  template <class Body>
  std::int64_t call_on_socket(SystemCall what, int fd, Body&& body) {
    return call_on_file(what, fd, [&](File& opened) -> std::int64_t {
      Socket* socket = opened.as_socket();
      return socket == nullptr ? -ENOTSOCK : body(*socket);
    });
  }
  void fail_next(SystemCall what, int error, unsigned times, unsigned skipped) noexcept;

  /// Regular files by name. Who has one open keeps its bytes.
  std::map<std::string, std::shared_ptr<std::string>> disk;

  // Names.
  /// 0, or an errno value negated. Chooses a port where there is none in `address`.
  int bind(Socket& socket, Address& address);
  void unbind(Socket& socket, const Address& address) noexcept;
  int unlink(const std::string& path) noexcept;
  int lstat(const std::string& path, struct stat& into) const noexcept;
  /// Who is bound to `address`; null where nobody is.
  [[nodiscard]] Socket* find(int type, const Address& address) const noexcept;
  /// For AF_UNIX: a name in the file system is there, even if nobody is bound to it any more.
  [[nodiscard]] bool path_exists(const std::string& path) const {
    return paths_.contains(unix_name(0, path));
  }
  /// For AF_UNIX, where nobody answers to the name: why, as an errno value negated.
  [[nodiscard]] int nobody_at(int type, const std::string& path) const;
  /// The machine that has this address; null where none does.
  [[nodiscard]] Machine* route(const Address& to) const noexcept;
  /// The address that packets to `to` come from.
  [[nodiscard]] Address source_for(const Address& to) const noexcept;

 private:
  struct Fault {
    int error = 0;
    unsigned times = 0;
    unsigned skipped = 0;
  };

  int fault(SystemCall what, int fd);
  int chance_of_fault(SystemCall what, int fd);
  std::int64_t finish(SystemCall what, int fd, std::int64_t outcome);
  [[nodiscard]] bool is_own(const Address& address) const noexcept;
  [[nodiscard]] bool is_taken(int type, const Address& address) const noexcept;

  std::vector<FilePointer> files_;
  std::size_t descriptors_ = 0;
  std::array<Fault, 32> faults_{};
  std::map<std::pair<int, std::uint16_t>, std::vector<Socket*>> ports_;  ///< By type and port.
  /// A path is there for one socket of any type, and stays; an abstract name for one of each type.
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

}  // namespace tambour::backend::sim
