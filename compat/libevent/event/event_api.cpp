// The functions on one event.

#include <cerrno>
#include <cstring>
#include <new>

#include "libevent/event/base.h"
#include "libevent/event/debug_mode.h"

namespace le = tambour::libevent;
using le::BaseLock;
using le::Block;

namespace {

char self_argument;  ///< Its address stands for the event itself, in event_assign().

constexpr short io_events = EV_READ | EV_WRITE | EV_CLOSED;

short& flags_of(event& ev) noexcept { return ev.ev_evcallback.evcb_flags; }
short flags_of(const event& ev) noexcept { return ev.ev_evcallback.evcb_flags; }

bool runs_in_other_thread(const event_base& base, const event& ev) noexcept {
  return base.current == &ev.ev_evcallback && !base.in_loop_thread();
}

void forget_calls(event& ev) noexcept {
  auto& signal = ev.ev_.ev_signal;
  if (signal.ev_ncalls != 0 && signal.ev_pncalls != nullptr) *signal.ev_pncalls = 0;
}

int without_base(const char* caller) noexcept {
  event_warnx("%s: event has no event_base set.", caller);
  return -1;
}

int remove(event* ev, Block block) noexcept {
  if (ev->ev_base == nullptr) return without_base("event_del_");
  const BaseLock locked(*ev->ev_base);
  return le::delete_event(ev, block);
}

int finalize(unsigned, event* ev, event_finalize_callback_fn function, le::Closure closure) {
  event_base* const base = ev->ev_base;
  if (base == nullptr) return without_base("event_finalize_impl_");
  const BaseLock locked(*base);
  le::delete_event(ev, Block::never);
  ev->ev_evcallback.evcb_closure = closure;
  ev->ev_evcallback.evcb_cb_union.evcb_evfinalize = function;
  event_active_nolock_(ev, EV_FINALIZE, 1);
  flags_of(*ev) |= EVLIST_FINALIZING;
  return 0;
}

}  // namespace

// The queues.

void event_base::insert_active_later(event_callback& callback) noexcept {
  if ((callback.evcb_flags & (EVLIST_ACTIVE | EVLIST_ACTIVE_LATER)) != 0) return;
  count(callback, 1);
  callback.evcb_flags |= EVLIST_ACTIVE_LATER;
  count_active(1);
  later.append(callback);
}

void event_base::remove_active_later(event_callback& callback) noexcept {
  count(callback, -1);
  callback.evcb_flags &= ~EVLIST_ACTIVE_LATER;
  count_active(-1);
  later.remove(callback);
}

void event_base::insert_inserted(event& ev) noexcept {
  count(ev.ev_evcallback, 1);
  flags_of(ev) |= EVLIST_INSERTED;
}

void event_base::remove_inserted(event& ev) noexcept {
  count(ev.ev_evcallback, -1);
  flags_of(ev) &= ~EVLIST_INSERTED;
}

int event_assign(event* ev, event_base* base, evutil_socket_t fd, short events,
                 event_callback_fn callback, void* argument) {
  if (base == nullptr) base = event_global_current_base_;
  if (argument == &self_argument) argument = ev;
  le::debug::check_is_not_added(ev, "event_assign");
  ev->ev_base = base;
  event_callback& local = ev->ev_evcallback;
  local.evcb_cb_union.evcb_callback = callback;
  local.evcb_arg = argument;
  ev->ev_fd = fd;
  ev->ev_events = events;
  ev->ev_res = 0;
  local.evcb_flags = EVLIST_INIT;
  ev->ev_.ev_signal.ev_ncalls = 0;
  ev->ev_.ev_signal.ev_pncalls = nullptr;
  if ((events & EV_SIGNAL) != 0) {
    if ((events & io_events) != 0) {
      event_warnx("%s: EV_SIGNAL is not compatible with EV_READ, EV_WRITE or EV_CLOSED",
                  "event_assign");
      return -1;
    }
    local.evcb_closure = le::closure_signal;
  } else if ((events & EV_PERSIST) != 0) {
    ev->ev_.ev_io.ev_timeout = {};
    local.evcb_closure = le::closure_persist;
  } else {
    local.evcb_closure = le::closure_event;
  }
  le::TimeoutTraits::set_position(*ev, 0);
  if (base != nullptr) local.evcb_pri = static_cast<ev_uint8_t>(base->queue_count / 2);
  le::debug::note_setup(ev);
  return 0;
}

