// The functions on a base, except its loop.

#include <sys/time.h>

#include <cstring>
#include <new>

#include "libevent/event/base.h"
#include "libevent/event/debug_mode.h"

namespace le = tambour::libevent;
using le::BaseLock;
using le::Once;

namespace {

void on_once(int fd, short events, void* argument) {
  auto* const once = static_cast<Once*>(argument);
  once->callback(fd, events, once->argument);
  {
    const BaseLock locked(*once->ev.ev_base);
    *once->link = once->next;
    if (once->next != nullptr) once->next->link = once->link;
  }
  le::debug::note_teardown(&once->ev);
  event_mm_free_(once);
}

void on_exit_time(int, short, void* argument) {
  auto& base = *static_cast<event_base*>(argument);
  const BaseLock locked(base);
  base.exit_asked = true;
}

int take_max(int& limit, int clear) noexcept {
  const int result = limit;
  if (clear != 0) limit = 0;
  return result;
}

}  // namespace

int event_base_priority_init(event_base* base, int count) {
  const BaseLock locked(*base);
  if (base->active_count != 0 || count < 1 || count >= EVENT_MAX_PRIORITIES) return -1;
  if (count == base->queue_count) return 0;
  void* const memory = event_mm_calloc_(static_cast<std::size_t>(count), sizeof(event_base::Queue));
  if (memory == nullptr) {
    event_warn("%s: calloc", "event_base_priority_init");
    return -1;
  }
  if (base->queues != nullptr) event_mm_free_(base->queues);
  base->queues = static_cast<event_base::Queue*>(memory);
  for (int i = 0; i < count; ++i) new (base->queues + i) event_base::Queue;
  base->queue_count = count;
  return 0;
}

int event_base_get_npriorities(event_base* base) {
  if (base == nullptr) base = event_global_current_base_;
  const BaseLock locked(*base);
  return base->queue_count;
}

int event_base_get_num_events(event_base* base, unsigned type) {
  const BaseLock locked(*base);
  int result = 0;
  if ((type & EVENT_BASE_COUNT_ACTIVE) != 0) result += base->active_count;
  if ((type & EVENT_BASE_COUNT_VIRTUAL) != 0) result += base->virtual_count;
  if ((type & EVENT_BASE_COUNT_ADDED) != 0) result += base->event_count;
  return result;
}

int event_base_get_max_events(event_base* base, unsigned type, int clear) {
  const BaseLock locked(*base);
  int result = 0;
  if ((type & EVENT_BASE_COUNT_ACTIVE) != 0) result += take_max(base->active_count_max, clear);
  if ((type & EVENT_BASE_COUNT_VIRTUAL) != 0) result += take_max(base->virtual_count_max, clear);
  if ((type & EVENT_BASE_COUNT_ADDED) != 0) result += take_max(base->event_count_max, clear);
  return result;
}

void event_base_add_virtual_(event_base* base) {
  const BaseLock locked(*base);
  if (++base->virtual_count > base->virtual_count_max)
    base->virtual_count_max = base->virtual_count;
}

void event_base_del_virtual_(event_base* base) {
  const BaseLock locked(*base);
  if (--base->virtual_count == 0) base->wake_if_needed();
}

int event_base_once(event_base* base, evutil_socket_t fd, short events, event_callback_fn callback,
                    void* argument, const timeval* timeout) {
  if (base == nullptr || (events & (EV_SIGNAL | EV_PERSIST)) != 0) return -1;
  constexpr short io = EV_READ | EV_WRITE | EV_CLOSED;
  if ((events & (EV_TIMEOUT | io)) == 0) return -1;
  auto* const once = static_cast<Once*>(event_mm_calloc_(1, sizeof(Once)));
  if (once == nullptr) return -1;
  once->callback = callback;
  once->argument = argument;
  const bool only_timeout = (events & io) == 0;
  event_assign(&once->ev, base, only_timeout ? -1 : fd, static_cast<short>(events & io), &on_once,
               once);
  const BaseLock locked(*base);
  if (only_timeout && (timeout == nullptr || !timerisset(timeout))) {
    event_active_nolock_(&once->ev, EV_TIMEOUT, 1);
  } else if (const int failed = event_add_nolock_(&once->ev, timeout, 0); failed != 0) {
    le::debug::note_teardown(&once->ev);
    event_mm_free_(once);
    return failed;
  }
  once->next = base->onces;
  once->link = &base->onces;
  if (once->next != nullptr) once->next->link = &once->next;
  base->onces = once;
  return 0;
}

