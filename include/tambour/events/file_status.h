// Changes of a path's status, as reported by stat(2): libev's ev_stat.
#pragma once

#include <sys/stat.h>

#include <source_location>
#include <string>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/operation.h>
#include <tambour/detail/owned_pointer.h>

namespace tambour::detail::events {
class WatchedPath;
}  // namespace tambour::detail::events

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// The result of stat(2) for a path.
struct FileState {
  bool exists = false;
  Error error;           ///< If it does not exist, the reason: ENOENT, EACCES, ENOTDIR, ...
  struct ::stat status;  ///< All zero if it does not exist.

  FileState() noexcept : status{} {}

  /// Returns true if both describe the same status. The access time is ignored, and so is the
  /// reason why a path does not exist.
  [[nodiscard]] bool is_same_as(const FileState& other) const noexcept;
};

/// How a FileStatus finds changes.
struct FileStatusOptions {
  /// The polling interval for paths without kernel notification; at least 0.1 s. Zero or less means
  /// the default, which is an odd number so that many programs do not poll in step.
  Duration interval = Duration::zero();

  /// Always polls, for changes that inotify(7) does not report (see FileStatus).
  bool always_poll = false;

  static constexpr Duration interval_default = std::chrono::milliseconds(5007);
  static constexpr Duration interval_min = std::chrono::milliseconds(100);
};

/// Invokes its callback when a path was created, was removed, refers to another file, or when the
/// size, times, owner, mode or link count of its file have changed. Follows symbolic links. A
/// change that leaves the result of stat(2) the same, down to the nanosecond, is not reported.
/// Several changes in one iteration are reported as one.
///
/// Notification: if possible, changes are detected by inotify(7): on the file, on the link if the
/// path is a symbolic link, and, while the path is missing, on the nearest existing parent
/// directory. Otherwise the path is polled: on file systems that other machines or programs change
/// (NFS, FUSE, 9P) or that change by themselves (/proc, /sys), if the link points to another link,
/// and if inotify is out of watches (EMFILE, ENOSPC) or not permitted (EACCES). inotify never
/// reports that parent directories further up are renamed, that links further up change, or writes
/// through mmap(2) before they are synchronized; `always_poll` detects these.
///
/// Blocking: stat(2) blocks. If a network file system hangs, so does the loop.
/// Ownership: owns its callback.
/// Lifetime: may be moved or destroyed at any time, including inside its own callback; the callback
/// is not invoked afterwards. It may outlive its loop.
/// Thread: must be used on the loop's thread.
/// Loop: a started FileStatus keeps the loop running.
class FileStatus final {
 public:
  /// The callback, which gets the status at the last report and the present one.
  using Function = Callback<void(const FileState& before, const FileState& now)>;

  /// The object is not started, and the path is not examined yet. A relative path is resolved
  /// against the working directory at each stat(2). Throws std::bad_alloc.
  FileStatus(EventLoop& loop, std::string path, Function function,
             const FileStatusOptions& options = {},
             std::source_location created_at = std::source_location::current());
  FileStatus(FileStatus&& other) noexcept;
  FileStatus& operator=(FileStatus&& other) noexcept;
  ~FileStatus();

  /// Reads the current status and reports later changes. Fails with ENOMEM, and with EINVAL if the
  /// path contains a null byte. No effect if started.
  [[nodiscard]] Result<> start() noexcept;

  /// Stops watching. A callback that was due is not invoked.
  void stop() noexcept;
  [[nodiscard]] bool is_started() const noexcept;

  /// Updates current() with stat(2) now, without invoking the callback.
  void update() noexcept;

  /// The path as given to the constructor.
  [[nodiscard]] const std::string& path() const noexcept;
  /// The status at the last report, update() or start().
  [[nodiscard]] const FileState& current() const noexcept;

  /// True if the path is polled, for any reason.
  [[nodiscard]] bool is_polling() const noexcept;

  /// The priority of the callback, see set_priority() of FdWatcher.
  [[nodiscard]] int priority() const noexcept;
  void set_priority(int priority) noexcept;

  /// Replaces the callback. May be called inside the callback.
  void set_function(Function function) noexcept;

 private:
  detail::OwnedPointer<detail::events::WatchedPath> watched_;  ///< Null if moved from.
};

}  // namespace tambour

#pragma GCC visibility pop
