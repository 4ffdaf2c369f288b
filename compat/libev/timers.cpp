// ev_timer and ev_periodic: starting, stopping, and expiring in the order of libev.
#include "timers.h"

#include <cmath>

#include "base/check.h"
#include "loop.h"

namespace tambour::libev {
namespace {

/// Feeds the watchers found in one iteration, so that the first of them is invoked first.
void feed_in_reverse(Loop& loop, int count, int events) noexcept {
  while (count-- > 0) loop.pendings.feed(loop.in_reverse[count], events);
}

template <class Watcher>
void note(Loop& loop, int& count, Watcher& watcher) noexcept {
  loop.in_reverse.need(count + 1);
  loop.in_reverse[count++] = base_of(&watcher);
}

}  // namespace

// Calls nothing before its end but what is inlined, so that the compiler needs no stack frame.
inline void Timers::start(ev_timer& timer) noexcept {
  Loop::clamp_priority(base_of(&timer));
  ++loop_.references;
  if (!table_.has_space()) [[unlikely]]
    return reserve_and_add(timer);
  table_.add(timer);
}

void Timers::reserve_and_add(ev_timer& timer) noexcept {
  static_cast<void>(table_.reserve());  // Aborts if there is no memory.
  table_.add(timer);
}

inline void Timers::stop(ev_timer& timer) noexcept {
  --loop_.references;
  table_.remove(timer);
}

void Timers::expire() noexcept {
  const ev_tstamp now = loop_.clock.monotonic;
  // A timer expires after its deadline: at < now.
  const std::int64_t latest = key_of(now) - 1;
  if (table_.next() > latest) return;
  int count = 0;
  table_.expire(latest, [&](ev_timer& timer) {
    if (timer.repeat != 0.) {
      detail::base::check(timer.repeat > 0., "ev_timer: negative repeat value");
      timer.at += timer.repeat;
      if (timer.at < now) timer.at = now;
      table_.move(timer);
    } else {
      loop_.take_back(&timer);
      timer.at -= now;
      stop(timer);
    }
    note(loop_, count, timer);
  });
  feed_in_reverse(loop_, count, EV_TIMER);
}

void Timers::shift(ev_tstamp by) noexcept {
  table_.for_each([by](ev_timer& timer) { timer.at += by; });
  table_.move_all();
}

void Timers::verify() noexcept {
  table_.for_each([this](const ev_timer& timer) {
    detail::base::check(table_.contains(timer),
                        "ev_verify: `active` or `at` of an active timer was changed");
  });
}

ev_tstamp Periodics::time_after_now(const ev_periodic& periodic) const noexcept {
  constexpr ev_tstamp shortest_interval = 1. / 8192.;
  // More than an interval below the least one, or an offset with the precision of a second, need.
  constexpr int steps_max = 4096;
  const ev_tstamp now = loop_.clock.wall;
  const ev_tstamp interval =
      periodic.interval > shortest_interval ? periodic.interval : shortest_interval;
  ev_tstamp at = periodic.offset + interval * std::floor((now - periodic.offset) / interval);
  // Not a number if the interval or the offset is infinite. Almost always too early.
  for (int steps = 0; at <= now; ++steps) {
    // The offset is so large that the sum lost the time.
    if (steps == steps_max) at += periodic.interval * std::floor((now - at) / periodic.interval);
    const ev_tstamp next = at + periodic.interval;
    if (next == at) return now;  // Too small to change a time of this magnitude.
    at = next;
  }
  return at;
}

void Periodics::start(ev_periodic& periodic) noexcept {
  loop_.watch_wall_clock();
  if (periodic.reschedule_cb != nullptr) {
    periodic.at = periodic.reschedule_cb(&periodic, loop_.clock.wall);
  } else if (periodic.interval != 0.) {
    detail::base::check(periodic.interval >= 0., "ev_periodic_start: negative interval");
    periodic.at = time_after_now(periodic);
  } else {
    periodic.at = periodic.offset;
  }
  heap_.reserve(heap_.size() + 1);
  loop_.start(&periodic, 0);
  heap_.push(periodic, key_of(periodic.at));
}

void Periodics::stop(ev_periodic& periodic) noexcept {
  heap_.remove(static_cast<std::uint32_t>(periodic.active));
  loop_.stop(&periodic);
}

void Periodics::expire() noexcept {
  if (heap_.empty()) return;
  int count = 0;
  const ev_tstamp now = loop_.clock.wall;
  while (!heap_.empty() && heap_.top_key() < key_of(now)) {
    ev_periodic& periodic = heap_.top();
    if (periodic.reschedule_cb != nullptr) {
      periodic.at = periodic.reschedule_cb(&periodic, now);
      detail::base::check(periodic.at >= now,
                          "ev_periodic: the reschedule callback returned a past time");
      heap_.raise_top_key(key_of(periodic.at));
    } else if (periodic.interval != 0.) {
      periodic.at = time_after_now(periodic);
      heap_.raise_top_key(key_of(periodic.at));
    } else {
      ev_periodic_stop(loop_.handle(), &periodic);
    }
    note(loop_, count, periodic);
  }
  feed_in_reverse(loop_, count, EV_PERIODIC);
}

void Periodics::reschedule() noexcept {
  // In place, because a callback must find its watcher active.
  for (std::uint32_t index = heap_.first_index(); index < heap_.end_index(); ++index) {
    ev_periodic& periodic = heap_.item(index);
    if (periodic.reschedule_cb != nullptr) {
      periodic.at = periodic.reschedule_cb(&periodic, loop_.clock.wall);
    } else if (periodic.interval != 0.) {
      periodic.at = time_after_now(periodic);
    }
  }
  int count = 0;
  heap_.drain([&](ev_periodic& periodic) {
    scratch_.need(count + 1);
    scratch_[count++] = &periodic;
  });
  for (int i = 0; i < count; ++i) heap_.push(*scratch_[i], key_of(scratch_[i]->at));
}

void Periodics::verify() const noexcept {
  for (std::uint32_t index = heap_.first_index(); index < heap_.end_index(); ++index) {
    const ev_periodic& periodic = heap_.item(index);
    detail::base::check(periodic.active == static_cast<int>(index),
                        "ev_verify: a periodic's place is wrong");
    detail::base::check(heap_.key(index) == key_of(periodic.at),
                        "ev_verify: a periodic stands elsewhere");
    detail::base::check(heap_.key(heap_.parent(index)) <= heap_.key(index),
                        "ev_verify: the heap of periodics is not in order");
  }
}

}  // namespace tambour::libev

