// What the inspector of unmodified programs sees of a base: see common/observation.h.

#include "libevent/event/observed.h"

#include <algorithm>
#include <utility>

#include <event2/bufferevent.h>
#include <event2/bufferevent_struct.h>

#include "common/observation.h"
#include "libevent/event/base.h"

namespace le = tambour::libevent;

namespace {

using tambour::Events;
using tambour::compat::LoopFigures;
using tambour::compat::ObservedEvent;
using AddEvent = void (*)(void* list, const ObservedEvent& event) noexcept;

const char* row_kind_of(const event& ev) noexcept {
  if ((ev.ev_events & EV_SIGNAL) != 0) return "signal";
  if (le::bufferevent_of(ev.ev_evcallback) != nullptr) return "bufferevent";
  if (le::listener_of(ev.ev_evcallback) != nullptr) return "listener";
  return (ev.ev_events & (EV_READ | EV_WRITE)) != 0 ? "io" : "timer";
}

void add_event(const event& ev, std::int64_t now_us, AddEvent add, void* list) noexcept {
  const event_callback& callback = ev.ev_evcallback;
  ObservedEvent row{.kind = row_kind_of(ev),
                    .function = le::function_of(callback),
                    .fd = ev.ev_fd,
                    .priority = callback.evcb_pri,
                    .is_due = (callback.evcb_flags & EVLIST_ACTIVE) != 0};
  const bool is_inserted = (callback.evcb_flags & EVLIST_INSERTED) != 0;
  if (is_inserted && (ev.ev_events & EV_READ) != 0)
    row.awaited_events |= static_cast<std::uint16_t>(Events::read);
  if (is_inserted && (ev.ev_events & EV_WRITE) != 0)
    row.awaited_events |= static_cast<std::uint16_t>(Events::write);
  if ((callback.evcb_flags & EVLIST_TIMEOUT) != 0)
    row.due_ns = std::max<std::int64_t>(le::microseconds_of(ev.ev_timeout) - now_us, 0) * 1000;
  if (bufferevent* const bev = le::bufferevent_of(callback)) {
    row.bufferevent = bev;
    row.unread_bytes = le::input_bytes(*bev);
    row.unsent_bytes = le::output_bytes(*bev);
  }
  add(list, row);
}

// The lock is held.
void list_events(void* self, AddEvent add, void* list) noexcept {
  struct Listing {
    std::int64_t now_us;
    AddEvent add;
    void* list;
  } listing{.now_us = le::base_of(self).read_clock(), .add = add, .list = list};
  event_base_foreach_event_nolock_(
      &le::base_of(self),
      [](const event_base*, const event* ev, void* data) {
        const auto& to = *static_cast<const Listing*>(data);
        if ((ev->ev_evcallback.evcb_flags & EVLIST_INTERNAL) == 0)
          add_event(*ev, to.now_us, to.add, to.list);
        return 0;
      },
      &listing);
}

void read_figures(void* self, LoopFigures& figures) noexcept {
  event_base& base = le::base_of(self);
  figures.pending = static_cast<std::size_t>(base.active_count);
  figures.references = base.event_count + base.virtual_count;
  base.timeouts.for_each([&](const event& /*ev*/) { ++figures.timers; });
}

constexpr tambour::compat::LoopCalls calls = {
    .library = "libevent",
    // Not event_base::wake(), which needs the lock.
    .wake = [](void* self) noexcept { le::base_of(self).poller->wake(); },
    .read = &read_figures,
    .list = &list_events,
};

}  // namespace

const void* tambour::libevent::function_of(const event_callback& callback) noexcept {
  if (const bufferevent* const bev = bufferevent_of(callback)) {
    if (bev->readcb != nullptr) return reinterpret_cast<const void*>(bev->readcb);
    return bev->writecb != nullptr ? reinterpret_cast<const void*>(bev->writecb)
                                   : reinterpret_cast<const void*>(bev->errorcb);
  }
  if (const evconnlistener* const listener = listener_of(callback)) return function_of(*listener);
  return reinterpret_cast<const void*>(callback.evcb_cb_union.evcb_callback);
}

void event_base::begin_observation() noexcept {
  const auto* const observer = tambour::compat::observer();
  if (observer == nullptr || evthread_make_base_notifiable(this) != 0) return;
  observed = observer->open(calls, this);
}

void event_base::end_observation() noexcept {
  if (observed != nullptr) tambour::compat::observer()->close(std::exchange(observed, nullptr));
}
