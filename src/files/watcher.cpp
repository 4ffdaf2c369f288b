// fs::Watcher: reads inotify(7) events, and joins the two halves of a rename.
#include <tambour/fs/watcher.h>

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <string_view>
#include <utility>

#include <tambour/base/clock.h>
#include <tambour/base/unique_fd.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/combinators.h>
#include <tambour/task/sleep.h>

#include "backend/system.h"
#include "base/failure.h"
#include "base/system_call.h"
#include "loop/core.h"
#include "loop/iteration_budget.h"

namespace tambour::fs {
namespace {

using detail::base::Call;
using detail::base::failure;

/// How long the second half of a rename is waited for. The kernel writes both in one system call.
constexpr Duration rename_wait = std::chrono::milliseconds(20);
/// Events that may wait for the second half of a rename.
constexpr std::size_t queued_max = 1024;
constexpr std::size_t read_bytes = std::size_t{16} * 1024;
constexpr std::uint32_t watched = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY |
                                  IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF |
                                  IN_ONLYDIR;

}  // namespace

struct Watcher::State {
  struct Pending {
    ChangeEvent event;
    std::uint32_t cookie = 0;  ///< Not 0: the first half of a rename.
    TimePoint read_at{};       ///< With a cookie: the second half is waited for from here.
  };

  UniqueFd fd;
  std::map<int, WatchId> ids;  ///< By the descriptors of the kernel, which it may reuse.
  WatchId last_id = 0;
  std::deque<Pending> queue;
  std::uint64_t overflows = 0;
  bool has_lost = false;                    ///< For lack of memory: to be reported.
  detail::loop::IterationBudget budget{2};  ///< Of reads.

