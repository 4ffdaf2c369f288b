// UnixName: finds out whether another server uses a path, replaces a stale socket file, and removes
// only its own.
#include "server/unix_name.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>

#include "base/clock.h"
#include "base/failure.h"
#include "base/system_call.h"

namespace tambour::detail::server {
namespace {

using base::Call;

/// The time that a server that starts waits for others that start or stop on the same path. Each of
/// them makes about ten system calls while it holds the lock.
constexpr std::chrono::seconds lock_patience{1};

/// Calls connect(2) for `at`. Returns 0 or an errno value.
int probe(backend::System& system, const Endpoint& at) noexcept {
  const int fd = system.socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  int error;
  do {
    error = system.connect(fd, at.data(), at.size()) == 0 ? 0 : errno;
  } while (error == EINTR);
  system.close(fd);
  return error;
}

/// Returns whether the socket is in use: it accepts connections, its backlog is full, it is of
/// another type, or connecting is not permitted.
bool is_in_use(int answer) noexcept {
  return answer == 0 || answer == EAGAIN || answer == EPROTOTYPE || answer == EACCES;
}

/// An exclusive flock(2) on a file that exists only while it is locked, so that a lock file of
/// another user never blocks a server. A file that is not empty belongs to another program and is
/// kept.
class NameLock {
 public:
  NameLock() = default;
  NameLock(const NameLock&) = delete;
  NameLock& operator=(const NameLock&) = delete;
  ~NameLock() {
    if (!fd_.is_open()) return;
    if (is_empty_) ::unlinkat(directory_, name_, 0);
    // Closing is not enough: if another thread has forked, the child has a copy until it calls
    // execve(2).
    ::flock(fd_.get(), LOCK_UN);
  }

  /// Both arguments must outlive this object. Fails with EADDRINUSE if another process has kept the
  /// lock for lock_patience, or if the name is not a regular file.
  Result<> take(int directory, const char* name) noexcept {
    const auto give_up = base::saturating_add(std::chrono::steady_clock::now(), lock_patience);
    do {
      const auto taken = try_take(directory, name);
      if (!taken || *taken) return taken ? Result<>() : std::unexpected(taken.error());
      constexpr timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
      base::system_call(Call::nanosleep, ::nanosleep, &pause, nullptr);
    } while (std::chrono::steady_clock::now() < give_up);
    return base::failure(EADDRINUSE);
  }

