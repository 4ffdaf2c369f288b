// ev_stat: paths are watched with inotify(7) where that reports all changes, and otherwise by
// stat(2) at intervals.
#include "stats.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "base/system_call.h"
#include "loop.h"

namespace tambour::libev {
namespace {

/// In seconds; libev's values, chosen so that timers do not coincide.
constexpr ev_tstamp default_interval = 5.0074891;
/// Used with inotify, for changes made by other machines.
constexpr ev_tstamp remote_interval = 30.1074891;
constexpr ev_tstamp least_interval = 0.1074891;

ev_tstamp interval_of(const ev_stat& watcher, ev_tstamp otherwise = default_interval) noexcept {
  return watcher.interval != 0. ? watcher.interval : otherwise;
}

ev_stat* stat_of(ev_watcher_list* item) noexcept { return reinterpret_cast<ev_stat*>(item); }

bool differ(const ev_statdata& a, const ev_statdata& b) noexcept {
  return a.st_dev != b.st_dev || a.st_ino != b.st_ino || a.st_mode != b.st_mode ||
         a.st_nlink != b.st_nlink || a.st_uid != b.st_uid || a.st_gid != b.st_gid ||
         a.st_rdev != b.st_rdev || a.st_size != b.st_size || a.st_atime != b.st_atime ||
         a.st_mtime != b.st_mtime || a.st_ctime != b.st_ctime;
}

/// Returns true if all changes of the file go through this kernel, so that inotify reports them.
bool is_local(const char* path) noexcept {
  constexpr unsigned long local[] = {
      0x1373,      // devfs
      0x4006,      // fat
      0x4d44,      // msdos
      0xef53,      // ext2, ext3, ext4
      0x72b6,      // jffs2
      0x858458f6,  // ramfs
      0x5346544e,  // ntfs
      0x3153464a,  // jfs
      0x9123683e,  // btrfs
      0x52654973,  // reiserfs
      0x01021994,  // tmpfs
      0x58465342,  // xfs
  };
  struct statfs info;
  if (detail::base::system_call(detail::base::Call::statfs, ::statfs, path, &info) != 0)
    return false;
  for (const unsigned long type : local) {
    if (static_cast<unsigned long>(info.f_type) == type) return true;
  }
  return false;
}

}  // namespace

Stats::Stats(Loop& loop, bool use_inotify) noexcept : loop_(loop), use_inotify_(use_inotify) {
  ev_init(&io_, [](struct ev_loop* place, ev_io*, int) { place->stats.on_readable(); });
  ev_set_priority(&io_, EV_MAXPRI);
}

bool Stats::open() noexcept {
  if (inotify_.is_open() || !use_inotify_) return inotify_.is_open();
  inotify_ = UniqueFd(detail::base::system_call(detail::base::Call::inotify_create, ::inotify_init1,
                                                IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify_.is_open()) {
    use_inotify_ = false;
    return false;
  }
  loop_.start_own(io_, inotify_.get());
  return true;
}

void Stats::look(ev_stat& watcher) noexcept {
  const int found =
      detail::base::system_call(detail::base::Call::stat, ::lstat, watcher.path, &watcher.attr);
  if (found != 0) {
    watcher.attr.st_nlink = 0;
  } else if (watcher.attr.st_nlink == 0) {
    watcher.attr.st_nlink = 1;  // Deleted but open, or the file system does not count links.
  }
}

void Stats::start(ev_stat& watcher) noexcept {
  look(watcher);
  if (watcher.interval != 0. && watcher.interval < least_interval)
    watcher.interval = least_interval;
  ev_timer_init(&watcher.timer, &on_timer, 0., interval_of(watcher));
  ev_set_priority(&watcher.timer, watcher.priority);
  if (open()) {
    watch(watcher);
  } else {
    ev_timer_again(loop_.handle(), &watcher.timer);
    --loop_.references;
  }
  loop_.start(&watcher, 1);
}

void Stats::stop(ev_stat& watcher) noexcept {
  unwatch(watcher);
  if (watcher.timer.active != 0) {
    ++loop_.references;
    ev_timer_stop(loop_.handle(), &watcher.timer);
  } else {
    loop_.take_back(&watcher.timer);
  }
  loop_.stop(&watcher);
}

/// A `repeat` of zero stops the timer. The timer does not keep the loop running.
void Stats::set_timer(ev_stat& watcher, ev_tstamp repeat) noexcept {
  watcher.timer.repeat = repeat;
  if (watcher.timer.active != 0) ++loop_.references;
  ev_timer_again(loop_.handle(), &watcher.timer);
  if (watcher.timer.active != 0) --loop_.references;
}

void Stats::watch(ev_stat& watcher) noexcept {
  constexpr std::uint32_t changes = IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_MODIFY |
                                    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                    IN_DONT_FOLLOW | IN_MASK_ADD;
  watcher.wd = detail::base::system_call(detail::base::Call::inotify_add, ::inotify_add_watch,
                                         inotify_.get(), watcher.path, changes);
  ev_tstamp repeat = interval_of(watcher);
  if (watcher.wd >= 0) {
    repeat = is_local(watcher.path) ? 0. : interval_of(watcher, remote_interval);
  } else if (errno == ENOENT || errno == EACCES) {
    watcher.wd = watch_above(watcher.path, errno);
  }
  if (watcher.wd >= 0) {
    ev_watcher_list*& first = buckets_[watcher.wd % bucket_count];
    watcher.next = first;
    first = reinterpret_cast<ev_watcher_list*>(&watcher);
  }
  set_timer(watcher, repeat);
}

/// Watches the nearest directory above that can be watched. Returns a negative value if there is
/// none.
int Stats::watch_above(const char* path, int error) noexcept {
  char above[PATH_MAX];
  if (std::strlen(path) >= sizeof above) return -1;
  std::strcpy(above, path);
  int number = -1;
  while (number < 0 && (error == ENOENT || error == EACCES)) {
    const std::uint32_t appears = error == EACCES ? IN_ATTRIB : IN_CREATE | IN_MOVED_TO;
    char* const end = std::strrchr(above, '/');
    if (end == nullptr || end == above) break;  // The root always exists.
    *end = '\0';
    number = detail::base::system_call(detail::base::Call::inotify_add, ::inotify_add_watch,
                                       inotify_.get(), above,
                                       IN_MASK_ADD | IN_DELETE_SELF | IN_MOVE_SELF | appears);
    error = errno;
  }
  return number;
}

void Stats::unwatch(ev_stat& watcher) noexcept {
  const int number = watcher.wd;
  if (number < 0) return;
  watcher.wd = -2;
  ev_watcher_list** link = &buckets_[number % bucket_count];
  while (*link != nullptr && stat_of(*link) != &watcher) link = &(*link)->next;
  if (*link != nullptr) *link = watcher.next;
  // Other watchers may watch the same file and share its watch descriptor.
  for (ev_watcher_list* entry = buckets_[number % bucket_count]; entry != nullptr;
       entry = entry->next) {
    if (stat_of(entry)->wd == number) return;
  }
  ::inotify_rm_watch(inotify_.get(), number);
}

void Stats::on_timer(struct ev_loop* loop, ev_timer* timer, int) {
  auto* const watcher =
      reinterpret_cast<ev_stat*>(reinterpret_cast<char*>(timer) - offsetof(ev_stat, timer));
  loop->stats.compare(*watcher);
}

/// Queries the file, and feeds the watcher if anything has changed.
void Stats::compare(ev_stat& watcher) noexcept {
  const ev_statdata before = watcher.attr;
  look(watcher);
  if (!differ(before, watcher.attr)) return;
  watcher.prev = before;
  if (inotify_.is_open()) {
    // The path may have been created, or may refer to a different file now.
    unwatch(watcher);
    watch(watcher);
    look(watcher);
  }
  loop_.pendings.feed(base_of(&watcher), EV_STAT);
}

void Stats::on_readable() noexcept {
  alignas(inotify_event) char buffer[sizeof(inotify_event) * 2 + NAME_MAX];
  for (;;) {
    const ssize_t bytes = detail::base::system_call(detail::base::Call::inotify_read, ::read,
                                                    inotify_.get(), buffer, sizeof buffer);
    if (bytes <= 0) return;
    for (ssize_t at = 0; at < bytes;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      tell(event->wd, event->mask);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
  }
}

void Stats::tell(int number, std::uint32_t mask) noexcept {
  if (number >= 0) return set_bucket_interest(number % bucket_count, number, mask);
  // The inotify queue overflowed: anything may have changed.
  for (int bucket = 0; bucket < bucket_count; ++bucket) set_bucket_interest(bucket, number, mask);
}

void Stats::set_bucket_interest(int bucket, int number, std::uint32_t mask) noexcept {
  ev_watcher_list* next = nullptr;
  for (ev_watcher_list* entry = buckets_[bucket]; entry != nullptr; entry = next) {
    next = entry->next;  // watch() may move it to another list.
    ev_stat& watcher = *stat_of(entry);
    if (watcher.wd != number && number >= 0) continue;
    if ((mask & (IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF)) != 0) {
      unwatch(watcher);
      watch(watcher);
    }
    compare(watcher);
  }
}

void Stats::disown() noexcept {
  was_disowned_ = inotify_.is_open();
  static_cast<void>(inotify_.release());
}

void Stats::reopen() noexcept {
  if (!std::exchange(was_disowned_, false) && !inotify_.is_open()) return;
  loop_.stop_own(io_);
  inotify_.reset();
  const bool opened = open();
  for (ev_watcher_list*& bucket : buckets_) {
    ev_watcher_list* entry = std::exchange(bucket, nullptr);
    while (entry != nullptr) {
      ev_stat& watcher = *stat_of(std::exchange(entry, entry->next));
      watcher.wd = -1;
      if (opened) {
        watch(watcher);
      } else {
        set_timer(watcher, interval_of(watcher));
      }
    }
  }
}

}  // namespace tambour::libev

void ev_stat_start(struct ev_loop* loop, ev_stat* w) noexcept {
  if (w->active == 0) loop->stats.start(*w);
}

void ev_stat_stop(struct ev_loop* loop, ev_stat* w) noexcept {
  loop->take_back(w);
  if (w->active != 0) loop->stats.stop(*w);
}

void ev_stat_stat(struct ev_loop*, ev_stat* w) noexcept { tambour::libev::Stats::look(*w); }
