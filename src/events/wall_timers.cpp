// WallTimers: the heap of a loop, its timerfd, and what happens when the clock is set.
#include "events/wall_timers.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "base/failure.h"
#include "base/system_call.h"
#include "loop/core.h"

namespace tambour::detail::events {

using base::Call;
using base::system_call;

WallTimers::WallTimers(loop::Core& core) noexcept
    : core_(core), watch_(core, [this] { on_readable(); }) {}

Result<> WallTimers::open() noexcept {
  try {
    heap_.reserve(heap_.size() + 1);
  } catch (const std::bad_alloc&) {
    return base::failure(ENOMEM);
  }
  if (heap_.empty()) changes_seen_ = core_.backend().wall_changes();
  if (timerfd_.is_open() || core_.backend().has_virtual_time()) return {};
  return open_timerfd();
}

Result<> WallTimers::open_timerfd() noexcept {
  UniqueFd opened(system_call(Call::timerfd_create, ::timerfd_create, CLOCK_REALTIME,
                              TFD_CLOEXEC | TFD_NONBLOCK));
  if (!opened.is_open()) return base::failure(errno);
  if (auto started = watch_.start(opened.get()); !started) return started;
  timerfd_ = std::move(opened);
  // Armed before the clock is first read, so that no change of the clock is missed from here on.
  armed_ns_ = base::end_of_time_ns;
  if (set_timerfd(armed_ns_) == ECANCELED) watch_.feed();
  return {};
}

int WallTimers::set_timerfd(std::int64_t deadline_ns) noexcept {
  // A time of zero would disarm the timerfd.
  itimerspec setting{};
  setting.it_value = base::to_timespec(deadline_ns > 0 ? deadline_ns : 1);
  constexpr int flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;
  return system_call(Call::timerfd_set, ::timerfd_settime, timerfd_.get(), flags, &setting,
                     nullptr) == 0
             ? 0
             : errno;
}

void WallTimers::arm() noexcept {
  if (!timerfd_.is_open() || heap_.empty() || heap_.top_key() >= armed_ns_) return;
  armed_ns_ = heap_.top_key();
  // The timerfd is armed nevertheless. Since timerfd_settime(2) has reported ECANCELED, read(2)
  // will not, so it is recorded here.
  if (set_timerfd(armed_ns_) == ECANCELED) {
    was_set_ = true;
    watch_.feed();
  }
}

void WallTimers::insert(WallTimer& timer) noexcept {
  heap_.push(timer, timer.deadline_ns_);
  arm();
}

void WallTimers::remove(WallTimer& timer) noexcept { heap_.remove(timer.heap_index_); }

void WallTimers::move(WallTimer& timer) noexcept {
  heap_.remove(timer.heap_index_);
  insert(timer);
}

void WallTimers::queue_recompute(WallTimer& timer) noexcept {
  if (timer.linked()) return;
  heap_.remove(timer.heap_index_);
  heap_.push(timer, base::end_of_time_ns);
  core_.queue(timer);
}

void WallTimers::on_readable() noexcept {
  std::uint64_t expirations;
  const auto bytes =
      system_call(Call::timerfd_read, ::read, timerfd_.get(), &expirations, sizeof expirations);
  handle_event((bytes < 0 && errno == ECANCELED) || std::exchange(was_set_, false));
}

void WallTimers::handle_event(bool was_set) noexcept {
  armed_ns_ = base::end_of_time_ns;
  if (was_set) reschedule(&loop::Core::queue_now);
  expire_into(&loop::Core::queue_now);
  arm();
}

void WallTimers::expire_into(Queue queue) noexcept {
  if (heap_.empty()) return;
  const std::int64_t now_ns = core_.wall_ns();
  while (heap_.top_key() <= now_ns && heap_.top_key() != base::end_of_time_ns) {
    WallTimer& timer = heap_.top();
    heap_.raise_top_key(base::end_of_time_ns);
    (core_.*queue)(timer);
  }
}

void WallTimers::reschedule(Queue queue) noexcept {
  const std::int64_t now_ns = core_.wall_ns();
  WallTimer* first = nullptr;
  heap_.drain([&first](WallTimer& timer) { timer.next_in_list_ = std::exchange(first, &timer); });
  while (first != nullptr) {
    WallTimer& timer = *std::exchange(first, first->next_in_list_);
    put(timer, queue, now_ns);
  }
}

/// Reinserts a timer after the clock was set to `now_ns`.
void WallTimers::put(WallTimer& timer, Queue queue, std::int64_t now_ns) noexcept {
  // A queued timer recomputes its time when it is dispatched. A deadline the clock jumped over
  // expires.
  if (!timer.linked() && timer.deadline_ns_ > now_ns) {
    if (timer.rule_ == WallTimer::Rule::interval) timer.deadline_ns_ = timer.time_after(now_ns);
    // Computed when dispatched, because the function may call any function of the loop.
    if (timer.rule_ == WallTimer::Rule::computed) (core_.*queue)(timer);
  }
  heap_.push(timer, timer.linked() ? base::end_of_time_ns : timer.deadline_ns_);
}

std::int64_t WallTimers::before_wait() noexcept {
  if (heap_.empty() || !core_.backend().has_virtual_time()) return base::end_of_time_ns;
  const std::uint64_t changes = core_.backend().wall_changes();
  if (std::exchange(changes_seen_, changes) != changes) reschedule(&loop::Core::queue);
  if (heap_.top_key() == base::end_of_time_ns) return base::end_of_time_ns;
  // Compared first: the difference may overflow for a time far in the past.
  const std::int64_t now_ns = core_.wall_ns();
  const std::int64_t wait_ns = heap_.top_key() > now_ns ? heap_.top_key() - now_ns : 0;
  return base::saturating_add(core_.clock_ns(), wait_ns);
}

void WallTimers::expire(std::int64_t /*now_ns*/) noexcept {
  if (core_.backend().has_virtual_time()) expire_into(&loop::Core::queue);
}

void WallTimers::disown_if_lost(bool has_all) noexcept {
  if (has_all) return;
  if (!timerfd_.is_open()) return;
  static_cast<void>(timerfd_.release());
  was_disowned_ = true;
}

Result<> WallTimers::reopen() noexcept {
  if (!std::exchange(was_disowned_, false) && !timerfd_.is_open()) return {};
  // A timerfd shared with the parent would share its expirations.
  if (auto opened = open_timerfd(); !opened) return opened;
  // The clock may have been set since the fork.
  was_set_ = true;
  watch_.feed();
  return {};
}

void WallTimers::close() noexcept {
  heap_.drain([](WallTimer& timer) {
    timer.started_ = false;
    timer.unlink();
  });
  watch_.stop();
  timerfd_.reset();
}

}  // namespace tambour::detail::events