  /// Like take(), but returns false at once if another process holds the lock.
  Result<bool> try_take(int directory, const char* name) noexcept {
    directory_ = directory;
    name_ = name;
    constexpr int flags = O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    UniqueFd fd(base::uninterrupted(Call::file_open, ::openat, directory_, name_, flags, 0644));
    if (!fd.is_open()) return base::failure(errno);
    struct stat locked{};
    if (base::system_call(Call::fstatat, ::fstat, fd.get(), &locked) != 0)
      return base::failure(errno);
    if (!S_ISREG(locked.st_mode)) return base::failure(EADDRINUSE);
    if (base::uninterrupted(Call::flock, ::flock, fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return false;
      return base::failure(errno);
    }
    // The process that held the lock may have removed the file before it released the lock.
    struct stat present{};
    if (base::system_call(Call::fstatat, ::fstatat, directory_, name_, &present,
                          AT_SYMLINK_NOFOLLOW) != 0)
      return errno == ENOENT ? Result<bool>(false) : base::failure(errno);
    if (present.st_dev != locked.st_dev || present.st_ino != locked.st_ino) return false;
    is_empty_ = locked.st_size == 0;
    fd_ = std::move(fd);
    return true;
  }

 private:
  int directory_ = -1;
  const char* name_ = nullptr;
  bool is_empty_ = false;
  UniqueFd fd_;
};

}  // namespace

bool UnixName::is_path(const Endpoint& at) {
  if (at.is_ip()) return false;
  const std::string name = at.address();
  return !name.empty() && name.front() != '@';
}

bool UnixName::is_simulated() const noexcept { return system_ != &backend::kernel(); }

Result<> UnixName::open_directory(const std::string& path) {
  if (is_simulated()) {
    name_ = path;
    return {};
  }
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  name_ = slash == std::string::npos ? path : path.substr(slash + 1);
  lock_name_ = name_ + ".tambour-lock";
  constexpr int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  directory_.reset(base::uninterrupted(Call::file_open, ::open, directory.c_str(), flags));
  return directory_.is_open() ? Result<>() : base::failure(errno);
}

Result<UnixName> UnixName::listen(backend::System& system, int fd, const Endpoint& at, int backlog,
                                  std::optional<mode_t> mode) {
  UnixName name;
  name.system_ = &system;
  if (auto opened = name.open_directory(at.address()); !opened)
    return std::unexpected(opened.error());
  if (auto claimed = name.claim(fd, at, backlog, mode); !claimed)
    return std::unexpected(claimed.error());
  return name;
}

Result<> UnixName::claim(int fd, const Endpoint& at, int backlog,
                         std::optional<mode_t> mode) noexcept {
  NameLock lock;
  if (!is_simulated()) {
    if (auto taken = lock.take(directory_.get(), lock_name_.c_str()); !taken) return taken;
  }
  Result<> outcome = bind(fd, at, mode);
  if (outcome && system_->listen(fd, backlog) != 0) outcome = base::failure(errno);
  if (!outcome) unlink_created();
  return outcome;
}

Result<> UnixName::bind(int fd, const Endpoint& at, std::optional<mode_t> mode) noexcept {
  const bool sets_mode = mode && !is_simulated();
  // Linux creates the socket file with the mode of the socket, minus the umask: at no time is the
  // file more accessible than requested.
  if (sets_mode && base::system_call(Call::chmod, ::fchmod, fd, *mode) != 0)
    return base::failure(errno);
  int bound = system_->bind(fd, at.data(), at.size());
  if (bound != 0 && errno == EADDRINUSE) {
    if (auto removed = remove_stale(at); !removed) return removed;
    bound = system_->bind(fd, at.data(), at.size());
  }
  if (bound != 0) return base::failure(errno);
  mode_t given = 0;
  const auto created = find_socket(&given);
  if (!created) return std::unexpected(created.error());
  created_ = *created;
  // Adds the permissions that the umask removed. No process can connect before listen(2).
  if (sets_mode && given != *mode &&
      base::system_call(Call::chmod, ::fchmodat, directory_.get(), name_.c_str(), *mode,
                        AT_SYMLINK_NOFOLLOW) != 0)
    return base::failure(errno);
  return {};
}

Result<UnixName::Identity> UnixName::find_socket(mode_t* mode) const noexcept {
  struct stat status{};
  const int found = is_simulated() ? system_->lstat(name_.c_str(), &status)
                                   : base::system_call(Call::fstatat, ::fstatat, directory_.get(),
                                                       name_.c_str(), &status, AT_SYMLINK_NOFOLLOW);
  if (found != 0) return base::failure(errno);
  if (!S_ISSOCK(status.st_mode)) return base::failure(EADDRINUSE);
  if (mode != nullptr) *mode = status.st_mode & 07777;
  return Identity{.device = status.st_dev, .inode = status.st_ino};
}

Result<> UnixName::remove_stale(const Endpoint& at) const noexcept {
  const auto before = find_socket();
  // Removed after bind(2) failed, here and below: a server that stops may do so without the lock.
  const auto absent = system_error(ENOENT);
  if (!before) return before.error() == absent ? Result<>() : std::unexpected(before.error());
  const int answer = probe(*system_, at);
  if (answer == ENOENT) return {};
  if (answer != ECONNREFUSED) return base::failure(is_in_use(answer) ? EADDRINUSE : answer);
  const auto after = find_socket();
  if (!after) return after.error() == absent ? Result<>() : std::unexpected(after.error());
  // Otherwise a program that does not take the lock has replaced it in the meantime.
  if (*after != *before) return base::failure(EADDRINUSE);
  return unlink() == 0 ? Result<>() : base::failure(errno);
}

int UnixName::unlink() const noexcept {
  return is_simulated() ? system_->unlink(name_.c_str())
                        : ::unlinkat(directory_.get(), name_.c_str(), 0);
}

void UnixName::unlink_created() noexcept {
  if (!created_) return;
  if (const auto found = find_socket(); found && *found == *created_) unlink();
  created_.reset();
}

void UnixName::remove() noexcept {
  if (!created_) return;
  // The path belongs to the parent, which may still listen.
  if (!process_.is_current()) return leave();
  {
    NameLock lock;
    // If the lock cannot be taken, for example because another process holds it, the path is
    // removed without it: this server still listens, so no other server replaces the path.
    if (!is_simulated()) static_cast<void>(lock.try_take(directory_.get(), lock_name_.c_str()));
    unlink_created();
  }
  directory_.reset();
}

void UnixName::leave() noexcept {
  created_.reset();
  directory_.reset();
}

}  // namespace tambour::detail::server
