// A path whose status is watched: the inside of a FileStatus, which can move, and this cannot.
#pragma once

#include <source_location>
#include <string>

#include <tambour/file_status.h>
#include <tambour/operation.h>
#include <tambour/timer.h>

#include "loop/file_status_inotify.h"

namespace tambour::loop {

class Core;

/// Something happens to the path: it is queued, and looks when its turn comes. Whatever has
/// happened by then is one change.
class WatchedPath final : public Ready, private Listed<WatchedPath> {
 public:
  WatchedPath(EventLoop& loop, Core& core, std::string path, FileStatus::Function function,
              const FileStatusOptions& options, std::source_location created_at);
  WatchedPath(const WatchedPath&) = delete;
  WatchedPath& operator=(const WatchedPath&) = delete;
  ~WatchedPath();

  Result<> start() noexcept;
  void stop() noexcept;
  [[nodiscard]] bool started() const noexcept { return listed(); }

  /// Looks, and makes what it sees the current state.
  void look() noexcept;
  /// Looks when its turn comes. `anew`: what was watched may not be the right thing any more.
  void look_again(bool anew) noexcept;

  void set_function(FileStatus::Function function) noexcept;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const FileState& current() const noexcept { return current_; }
  [[nodiscard]] bool polls() const noexcept { return timer_.started(); }

 private:
  friend class Inotify;
  friend class Listed<WatchedPath>;  // The loop's list of started paths.

  static void run(Ready& ready);
  [[nodiscard]] FileState see() noexcept;
  [[nodiscard]] FileState see_anew() noexcept;
  [[nodiscard]] bool watch_what_is_there() noexcept;
  [[nodiscard]] bool watch_what_is_above(const FileState& state) noexcept;
  [[nodiscard]] bool missed_a_directory() noexcept;
  void set_polling(bool polling) noexcept;

  Core& core_;
  std::string path_;
  FileStatusOptions options_;
  FileState current_;
  bool anew_ = false;
  WatchedPlace target_;  ///< The file; while it is missing, the next directory above.
  WatchedPlace holder_;  ///< The directory of the path, where that is a symbolic link.
  std::string scratch_;  ///< Room for the names of directories.
  Timer timer_;
  FileStatus::Function function_;
};

}  // namespace tambour::loop