void* event_self_cbarg() { return &self_argument; }

event* event_new(event_base* base, evutil_socket_t fd, short events, event_callback_fn callback,
                 void* argument) {
  auto* const ev = static_cast<event*>(event_mm_malloc_(sizeof(event)));
  if (ev == nullptr) return nullptr;
  if (event_assign(ev, base, fd, events, callback, argument) < 0) {
    event_mm_free_(ev);
    return nullptr;
  }
  return ev;
}

void event_free(event* ev) {
  event_del(ev);
  le::debug::note_teardown(ev);
  event_mm_free_(ev);
}

int event_base_set(event_base* base, event* ev) {
  if (flags_of(*ev) != EVLIST_INIT) return -1;
  le::debug::require_setup(ev, "event_base_set");
  ev->ev_base = base;
  ev->ev_evcallback.evcb_pri = static_cast<ev_uint8_t>(base->queue_count / 2);
  return 0;
}

int event_finalize(unsigned flags, event* ev, event_finalize_callback_fn function) {
  return finalize(flags, ev, function, le::closure_finalize_event);
}
int event_free_finalize(unsigned flags, event* ev, event_finalize_callback_fn function) {
  return finalize(flags, ev, function, le::closure_finalize_free);
}

int event_add(event* ev, const timeval* timeout) {
  event_base* const base = ev->ev_base;
  if (base == nullptr) return without_base("event_add");
  const BaseLock locked(*base);
  return event_add_nolock_(ev, timeout, 0);
}

int event_add_nolock_(event* ev, const timeval* timeout, int is_absolute) {
  event_base& base = *ev->ev_base;
  le::debug::require_setup(ev, "event_add");
  if ((ev->ev_events & EV_SIGNAL) != 0 && runs_in_other_thread(base, *ev)) base.wait_for_callback();
  // After the wait, during which other threads had the lock.
  if ((flags_of(*ev) & EVLIST_FINALIZING) != 0) return -1;
  if (timeout != nullptr && !base.timeouts.reserve()) return -1;
  bool must_wake = false;
  constexpr short in_queues = EVLIST_INSERTED | EVLIST_ACTIVE | EVLIST_ACTIVE_LATER;
  if ((ev->ev_events & (io_events | EV_SIGNAL)) != 0 && (flags_of(*ev) & in_queues) == 0) {
    const int added = (ev->ev_events & EV_SIGNAL) != 0 ? base.signals.add(*ev) : base.fds.add(*ev);
    if (added < 0) return -1;
    base.insert_inserted(*ev);
    must_wake = added == 1;
  }
  if (timeout != nullptr) {
    if (ev->ev_evcallback.evcb_closure == le::closure_persist && is_absolute == 0)
      ev->ev_.ev_io.ev_timeout = *timeout;
    // A timeout that is about to run is void: the caller schedules it again.
    if ((flags_of(*ev) & EVLIST_ACTIVE) != 0 && (ev->ev_res & EV_TIMEOUT) != 0) {
      if ((ev->ev_events & EV_SIGNAL) != 0) forget_calls(*ev);
      base.remove_active(ev->ev_evcallback);
    }
    const bool is_common = base.common_of(*timeout) != nullptr;
    const bool was_added = (flags_of(*ev) & EVLIST_TIMEOUT) != 0;
    const bool moves = was_added && !is_common && base.common_of(ev->ev_timeout) == nullptr;
    if (was_added && !moves) base.remove_timeout(*ev);
    const std::int64_t now = base.timeout_begin();
    if (is_absolute != 0) {
      ev->ev_timeout = *timeout;
    } else if (is_common) {
      ev->ev_timeout = le::to_timeval(now + le::microseconds_of(*timeout));
      ev->ev_timeout.tv_usec |=
          static_cast<suseconds_t>(le::common::bits(*timeout) & ~le::common::microseconds);
    } else {
      ev->ev_timeout = le::to_timeval(now + le::microseconds_of_relative(*timeout));
    }
    if (moves) {
      base.timeouts.move(*ev);
    } else {
      base.insert_timeout(*ev);
    }
    // If it is the earliest, or if the loop is late.
    if (!is_common && base.runs_in_other_thread())
      must_wake |=
          base.timeouts.next() >= le::TimeoutTraits::deadline(*ev) || base.timeouts.next() < now;
  }
  if (must_wake) base.wake_if_needed();
  if (le::debug::is_on()) le::debug::note_added(ev, true);
  return 0;
}

