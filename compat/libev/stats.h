// The ev_stat watchers of one loop.
//
// inotify(7) reports when to check, and lstat(2) returns the state. If inotify cannot report all
// changes (remote files, no inotify instance left), a timer in the watcher triggers the check. For
// a missing file, the nearest existing directory above it is watched.
#pragma once

#include <cstdint>

#include <ev.h>

#include <tambour/base/unique_fd.h>

namespace tambour::libev {

struct Loop;

class Stats {
 public:
  Stats(Loop& loop, bool use_inotify) noexcept;

  void start(ev_stat& watcher) noexcept;
  void stop(ev_stat& watcher) noexcept;
  /// Queries the file into the watcher. A link count of 0 means that it does not exist.
  static void look(ev_stat& watcher) noexcept;
  /// Call after fork(2): opens a new inotify instance and watches everything again.
  /// Call before reopen(); see Backend::disown_if_lost().
  void disown() noexcept;
  void reopen() noexcept;

 private:
  static constexpr int bucket_count = 16;

  bool open() noexcept;
  void watch(ev_stat& watcher) noexcept;
  void unwatch(ev_stat& watcher) noexcept;
  int watch_above(const char* path, int error) noexcept;
  void set_timer(ev_stat& watcher, ev_tstamp repeat) noexcept;
  void compare(ev_stat& watcher) noexcept;
  void tell(int number, std::uint32_t mask) noexcept;
  void set_bucket_interest(int bucket, int number, std::uint32_t mask) noexcept;
  void on_readable() noexcept;
  static void on_timer(struct ev_loop* loop, ev_timer* timer, int events);

  Loop& loop_;
  bool use_inotify_;
  UniqueFd inotify_;
  bool was_disowned_ = false;
  ev_io io_;
  ev_watcher_list* buckets_[bucket_count]{};  ///< Hashed by watch descriptor, linked by `next`.
};

}  // namespace tambour::libev