int event_base_loopexit(event_base* base, const timeval* timeout) {
  return event_base_once(base, -1, EV_TIMEOUT, &on_exit_time, base, timeout);
}

int event_base_loopbreak(event_base* base) {
  if (base == nullptr) return -1;
  const BaseLock locked(*base);
  base->break_asked = true;
  if (base->running && !base->in_loop_thread()) return base->wake();
  return 0;
}

int event_base_loopcontinue(event_base* base) {
  if (base == nullptr) return -1;
  const BaseLock locked(*base);
  base->continue_asked = true;
  if (base->running && !base->in_loop_thread()) return base->wake();
  return 0;
}

int event_base_got_break(event_base* base) {
  const BaseLock locked(*base);
  return base->break_asked ? 1 : 0;
}

int event_base_got_exit(event_base* base) {
  const BaseLock locked(*base);
  return base->exit_asked ? 1 : 0;
}

event* event_base_get_running_event(event_base* base) {
  const BaseLock locked(*base);
  if (!base->running || !base->in_loop_thread()) return nullptr;
  if (base->current == nullptr || (base->current->evcb_flags & EVLIST_INIT) == 0) return nullptr;
  return le::event_of(base->current);
}

int event_base_gettimeofday_cached(event_base* base, timeval* time) {
  if (base == nullptr) base = event_global_current_base_;
  if (base == nullptr) return ::gettimeofday(time, nullptr);
  const BaseLock locked(*base);
  if (base->cached_us == 0) return ::gettimeofday(time, nullptr);
  *time = le::to_timeval(base->cached_us + base->wall_offset_us);
  return 0;
}

int event_gettime_monotonic(event_base* base, timeval* time) {
  if (base == nullptr || time == nullptr) return -1;
  const BaseLock locked(*base);
  *time = le::to_timeval(base->poller->monotonic_ns() / 1000);
  return 0;
}

int event_base_update_cache_time(event_base* base) {
  if (base == nullptr) base = event_global_current_base_;
  if (base == nullptr) return -1;
  const BaseLock locked(*base);
  if (base->running) base->update_cached_time();
  return 0;
}

void event_base_active_by_fd(event_base* base, evutil_socket_t fd, short events) {
  const BaseLock locked(*base);
  if ((events & EV_TIMEOUT) == 0) {
    base->fds.activate(fd, static_cast<short>(events & (EV_READ | EV_WRITE | EV_CLOSED)));
    return;
  }
  base->timeouts.for_each([fd](event& ev) {
    if (ev.ev_fd == fd) event_active_nolock_(&ev, EV_TIMEOUT, 1);
  });
  for (int i = 0; i < base->common_count; ++i) {
    for (event* ev = base->commons[i]->events.tqh_first; ev != nullptr;
         ev = ev->ev_timeout_pos.ev_next_with_common_timeout.tqe_next) {
      if (ev->ev_fd == fd) event_active_nolock_(ev, EV_TIMEOUT, 1);
    }
  }
}

void event_base_active_by_signal(event_base* base, int number) {
  const BaseLock locked(*base);
  base->signals.activate(number, 1);
}

// Windows only.
extern "C" int event_base_start_iocp_(event_base*, int) { return -1; }
extern "C" void event_base_stop_iocp_(event_base*) {}
