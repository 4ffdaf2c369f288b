// event_base_foreach_event(3) and event_base_dump_events(3).

#include <cstdio>

#include "libevent/event/base.h"

namespace le = tambour::libevent;
using le::BaseLock;

namespace {

constexpr short in_other_lists = EVLIST_INSERTED | EVLIST_TIMEOUT;

const char* kind_of(const event& ev) noexcept {
  return (ev.ev_events & EV_SIGNAL) != 0 ? "sig" : "fd ";
}

const char* word(int set, int bit, const char* text) noexcept {
  return (set & bit) != 0 ? text : "";
}

int dump_inserted(const event_base* base, const event* ev, void* argument) {
  auto* const output = static_cast<std::FILE*>(argument);
  const short flags = ev->ev_evcallback.evcb_flags;
  if ((flags & in_other_lists) == 0) return 0;
  const int set = ev->ev_events;
  std::fprintf(output, "  %p [%s %d]%s%s%s%s%s%s%s", static_cast<const void*>(ev), kind_of(*ev),
               ev->ev_fd, word(set, EV_READ, " Read"), word(set, EV_WRITE, " Write"),
               word(set, EV_CLOSED, " EOF"), word(set, EV_SIGNAL, " Signal"),
               word(set, EV_PERSIST, " Persist"), word(set, EV_ET, " ET"),
               word(flags, EVLIST_INTERNAL, " Internal"));
  if ((flags & EVLIST_TIMEOUT) != 0) {
    const timeval at = le::to_timeval(le::microseconds_of(ev->ev_timeout) + base->wall_offset_us);
    std::fprintf(output, " Timeout=%ld.%06d", static_cast<long>(at.tv_sec),
                 static_cast<int>(at.tv_usec));
  }
  std::fputc('\n', output);
  return 0;
}

int dump_active(const event_base*, const event* ev, void* argument) {
  auto* const output = static_cast<std::FILE*>(argument);
  const short flags = ev->ev_evcallback.evcb_flags;
  if ((flags & (EVLIST_ACTIVE | EVLIST_ACTIVE_LATER)) == 0) return 0;
  const int set = ev->ev_res;
  std::fprintf(output, "  %p [%s %d, priority=%d]%s%s%s%s%s active%s%s\n",
               static_cast<const void*>(ev), kind_of(*ev), ev->ev_fd, ev->ev_evcallback.evcb_pri,
               word(set, EV_READ, " Read"), word(set, EV_WRITE, " Write"),
               word(set, EV_CLOSED, " EOF"), word(set, EV_SIGNAL, " Signal"),
               word(set, EV_TIMEOUT, " Timeout"), word(flags, EVLIST_INTERNAL, " [Internal]"),
               word(flags, EVLIST_ACTIVE_LATER, " [NextTime]"));
  return 0;
}

}  // namespace

int event_base_foreach_event_nolock_(event_base* base, event_base_foreach_event_cb function,
                                     void* argument) {
  const auto call = [&](const event* ev) { return function(base, ev, argument); };
  int result = base->fds.for_each([&](const le::FdRecord& record) {
    for (const event* ev = record.first; ev != nullptr; ev = ev->ev_.ev_io.ev_io_next.le_next) {
      if (const int stop = call(ev)) return stop;
    }
    return 0;
  });
  if (result != 0) return result;
  result = base->signals.for_each([&](const event* ev) {
    for (; ev != nullptr; ev = ev->ev_.ev_signal.ev_signal_next.le_next) {
      if (const int stop = call(ev)) return stop;
    }
    return 0;
  });
  if (result != 0) return result;
  base->timeouts.for_each([&](const event& ev) {
    if (result == 0 && (ev.ev_evcallback.evcb_flags & EVLIST_INSERTED) == 0) result = call(&ev);
  });
  if (result != 0) return result;
  for (int i = 0; i < base->common_count; ++i) {
    for (const event* ev = base->commons[i]->events.tqh_first; ev != nullptr;
         ev = ev->ev_timeout_pos.ev_next_with_common_timeout.tqe_next) {
      if ((ev->ev_evcallback.evcb_flags & EVLIST_INSERTED) != 0) continue;
      if ((result = call(ev)) != 0) return result;
    }
  }
  for (int i = 0; i < base->queue_count; ++i) {
    for (event_callback* entry = base->queues[i].first(); entry != nullptr;
         entry = event_base::Queue::next(*entry)) {
      if ((entry->evcb_flags & (EVLIST_INIT | in_other_lists)) != EVLIST_INIT) continue;
      if ((result = call(le::event_of(entry))) != 0) return result;
    }
  }
  return 0;
}

int event_base_foreach_event(event_base* base, event_base_foreach_event_cb function,
                             void* argument) {
  if (function == nullptr || base == nullptr) return -1;
  const BaseLock locked(*base);
  return event_base_foreach_event_nolock_(base, function, argument);
}

void event_base_dump_events(event_base* base, std::FILE* output) {
  const BaseLock locked(*base);
  std::fprintf(output, "Inserted events:\n");
  event_base_foreach_event_nolock_(base, &dump_inserted, output);
  std::fprintf(output, "Active events:\n");
  event_base_foreach_event_nolock_(base, &dump_active, output);
}

void event_base_assert_ok_(event_base* base) {
  const BaseLock locked(*base);
  event_base_assert_ok_nolock_(base);
}

void event_base_assert_ok_nolock_(event_base* base) {
  const auto require = [](bool holds) {
    if (!holds) event_errx(EVENT_ERR_ABORT_, "event_base_assert_ok_: the base is inconsistent");
  };
  base->timeouts.for_each([&](const event& ev) {
    require(base->timeouts.contains(ev));
    require((ev.ev_evcallback.evcb_flags & EVLIST_TIMEOUT) != 0);
  });
  int active = 0;
  for (int i = 0; i < base->queue_count; ++i) {
    for (event_callback* current_event_callback = base->queues[i].first();
         current_event_callback != nullptr;
         current_event_callback = event_base::Queue::next(*current_event_callback), ++active)
      require((current_event_callback->evcb_flags & EVLIST_ACTIVE) != 0 &&
              current_event_callback->evcb_pri == i);
  }
  for (event_callback* entry = base->later.first(); entry != nullptr;
       entry = event_base::Queue::next(*entry), ++active)
    require((entry->evcb_flags & EVLIST_ACTIVE_LATER) != 0);
  require(active == base->active_count);
}