  /// Returns false with errno. EAGAIN: there are no events.
  bool read_events();
  void add_all(const char* bytes, std::size_t size);
  void add(const inotify_event& event, std::string_view name);
  void add_moved_here(ChangeEvent&& event, std::uint32_t cookie);
  void drop(WatchId directory);
  [[nodiscard]] bool waits_for_rename(TimePoint now) noexcept;
};

bool Watcher::State::read_events() {
  alignas(inotify_event) std::array<char, read_bytes> bytes;
  const ssize_t size = detail::base::uninterrupted(Call::inotify_read, ::read, fd.get(),
                                                   static_cast<void*>(bytes.data()), bytes.size());
  if (size < 0) return false;
  try {
    add_all(bytes.data(), static_cast<std::size_t>(size));
  } catch (const std::bad_alloc&) {
    has_lost = true;
    throw;
  }
  return true;
}

void Watcher::State::add_all(const char* bytes, std::size_t size) {
  for (std::size_t at = 0; at < size;) {
    inotify_event event{};
    std::memcpy(&event, bytes + at, sizeof event);
    const std::string_view padded(bytes + at + sizeof event, event.len);
    add(event, padded.substr(0, padded.find('\0')));
    at += sizeof event + event.len;
  }
}

void Watcher::State::add(const inotify_event& event, std::string_view name) {
  if ((event.mask & IN_Q_OVERFLOW) != 0) {
    ++overflows;
    queue.push_back({.event = {.change = Change::overflow}});
    return;
  }
  const auto found = ids.find(event.wd);
  if (found == ids.end()) return;  // It was unwatched.
  ChangeEvent change{.directory = found->second,
                     .name = std::string(name),
                     .is_directory = (event.mask & IN_ISDIR) != 0};
  if ((event.mask & IN_IGNORED) != 0) {
    ids.erase(found);
    change.change = Change::directory_removed;
  } else if ((event.mask & IN_MOVE_SELF) != 0) {
    // The kernel would watch it at its new place, whose path is unknown. IN_IGNORED follows.
    ::inotify_rm_watch(fd.get(), event.wd);
    return;
  } else if ((event.mask & IN_MOVED_TO) != 0) {
    return add_moved_here(std::move(change), event.cookie);
  } else if ((event.mask & IN_MOVED_FROM) != 0) {
    change.change = Change::moved_out;
    queue.push_back({.event = std::move(change), .cookie = event.cookie, .read_at = Clock::now()});
    return;
  } else if ((event.mask & IN_CREATE) != 0) {
    change.change = Change::created;
  } else if ((event.mask & IN_DELETE) != 0) {
    change.change = Change::removed;
  } else if ((event.mask & IN_MODIFY) != 0) {
    change.change = Change::modified;
  } else if ((event.mask & IN_CLOSE_WRITE) != 0) {
    change.change = Change::closed;
  } else if ((event.mask & IN_ATTRIB) != 0 && !name.empty()) {
    change.change = Change::attributes_changed;
  } else {
    return;  // Of the directory itself; IN_IGNORED follows IN_DELETE_SELF and IN_UNMOUNT.
  }
  queue.push_back({.event = std::move(change)});
}

void Watcher::State::add_moved_here(ChangeEvent&& event, std::uint32_t cookie) {
  for (Pending& pending : queue) {
    if (pending.cookie != cookie) continue;
    pending.cookie = 0;
    event.change = Change::renamed;
    event.old_directory = pending.event.directory;
    event.old_name = std::move(pending.event.name);
    pending.event = std::move(event);
    return;
  }
  event.change = Change::moved_in;
  queue.push_back({.event = std::move(event)});
}

void Watcher::State::drop(WatchId directory) {
  std::erase_if(queue, [&](Pending& pending) {
    ChangeEvent& event = pending.event;
    if (event.change != Change::renamed || event.directory == event.old_directory)
      return event.directory == directory;
    // The other half is left.
    if (event.directory == directory) {
      event = {.change = Change::moved_out,
               .directory = event.old_directory,
               .name = std::move(event.old_name),
               .is_directory = event.is_directory};
    } else if (event.old_directory == directory) {
      event.change = Change::moved_in;
      event.old_directory = 0;
      event.old_name.clear();
    }
    return false;
  });
}

bool Watcher::State::waits_for_rename(TimePoint now) noexcept {
  if (queue.front().cookie == 0) return false;
  if (now - queue.front().read_at < rename_wait && queue.size() < queued_max) return true;
  queue.front().cookie = 0;
  return false;
}

Watcher::Watcher() noexcept = default;
Watcher::Watcher(Watcher&& other) noexcept = default;
Watcher& Watcher::operator=(Watcher&& other) noexcept = default;
Watcher::~Watcher() = default;

void Watcher::close() noexcept { state_.reset(); }

std::uint64_t Watcher::overflows() const noexcept {
  return state_ == nullptr ? 0 : state_->overflows;
}

Result<Watcher> Watcher::create(EventLoop& loop) {
  detail::loop::Core& core = detail::loop::core_of(loop);
  if (&core.backend().system() != &detail::backend::kernel()) return failure(ENOTSUP);
  auto state = std::make_unique<State>();
  state->fd = UniqueFd(detail::base::system_call(Call::inotify_create, ::inotify_init1,
                                                 int{IN_NONBLOCK | IN_CLOEXEC}));
  if (!state->fd.is_open()) return failure(errno);
  Watcher watcher;
  watcher.state_ = std::move(state);
  return watcher;
}

Result<WatchId> Watcher::watch(const std::string& path) {
  if (state_ == nullptr) return failure(EBADF);
  if (path.contains('\0')) return failure(EINVAL);
  const int number = detail::base::system_call(Call::inotify_add, ::inotify_add_watch,
                                               state_->fd.get(), path.c_str(), watched);
  if (number < 0) return failure(errno);
  const auto [entry, is_new] = state_->ids.try_emplace(number, state_->last_id + 1);
  if (is_new) ++state_->last_id;
  return entry->second;
}

void Watcher::unwatch(WatchId directory) noexcept {
  if (state_ == nullptr) return;
  for (auto entry = state_->ids.begin(); entry != state_->ids.end(); ++entry) {
    if (entry->second != directory) continue;
    ::inotify_rm_watch(state_->fd.get(), entry->first);
    state_->ids.erase(entry);
    state_->drop(directory);
    return;
  }
}

CancelSafeTask<Result<ChangeEvent>> Watcher::next() { return cancel_safe(read_next()); }

Task<Result<ChangeEvent>> Watcher::read_next() {
  const TaskContext& context = co_await this_task;
  for (;;) {
    State* const state = state_.get();
    if (state == nullptr) co_return failure(EBADF);
    if (std::exchange(state->has_lost, false)) {
      ++state->overflows;
      co_return ChangeEvent();
    }
    const bool is_waiting = !state->queue.empty() && state->waits_for_rename(Clock::now());
    if (!state->queue.empty() && !is_waiting) {
      ChangeEvent event = std::move(state->queue.front().event);
      state->queue.pop_front();
      co_return std::move(event);
    }
    // Others may change files all the time. One read takes many events.
    if (state->budget.is_exhausted(detail::loop::core_of(*context.loop))) {
      const auto slept = co_await sleep_for(Duration::zero(), {});
      if (!slept) co_return std::unexpected(slept.error());
      continue;
    }
    if (state->read_events()) continue;
    if (errno != EAGAIN) co_return failure(errno);
    const int fd = state->fd.get();
    if (is_waiting) {
      const auto ready = co_await timeout(rename_wait, wait_ready(fd, Events::read));
      if (!ready && ready.error() != system_error(ETIMEDOUT))
        co_return std::unexpected(ready.error());
    } else {
      const auto ready = co_await wait_ready(fd, Events::read);
      if (!ready) co_return std::unexpected(ready.error());
    }
  }
}

}  // namespace tambour::fs
