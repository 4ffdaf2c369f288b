// The implementation of FileStatus: a watched path, which unlike FileStatus cannot be moved.
#pragma once

#include <source_location>
#include <string>

#include <tambour/detail/handle.h>
#include <tambour/events/file_status.h>
#include <tambour/loop/timer.h>

#include "events/file_status_inotify.h"

namespace tambour::detail::events {

/// An event on the path queues it; it calls stat(2) when dispatched. All events until then count as
/// one change.
class WatchedPath final : public detail::Handle<WatchedPath, FileStatus::Function> {
 public:
  WatchedPath(EventLoop& loop, loop::Core& core, std::string path, FileStatus::Function function,
              const FileStatusOptions& options, std::source_location created_at);
  WatchedPath(const WatchedPath&) = delete;
  WatchedPath& operator=(const WatchedPath&) = delete;
  ~WatchedPath();

  Result<> start() noexcept;
  void stop() noexcept;
  [[nodiscard]] bool is_started() const noexcept { return listed(); }

  /// Reads the state of the path and makes it the current one.
  void update() noexcept;
  /// Queues the path. `must_renew`: the path may lead to another file, so its watches are renewed.
  void queue_check(bool must_renew) noexcept;

  void set_function(FileStatus::Function function) noexcept;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const FileState& current() const noexcept { return current_; }
  [[nodiscard]] bool is_polling() const noexcept { return timer_.is_started(); }

 private:
  friend class Inotify;

  static void run(detail::ReadyNode& ready);
  [[nodiscard]] FileState read_state() noexcept;
  [[nodiscard]] FileState renew_watches() noexcept;
  [[nodiscard]] bool watch_existing() noexcept;
  [[nodiscard]] bool watch_ancestor(const FileState& state) noexcept;
  [[nodiscard]] bool missed_a_directory() noexcept;
  void set_polling(bool polling) noexcept;

  std::string path_;
  FileStatusOptions options_;
  FileState current_;
  bool must_renew_ = false;
  WatchedPlace target_;  ///< The file; while it is missing, its nearest existing parent directory.
  WatchedPlace holder_;  ///< If the path is a symbolic link, the directory that contains the link.
  std::string scratch_;  ///< A buffer for directory names.
  Timer timer_;
};

}  // namespace tambour::detail::events
