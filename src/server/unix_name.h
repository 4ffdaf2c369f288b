// The path of a Unix listener: claimed when a server starts, removed when it stops.
//
// A path that exists may be a stale socket file of a killed server, the socket of another server,
// or a regular file. UnixName replaces a path only if it is a socket that refuses connections, and
// removes a path only if it is still the socket that it created. Servers that start on one path at
// the same time exclude each other with a lock file beside it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/net/endpoint.h>

#include "backend/system.h"
#include "base/process_number.h"

namespace tambour::detail::server {

class UnixName {
 public:
  /// Owns no path; the destructor removes nothing.
  UnixName() = default;
  UnixName(UnixName&& other) noexcept
      : system_(other.system_),
        directory_(std::move(other.directory_)),
        name_(std::move(other.name_)),
        lock_name_(std::move(other.lock_name_)),
        created_(std::exchange(other.created_, std::nullopt)),
        process_(other.process_) {}
  UnixName& operator=(UnixName&&) = delete;
  /// Calls remove().
  ~UnixName() { remove(); }

  /// Returns whether `at` is a path, and not an abstract name or an IP address.
  static bool is_path(const Endpoint& at);

  /// Binds the stream socket `fd` to the path `at` and listens: bind(2), listen(2). `mode`: the
  /// permissions of the socket file, which it has from its creation on. Fails with EADDRINUSE if
  /// the path is not a socket, if a listener accepts connections there, or if another server held
  /// the lock for one second; otherwise with the errno value of the system call that failed. After
  /// an error the path is unchanged, except that a stale socket file may have been removed. Throws
  /// std::bad_alloc.
  static Result<UnixName> listen(backend::System& system, int fd, const Endpoint& at, int backlog,
                                 std::optional<mode_t> mode);

  /// Removes the path if it is still the socket that listen() created. Call it before the listener
  /// is closed, so that the inode number is not reused. Does not wait for the lock. Has no effect
  /// in a forked child of the process that called listen(), or if it was called before.
  void remove() noexcept;

  /// Keeps the path, because another process listens there.
  void leave() noexcept;

 private:
  struct Identity {
    dev_t device;
    ino_t inode;
    bool operator==(const Identity&) const = default;
  };

  [[nodiscard]] bool is_simulated() const noexcept;
  Result<> open_directory(const std::string& path);
  /// Returns the identity of the socket at the path. Fails with EADDRINUSE if it is another type of
  /// file.
  [[nodiscard]] Result<Identity> find_socket(mode_t* mode = nullptr) const noexcept;
  /// Removes the path if a socket is there that refuses connections. Otherwise fails with
  /// EADDRINUSE.
  Result<> remove_stale(const Endpoint& at) const noexcept;
  Result<> claim(int fd, const Endpoint& at, int backlog, std::optional<mode_t> mode) noexcept;
  Result<> bind(int fd, const Endpoint& at, std::optional<mode_t> mode) noexcept;
  int unlink() const noexcept;
  void unlink_created() noexcept;

  backend::System* system_ = nullptr;
  UniqueFd directory_;  ///< O_PATH. Not open on a simulated host, which has one directory.
  std::string name_;    ///< Relative to `directory_`.
  std::string lock_name_;
  std::optional<Identity> created_;
  base::OwningProcess process_;
};

}  // namespace tambour::detail::server
