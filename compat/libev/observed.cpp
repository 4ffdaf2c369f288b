// What the inspector of unmodified programs sees of a loop: see common/observation.h.

#include <algorithm>
#include <utility>

#include "common/observation.h"
#include "loop.h"

namespace tambour::libev {
namespace {

using compat::LoopFigures;
using compat::ObservedEvent;
using AddEvent = void (*)(void* list, const ObservedEvent& event) noexcept;

/// Passes the watchers of a loop to the inspector.
class Lister {
 public:
  Lister(AddEvent function, void* list) noexcept : add_(function), list_(list) {}

  template <class Watcher>
  void add(const char* kind, const Watcher& watcher, ObservedEvent event = {}) noexcept {
    event.kind = kind;
    event.function = reinterpret_cast<const void*>(watcher.cb);
    event.priority = static_cast<std::int16_t>(watcher.priority);
    event.is_due = watcher.pending != 0;
    add_(list_, event);
  }
  template <class Watcher>
  void add_all(const char* kind, const Watchers<Watcher>& watchers) noexcept {
    for (int i = 0; i < watchers.count(); ++i) add(kind, *watchers[i]);
  }

 private:
  AddEvent add_;
  void* list_;
};

std::int64_t nanoseconds_left(ev_tstamp at, ev_tstamp now) noexcept {
  constexpr ev_tstamp longest = 9e9;
  return static_cast<std::int64_t>(std::clamp(at - now, 0., longest) * 1e9);
}

void list_watchers(void* self, AddEvent add, void* list) noexcept {
  struct ev_loop& loop = loop_at(self);
  Lister lister(add, list);
  loop.descriptors.for_each([&](int fd, const FdRecord& record) {
    for (const ev_io* io = record.first; io != nullptr;
         io = reinterpret_cast<const ev_io*>(io->next)) {
      if (io->active == active_own) continue;
      const bool reads = (io->events & EV_READ) != 0;
      const bool writes = (io->events & EV_WRITE) != 0;
      const Events events =
          (reads ? Events::read : Events::none) | (writes ? Events::write : Events::none);
      lister.add("io", *io, {.fd = fd, .awaited_events = static_cast<std::uint16_t>(events)});
    }
  });
  loop.timers.for_each([&](const ev_timer& timer) {
    lister.add("timer", timer, {.due_ns = nanoseconds_left(timer.at, loop.clock.monotonic)});
  });
  loop.periodics.for_each([&](const ev_periodic& periodic) {
    lister.add("periodic", periodic, {.due_ns = nanoseconds_left(periodic.at, loop.clock.wall)});
  });
  for (const auto& idles : loop.idles) lister.add_all("idle", idles);
  lister.add_all("prepare", loop.prepares);
  lister.add_all("check", loop.checks);
  lister.add_all("fork", loop.forks);
  lister.add_all("async", loop.asyncs);
}

void read_figures(void* self, LoopFigures& figures) noexcept {
  struct ev_loop& loop = loop_at(self);
  figures.iterations = loop.iterations;
  figures.pending = loop.pendings.count();
  figures.references = loop.references;
  loop.timers.for_each([&](const ev_timer& /*timer*/) { ++figures.timers; });
}

constexpr compat::LoopCalls calls = {
    .library = "libev",
    .wake = [](void* self) noexcept { loop_at(self).wake_up(); },
    .read = &read_figures,
    .list = &list_watchers,
};

void invoke(struct ev_loop* loop) {
  if (loop->user_invoke_pending_cb != nullptr) return loop->user_invoke_pending_cb(loop);
  loop->invoke_observed();
}

}  // namespace

void Loop::begin_observation() noexcept {
  const auto* const observer = compat::observer();
  if (observer == nullptr) return;
  accept_messages();
  observed = observer->open(calls, handle());
  if (observed != nullptr) invoke_pending_cb = &invoke;
}

void Loop::end_observation() noexcept {
  if (observed != nullptr) compat::observer()->close(std::exchange(observed, nullptr));
}

void Loop::invoke_observed() {
  if (pendings.count() == 0) return;
  struct ev_loop* const loop = handle();
  const compat::TimedIteration iteration(*observed);
  pendings.invoke_by([loop](ev_watcher* watcher, int events) {
    // A callback may have destroyed the loop of an earlier one.
    if (loop->observed == nullptr || watcher == base_of(&loop->messenger_))
      return watcher->cb(loop, watcher, events);
    const compat::TimedCall call(*loop->observed, reinterpret_cast<const void*>(watcher->cb));
    watcher->cb(loop, watcher, events);
  });
}

}  // namespace tambour::libev
