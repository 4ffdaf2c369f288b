// The inotify(7) instance of a loop, which its watchers of paths share.
//
// The kernel knows one watch for an inode in an instance, however many paths lead there: so places
// that are watched share it, and the events asked for only ever grow while one of them is left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include <tambour/result.h>
#include <tambour/unique_fd.h>

#include "loop/service_watch.h"

namespace tambour::loop {

class Core;
class WatchedPath;

/// A file or directory that one path wants to hear of.
struct WatchedPlace {
  explicit WatchedPlace(WatchedPath& owner) noexcept : path(owner) {}
  WatchedPlace(const WatchedPlace&) = delete;
  WatchedPlace& operator=(const WatchedPlace&) = delete;

  [[nodiscard]] bool watched() const noexcept { return link != nullptr; }

  WatchedPath& path;
  std::string_view name;          ///< Of a directory: which entry matters; empty for all. Borrowed.
  int watch = -1;                 ///< The kernel's number.
  WatchedPlace* next = nullptr;   ///< The other places with the same number;
  WatchedPlace** link = nullptr;  ///< what points at this one there, null while not watched.
};

class Inotify {
 public:
  explicit Inotify(Core& core) noexcept;

  /// A started path; its events go to it until it leaves.
  void enter(WatchedPath& path) noexcept;
  void leave(WatchedPath& path) noexcept;

  /// Watches what `file` names now, in place of what was watched. 0, or an errno value: then the
  /// place is not watched.
  int watch_file(WatchedPlace& place, const char* file) noexcept;
  /// The same for the entry `name` of a directory. ENOTDIR where it is none.
  int watch_entry(WatchedPlace& place, const char* directory, std::string_view name) noexcept;
  void unwatch(WatchedPlace& place) noexcept;

  Result<> reopen() noexcept;
  void abandon() noexcept;

 private:
  int open() noexcept;
  int watch(WatchedPlace& place, const char* path, std::uint32_t mask) noexcept;
  void on_readable() noexcept;
  void tell(int watch, std::uint32_t mask, std::string_view name) noexcept;
  void tell_all() noexcept;
  void drop_watch(int watch) noexcept;

  Core& core_;
  UniqueFd inotify_;
  std::unordered_map<int, WatchedPlace*> places_;  ///< By the kernel's number.
  WatchedPath* first_ = nullptr;
  ServiceWatch watch_;
};

}  // namespace tambour::loop