int event_remove_timer(event* ev) {
  if (ev->ev_base == nullptr) return without_base("event_remove_timer");
  const BaseLock locked(*ev->ev_base);
  return event_remove_timer_nolock_(ev);
}

int event_remove_timer_nolock_(event* ev) {
  le::debug::require_setup(ev, "event_remove_timer");
  if ((flags_of(*ev) & EVLIST_TIMEOUT) == 0) return 0;
  ev->ev_base->remove_timeout(*ev);
  ev->ev_.ev_io.ev_timeout = {};
  return 0;
}

int event_del(event* ev) { return remove(ev, Block::unless_finalizing); }
int event_del_block(event* ev) { return remove(ev, Block::always); }
int event_del_noblock(event* ev) { return remove(ev, Block::never); }

int event_del_nolock_(event* ev, int blocking) {
  if (ev->ev_base == nullptr) return -1;
  event_base& base = *ev->ev_base;
  const auto block = static_cast<Block>(blocking);
  if (block != Block::even_if_finalized && (flags_of(*ev) & EVLIST_FINALIZING) != 0) return 0;
  if ((ev->ev_events & EV_SIGNAL) != 0) forget_calls(*ev);
  if ((flags_of(*ev) & EVLIST_TIMEOUT) != 0) base.remove_timeout(*ev);
  if ((flags_of(*ev) & EVLIST_ACTIVE) != 0) {
    base.remove_active(ev->ev_evcallback);
  } else if ((flags_of(*ev) & EVLIST_ACTIVE_LATER) != 0) {
    base.remove_active_later(ev->ev_evcallback);
  }
  int result = 0;
  bool must_wake = false;
  if ((flags_of(*ev) & EVLIST_INSERTED) != 0) {
    base.remove_inserted(*ev);
    result = (ev->ev_events & io_events) != 0 ? base.fds.remove(*ev) : base.signals.remove(*ev);
    if (result == 1) {
      must_wake = true;
      result = 0;
    }
    // The loop must see that there is nothing left to wait for.
    must_wake |= !base.has_events() && base.active_count == 0;
  }
  if (result != -1 && must_wake) base.wake_if_needed();
  if (le::debug::is_on()) le::debug::note_added(ev, false);
  if (block != Block::never && runs_in_other_thread(base, *ev) &&
      (block == Block::always || (ev->ev_events & EV_FINALIZE) == 0))
    base.wait_for_callback();
  return result;
}

void event_active(event* ev, int result, short calls) {
  if (ev->ev_base == nullptr) {
    without_base("event_active");
    return;
  }
  const BaseLock locked(*ev->ev_base);
  le::debug::require_setup(ev, "event_active");
  event_active_nolock_(ev, result, calls);
}

void event_active_nolock_(event* ev, int result, short calls) {
  event_base& base = *ev->ev_base;
  if ((flags_of(*ev) & EVLIST_FINALIZING) != 0) return;
  if ((flags_of(*ev) & EVLIST_ACTIVE) != 0) {
    ev->ev_res = static_cast<short>(ev->ev_res | result);
    return;
  }
  const bool is_later = (flags_of(*ev) & EVLIST_ACTIVE_LATER) != 0;
  ev->ev_res = static_cast<short>(is_later ? ev->ev_res | result : result);
  if (ev->ev_evcallback.evcb_pri < base.running_priority) base.continue_asked = true;
  if ((ev->ev_events & EV_SIGNAL) != 0) {
    if (runs_in_other_thread(base, *ev)) base.wait_for_callback();
    ev->ev_.ev_signal.ev_ncalls = calls;
    ev->ev_.ev_signal.ev_pncalls = nullptr;
  }
  event_callback_activate_nolock_(&base, &ev->ev_evcallback);
}