using tambour::detail::base::check;

namespace {

// The exported functions call these, which the compiler can inline.
void start_timer(struct ev_loop* loop, ev_timer* w) noexcept {
  w->at += loop->clock.monotonic;
  check(w->repeat >= 0., "ev_timer_start: negative repeat value");
  loop->timers.start(*w);
}

void stop_timer(struct ev_loop* loop, ev_timer* w) noexcept {
  w->at -= loop->clock.monotonic;
  loop->timers.stop(*w);
}

}  // namespace

void ev_timer_start(struct ev_loop* loop, ev_timer* w) noexcept {
  if (w->active == 0) start_timer(loop, w);
}

void ev_timer_stop(struct ev_loop* loop, ev_timer* w) noexcept {
  loop->take_back(w);
  if (w->active != 0) stop_timer(loop, w);
}

void ev_timer_again(struct ev_loop* loop, ev_timer* w) noexcept {
  loop->take_back(w);
  if (w->active != 0) {
    if (w->repeat != 0.) {
      loop->timers.move(*w, loop->clock.monotonic + w->repeat);
    } else {
      stop_timer(loop, w);
    }
  } else if (w->repeat != 0.) {
    w->at = w->repeat;
    start_timer(loop, w);
  }
}

ev_tstamp ev_timer_remaining(struct ev_loop* loop, ev_timer* w) noexcept {
  return w->at - (w->active != 0 ? loop->clock.monotonic : 0.);
}

void ev_periodic_start(struct ev_loop* loop, ev_periodic* w) noexcept {
  if (w->active == 0) loop->periodics.start(*w);
}

void ev_periodic_stop(struct ev_loop* loop, ev_periodic* w) noexcept {
  loop->take_back(w);
  if (w->active != 0) loop->periodics.stop(*w);
}

void ev_periodic_again(struct ev_loop* loop, ev_periodic* w) noexcept {
  ev_periodic_stop(loop, w);
  ev_periodic_start(loop, w);
}
