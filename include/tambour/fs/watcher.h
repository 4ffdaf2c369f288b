// Changes of directories: inotify(7).
//
//   auto watcher = or_throw(fs::Watcher::create(loop));
//   const auto logs = or_throw(watcher.watch("/var/log"));
//   while (auto event = co_await watcher.next()) use(*event);
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <tambour/base/result.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/task/select.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

namespace fs {

/// What a Watcher reports: inotify(7).
enum class Change : std::uint8_t {
  created,    ///< A name was created: a file, which may still be empty, a directory or a link.
  removed,    ///< A name was removed.
  renamed,    ///< `old_name` in the directory `old_directory` has become `name` in `directory`.
  moved_in,   ///< `name` was moved here from a directory that is not watched. No `closed` follows.
  moved_out,  ///< `name` was moved to a directory that is not watched.
  modified,   ///< The contents of a file were written or truncated; also in the middle of it.
  closed,     ///< A file that was open for writing was closed: usually the time to read it.
  attributes_changed,  ///< Permissions, owner, times or the number of links have changed.
  /// The watched directory was removed, renamed or unmounted; it is not watched any more. `name` is
  /// empty. While a process has the removed directory, or a file that was removed from it, open,
  /// the kernel keeps the directory, and reports the removal only when the last of them is closed.
  directory_removed,
  /// Events were lost, because the task did not read them fast enough (sysctl
  /// fs.inotify.max_queued_events) or memory was short: read all watched directories again.
  overflow,
};

/// A watched directory of a Watcher. Never reused by it.
using WatchId = std::uint64_t;

/// A change in a watched directory.
struct ChangeEvent {
  Change change = Change::overflow;
  WatchId directory = 0;      ///< 0 for `overflow`.
  std::string name{};         ///< Without the path of the directory.
  WatchId old_directory = 0;  ///< Only for `renamed`, as `old_name`.
  std::string old_name{};
  bool is_directory = false;  ///< The name is that of a directory.
};

/// Watches directories, without the contents of their subdirectories. Events contain the name
/// through which the change was made; changes on other machines (NFS) are not reported.
///
/// The two halves of a rename are reported as one event if both directories are watched. The kernel
/// does not write them atomically, so a name that has been moved away is reported up to 20 ms
/// later, and later events wait for it.
///
/// Memory: the library reads from the kernel only when it has reported all events, or waits for the
/// second half of a rename, and then stores at most 1,024 events and those of one read of 16 KiB.
/// All others wait in the kernel, up to its limit, after which it reports `overflow`.
/// Ownership: owns a file descriptor, of which a user may have fs.inotify.max_user_instances (128).
/// Thread: one task at a time may await next(). Simulation: create() fails with ENOTSUP.
class Watcher {
 public:
  /// A closed watcher.
  Watcher() noexcept;
  Watcher(Watcher&& other) noexcept;
  Watcher& operator=(Watcher&& other) noexcept;
  ~Watcher();

  /// Fails with EMFILE if the user has too many watchers, ENFILE or ENOMEM; with ENOTSUP in a
  /// simulation. Throws std::bad_alloc.
  [[nodiscard]] static Result<Watcher> create(EventLoop& loop);

  /// Starts watching a directory. Returns the same id if it is watched already. Fails with ENOTDIR,
  /// ENOENT, EACCES, EINVAL if the path contains a null byte, and with ENOSPC if the user has too
  /// many watches (fs.inotify.max_user_watches). Blocks while the kernel looks up the path. Throws
  /// std::bad_alloc.
  [[nodiscard]] Result<WatchId> watch(const std::string& path);
  /// Stops watching. Events that the kernel has stored are dropped. No effect if it is not watched.
  void unwatch(WatchId directory) noexcept;

  /// Waits for the next event. Fails with ECANCELED if the task is asked to stop, without losing an
  /// event, and with EBADF if the watcher is closed. Destroying the task loses no event either.
  /// Moving, closing or destroying the watcher meanwhile is not allowed: end the task first.
  /// Cancel safe: may be an argument of select().
  [[nodiscard]] CancelSafeTask<Result<ChangeEvent>> next();

  /// False after close() and a move, and for a default-constructed watcher.
  [[nodiscard]] bool is_open() const noexcept { return state_ != nullptr; }
  /// Ends all watches. No task may wait in next().
  void close() noexcept;
  /// How many times the kernel has lost events.
  [[nodiscard]] std::uint64_t overflows() const noexcept;

 private:
  struct [[gnu::visibility("hidden")]] State;
  [[nodiscard]] Task<Result<ChangeEvent>> read_next();
  detail::OwnedPointer<State> state_;
};

}  // namespace fs
}  // namespace tambour

#pragma GCC visibility pop
