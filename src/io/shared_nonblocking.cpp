// A process-wide table counts the streams of each open file description. The last one restores
// blocking mode.
#include "io/shared_nonblocking.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <compare>
#include <cstddef>
#include <map>
#include <mutex>
#include <new>
#include <optional>

namespace tambour::detail::io {
namespace {

/// Identifies an open file description. fstat(2) identifies only its file. The access mode
/// distinguishes the two ends of a pipe, which are one file; the number of the terminal
/// distinguishes masters of pseudoterminals, which are all the file /dev/ptmx.
struct Key {
  dev_t device;
  ino_t inode;
  int access_mode;
  int terminal;
  auto operator<=>(const Key&) const = default;
};

std::optional<Key> key_of(int fd, int flags) noexcept {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return std::nullopt;
  int terminal = -1;
  if (S_ISCHR(status.st_mode) && ::ioctl(fd, TIOCGPTN, &terminal) != 0) terminal = -1;
  return Key{.device = status.st_dev,
             .inode = status.st_ino,
             .access_mode = flags & O_ACCMODE,
             .terminal = terminal};
}

/// The number of streams that use each open file description on which a stream has set O_NONBLOCK.
struct Table {
  std::mutex mutex;
  std::map<Key, std::size_t> streams;
};

/// Never destroyed, because streams may be destroyed after static objects. fork(2) waits for the
/// mutex, so that it is not locked in the child.
Table& table() noexcept {
  alignas(Table) static std::byte place[sizeof(Table)];
  static Table* const created = [] {
    auto* new_created = new (place) Table;
    ::pthread_atfork([] { table().mutex.lock(); }, [] { table().mutex.unlock(); },
                     [] { table().mutex.unlock(); });
    return new_created;
  }();
  return *created;
}

}  // namespace

bool share_nonblocking(int fd) noexcept {
  Table& shared = table();
  const std::lock_guard lock(shared.mutex);
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return false;
  const bool was_set = (flags & O_NONBLOCK) != 0;
  if (was_set && shared.streams.empty()) return false;
  const auto key = key_of(fd, flags);
  if (was_set && (!key || !shared.streams.contains(*key))) return false;
  if (!was_set && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return false;
  if (!key) return false;
  try {
    ++shared.streams[*key];
    return true;
  } catch (const std::bad_alloc&) {
    return false;  // The flag stays set.
  }
}

void restore_blocking(int fd) noexcept {
  Table& shared = table();
  const std::lock_guard lock(shared.mutex);
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return;
  const auto key = key_of(fd, flags);
  const auto found = key ? shared.streams.find(*key) : shared.streams.end();
  if (found == shared.streams.end() || --found->second > 0) return;
  shared.streams.erase(found);
  ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

}  // namespace tambour::detail::io
