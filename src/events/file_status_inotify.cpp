// Inotify: one instance for a loop. Events of an inode go to every path that refers to it.
#include "events/file_status_inotify.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "base/system_call.h"
#include "events/file_status_path.h"
#include "loop/core.h"

namespace tambour::detail::events {
namespace {

using base::Call;
using base::system_call;

/// Events that change the status of a file. The contents of a directory are its entries, so their
/// events are included.
constexpr std::uint32_t file_events = IN_ATTRIB | IN_MODIFY | IN_CREATE | IN_DELETE |
                                      IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::uint32_t entry_events = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                       IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

/// After these events the path may lead to another file, even if the watched file is unchanged.
constexpr std::uint32_t leads_elsewhere =
    IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT | IN_Q_OVERFLOW;

}  // namespace

Inotify::Inotify(loop::Core& core) noexcept
    : core_(core), watch_(core, [this] { on_readable(); }) {}

void Inotify::enter(WatchedPath& path) noexcept { paths_.push_front(path); }

void Inotify::leave(WatchedPath& path) noexcept { path.unlist(); }

int Inotify::open() noexcept {
  if (inotify_.is_open()) return 0;
  // A simulated loop watches simulated descriptors only, so paths are polled.
  if (core_.backend().has_virtual_time()) return EOPNOTSUPP;
  UniqueFd opened(system_call(Call::inotify_create, ::inotify_init1, IN_CLOEXEC | IN_NONBLOCK));
  if (!opened.is_open()) return errno;
  if (auto started = watch_.start(opened.get()); !started) return started.error().value();
  inotify_ = std::move(opened);
  return 0;
}

int Inotify::watch_file(WatchedPlace& place, const char* file) noexcept {
  place.name = {};
  return watch(place, file, file_events);
}

int Inotify::watch_entry(WatchedPlace& place, const char* directory,
                         std::string_view name) noexcept {
  place.name = name;
  return watch(place, directory, entry_events);
}

int Inotify::watch(WatchedPlace& place, const char* path, std::uint32_t mask) noexcept {
  int watch = -1;
  int error = open();
  if (error == 0) {
    watch = system_call(Call::inotify_add, ::inotify_add_watch, inotify_.get(), path,
                        mask | IN_MASK_ADD);
    if (watch < 0) error = errno;
  }
  if (place.watched() && place.watch == watch) return 0;
  unwatch(place);
  if (error != 0) return error;
  WatchedPlace** first;
  try {
    first = &places_[watch];
  } catch (const std::bad_alloc&) {
    ::inotify_rm_watch(inotify_.get(), watch);
    return ENOMEM;
  }
  place.watch = watch;
  place.next = *first;
  place.link = first;
  if (place.next != nullptr) place.next->link = &place.next;
  *first = &place;
  return 0;
}

void Inotify::unwatch(WatchedPlace& place) noexcept {
  if (!place.watched()) return;
  *place.link = place.next;
  if (place.next != nullptr) place.next->link = place.link;
  place.next = nullptr;
  place.link = nullptr;
  const auto entry = places_.find(std::exchange(place.watch, -1));
  if (entry->second != nullptr) return;
  // Fails if the file was deleted, which removed the watch too.
  ::inotify_rm_watch(inotify_.get(), entry->first);
  places_.erase(entry);
}

void Inotify::on_readable() noexcept {
  alignas(inotify_event) std::array<char, 4096> buffer;
  // Bounded, so that a busy directory does not starve other handles.
  for (int round = 0; round < 16; ++round) {
    const auto size =
        system_call(Call::inotify_read, ::read, inotify_.get(), buffer.data(), buffer.size());
    if (size <= 0) return;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* name = buffer.data() + at + sizeof event;
      // The kernel pads the name with null bytes.
      deliver(event.wd, event.mask, event.len == 0 ? std::string_view() : std::string_view(name));
      at += sizeof event + event.len;
    }
  }
}

void Inotify::deliver(int watch, std::uint32_t mask, std::string_view name) noexcept {
  if ((mask & IN_Q_OVERFLOW) != 0) return queue_all_paths();
  const auto entry = places_.find(watch);
  if (entry == places_.end()) return;
  for (WatchedPlace* place = entry->second; place != nullptr; place = place->next) {
    if (!place->name.empty() && !name.empty() && place->name != name) continue;
    place->path.queue_check(!place->name.empty() || (mask & leads_elsewhere) != 0);
  }
  if ((mask & IN_IGNORED) != 0) drop_watch(watch);
}

void Inotify::queue_all_paths() noexcept {
  for (WatchedPath* path = paths_.front(); path != nullptr; path = path->next()) {
    path->must_renew_ = true;
    core_.queue(*path);
  }
}

/// The kernel has removed the watch (IN_IGNORED).
void Inotify::drop_watch(int watch) noexcept {
  const auto entry = places_.find(watch);
  while (WatchedPlace* place = entry->second) {
    entry->second = place->next;
    place->next = nullptr;
    place->link = nullptr;
    place->watch = -1;
    if (entry->second != nullptr) entry->second->link = &entry->second;
  }
  places_.erase(entry);
}

void Inotify::disown_if_lost(bool has_all) noexcept {
  if (has_all) return;
  if (!inotify_.is_open()) return;
  static_cast<void>(inotify_.release());
  was_disowned_ = true;
}

Result<> Inotify::reopen() noexcept {
  if (!std::exchange(was_disowned_, false) && !inotify_.is_open()) return {};
  // An instance shared with the parent would share its events.
  watch_.stop();
  inotify_.reset();
  while (!places_.empty()) drop_watch(places_.begin()->first);
  queue_all_paths();
  return {};
}

void Inotify::close() noexcept {
  while (WatchedPath* const path = paths_.front()) path->stop();
  watch_.stop();
  inotify_.reset();
}

}  // namespace tambour::detail::events
