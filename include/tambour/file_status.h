// Changes of a path, as stat(2) sees it: libev's ev_stat.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <source_location>
#include <string>

#include <tambour/callback.h>
#include <tambour/clock.h>
#include <tambour/operation.h>
#include <tambour/result.h>

namespace tambour {

class EventLoop;
namespace loop {
class WatchedPath;
}

/// What stat(2) said of a path.
struct FileState {
  bool exists = false;
  Error error;           ///< Why not: ENOENT, EACCES, ENOTDIR ...
  struct ::stat status;  ///< All zero where it does not exist.

  FileState() noexcept : status{} {}

  /// Whether both say the same. The time of the last access does not count, nor does the reason why
  /// a path does not exist.
  [[nodiscard]] bool same_as(const FileState& other) const noexcept;
};

struct FileStatusOptions {
  /// How often to look at a path where the kernel does not tell; at least 0.1 s. The default, an
  /// odd number so as not to fall in step with everybody else's, is for anything below or at zero.
  Duration interval = Duration::zero();

  /// Looks at the interval in any case: for what inotify(7) does not see (below).
  bool always_look = false;

  static constexpr Duration interval_default = std::chrono::milliseconds(5007);
  static constexpr Duration interval_min = std::chrono::milliseconds(100);
};

/// Calls back when a path has come to be, is gone, names another file, or its file's size, times,
/// owner, mode or number of links have changed. Follows symbolic links. Changes that leave stat(2)
/// the same, down to the nanosecond, are none; of several in one turn, the sum is reported.
///
/// The kernel tells (inotify(7)) where it can: of the file, of the link where the path ends in one,
/// and while the path is missing, of the next directory above that is not. Where it cannot, the
/// path is looked at from time to time: on file systems that others change too (NFS, FUSE, 9P) or
/// that change by themselves (/proc, /sys), where the link leads to a further link, and where
/// inotify has no room (EMFILE, ENOSPC) or may not look (EACCES). It never tells of directories
/// further up being renamed, of links further up being changed, nor of writes through mmap(2) until
/// they are synchronized: `always_look` sees those.
///
/// stat(2) is a blocking call. On a network file system that hangs, so does the loop.
///
/// Owns its callback. A started one keeps the loop running. Moves and is destroyed freely, inside
/// its own callback too, and falls silent at once. Belongs to the thread of its loop, which it may
/// outlive, silently.
class FileStatus final {
 public:
  using Function = Callback<void(const FileState& before, const FileState& now)>;

  /// Not started, and nothing looked at. Throws std::bad_alloc. A relative path means what it means
  /// at each look.
  FileStatus(EventLoop& loop, std::string path, Function function,
             const FileStatusOptions& options = {},
             std::source_location created_at = std::source_location::current());
  FileStatus(FileStatus&& other) noexcept;
  FileStatus& operator=(FileStatus&& other) noexcept;
  ~FileStatus();

  /// Looks, and reports what changes from then on. ENOMEM. No effect on a started one.
  Result<> start() noexcept;

  /// A callback that was due does not come.
  void stop() noexcept;
  [[nodiscard]] bool started() const noexcept;

  /// Looks now, and makes current() the answer, without a callback.
  void look() noexcept;

  [[nodiscard]] const std::string& path() const noexcept;
  [[nodiscard]] const FileState& current() const noexcept;

  /// True where the path is looked at from time to time, for whatever reason.
  [[nodiscard]] bool polls() const noexcept;

  [[nodiscard]] int priority() const noexcept;
  void set_priority(int priority) noexcept;

  /// Replaces what is called; allowed inside the callback.
  void set_function(Function function) noexcept;

 private:
  std::unique_ptr<loop::WatchedPath> watched_;  ///< Null where moved from.
};

}  // namespace tambour
