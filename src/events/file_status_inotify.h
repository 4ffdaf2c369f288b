// The inotify(7) instance of a loop, shared by its path watchers.
//
// In one instance the kernel has a single watch per inode, regardless of the path. So the places
// with the same inode share a watch, and its event mask only grows while one of them is left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>

#include "loop/service.h"
#include "loop/service_watch.h"

namespace tambour::detail::events {

class WatchedPath;

/// A file or directory that a WatchedPath watches.
struct WatchedPlace {
  explicit WatchedPlace(WatchedPath& owner) noexcept : path(owner) {}
  WatchedPlace(const WatchedPlace&) = delete;
  WatchedPlace& operator=(const WatchedPlace&) = delete;

  [[nodiscard]] bool watched() const noexcept { return link != nullptr; }

  WatchedPath& path;
  /// If the place is a directory: the entry of interest; empty for all. Borrowed.
  std::string_view name;
  int watch = -1;                ///< The kernel's watch descriptor.
  WatchedPlace* next = nullptr;  ///< Next place with the same watch descriptor.
  /// The pointer that points to this place; null while not watched.
  WatchedPlace** link = nullptr;
};

class Inotify final : public loop::Service {
 public:
  explicit Inotify(loop::Core& core) noexcept;

  /// Adds a started path, which receives events until leave().
  void enter(WatchedPath& path) noexcept;
  void leave(WatchedPath& path) noexcept;

  /// Watches the file that `file` refers to now, instead of the former one. Returns 0 or an errno
  /// value; on error the place is not watched.
  int watch_file(WatchedPlace& place, const char* file) noexcept;
  /// Like watch_file(), for the entry `name` of a directory. Returns ENOTDIR if it is not a
  /// directory.
  int watch_entry(WatchedPlace& place, const char* directory, std::string_view name) noexcept;
  void unwatch(WatchedPlace& place) noexcept;

  void disown_if_lost(bool has_all) noexcept override;
  Result<> reopen() noexcept override;
  void close() noexcept override;

 private:
  int open() noexcept;
  int watch(WatchedPlace& place, const char* path, std::uint32_t mask) noexcept;
  void on_readable() noexcept;
  void deliver(int watch, std::uint32_t mask, std::string_view name) noexcept;
  void queue_all_paths() noexcept;
  void drop_watch(int watch) noexcept;

  loop::Core& core_;
  UniqueFd inotify_;
  bool was_disowned_ = false;
  std::unordered_map<int, WatchedPlace*> places_;  ///< By watch descriptor.
  detail::Hlist<WatchedPath> paths_;
  loop::ServiceWatch watch_;
};

}  // namespace tambour::detail::events