void event_active_later_(event* ev, int result) {
  const BaseLock locked(*ev->ev_base);
  event_active_later_nolock_(ev, result);
}

void event_active_later_nolock_(event* ev, int result) {
  if ((flags_of(*ev) & (EVLIST_ACTIVE | EVLIST_ACTIVE_LATER)) != 0) {
    ev->ev_res = static_cast<short>(ev->ev_res | result);
    return;
  }
  ev->ev_res = static_cast<short>(result);
  event_callback_activate_later_nolock_(ev->ev_base, &ev->ev_evcallback);
}

int event_priority_set(event* ev, int priority) {
  le::debug::require_setup(ev, "event_priority_set");
  if ((flags_of(*ev) & EVLIST_ACTIVE) != 0) return -1;
  if (priority < 0 || priority >= ev->ev_base->queue_count) return -1;
  ev->ev_evcallback.evcb_pri = static_cast<ev_uint8_t>(priority);
  return 0;
}

int event_pending(const event* ev, short events, timeval* at) {
  if (ev->ev_base == nullptr) {
    without_base("event_pending");
    return 0;
  }
  const event_base& base = *ev->ev_base;
  const BaseLock locked(base);
  le::debug::require_setup(ev, "event_pending");
  int is = 0;
  if ((flags_of(*ev) & EVLIST_INSERTED) != 0) is |= ev->ev_events & (io_events | EV_SIGNAL);
  if ((flags_of(*ev) & (EVLIST_ACTIVE | EVLIST_ACTIVE_LATER)) != 0) is |= ev->ev_res;
  if ((flags_of(*ev) & EVLIST_TIMEOUT) != 0) is |= EV_TIMEOUT;
  is &= events & (EV_TIMEOUT | io_events | EV_SIGNAL);
  if (at != nullptr && (is & EV_TIMEOUT) != 0)
    *at = le::to_timeval(le::microseconds_of(ev->ev_timeout) + base.wall_offset_us);
  return is;
}

int event_initialized(const event* ev) { return (flags_of(*ev) & EVLIST_INIT) != 0 ? 1 : 0; }

void event_get_assignment(const event* ev, event_base** base, evutil_socket_t* fd, short* events,
                          event_callback_fn* callback, void** argument) {
  le::debug::require_setup(ev, "event_get_assignment");
  if (base != nullptr) *base = ev->ev_base;
  if (fd != nullptr) *fd = ev->ev_fd;
  if (events != nullptr) *events = ev->ev_events;
  if (callback != nullptr) *callback = ev->ev_evcallback.evcb_cb_union.evcb_callback;
  if (argument != nullptr) *argument = ev->ev_evcallback.evcb_arg;
}

evutil_socket_t event_get_fd(const event* ev) {
  le::debug::require_setup(ev, "event_get_fd");
  return ev->ev_fd;
}
event_base* event_get_base(const event* ev) {
  le::debug::require_setup(ev, "event_get_base");
  return ev->ev_base;
}
short event_get_events(const event* ev) {
  le::debug::require_setup(ev, "event_get_events");
  return ev->ev_events;
}
event_callback_fn event_get_callback(const event* ev) {
  le::debug::require_setup(ev, "event_get_callback");
  return ev->ev_evcallback.evcb_cb_union.evcb_callback;
}
void* event_get_callback_arg(const event* ev) {
  le::debug::require_setup(ev, "event_get_callback_arg");
  return ev->ev_evcallback.evcb_arg;
}
int event_get_priority(const event* ev) {
  le::debug::require_setup(ev, "event_get_priority");
  return ev->ev_evcallback.evcb_pri;
}
std::size_t event_get_struct_event_size() { return sizeof(event); }
