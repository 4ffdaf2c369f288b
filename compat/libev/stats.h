// The ev_stat watchers of one loop.
//
// inotify(7) says when to look, and lstat(2) what there is; where inotify does not reach (files of
// other machines, no instance left), a timer in the watcher says when to look. A missing file is
// waited for in the nearest directory above that exists.
#pragma once

#include <cstdint>

#include <ev.h>

#include <tambour/unique_fd.h>

namespace tambour::libev {

struct Loop;

class Stats {
 public:
  Stats(Loop& loop, bool use_inotify) noexcept;

  void start(ev_stat& watcher) noexcept;
  void stop(ev_stat& watcher) noexcept;
  /// What there is now, into the watcher: a link count of 0 says that there is nothing.
  static void look(ev_stat& watcher) noexcept;
  /// After fork(2): an instance of its own, and everything is watched and looked at anew.
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
  void tell_bucket(int bucket, int number, std::uint32_t mask) noexcept;
  void on_readable() noexcept;
  static void on_timer(struct ev_loop* loop, ev_timer* timer, int events);

  Loop& loop_;
  bool use_inotify_;
  UniqueFd inotify_;
  ev_io io_;
  ev_watcher_list* buckets_[bucket_count]{};  ///< By the kernel's number, through `next`.
};

}  // namespace tambour::libev
