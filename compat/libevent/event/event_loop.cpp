// The iteration: waits, activates what is due, runs the active callbacks by priority.

#include <cstdlib>
#include <utility>

#include "common/observation.h"
#include "libevent/event/base.h"
#include "libevent/event/debug_mode.h"
#include "libevent/event/observed.h"

namespace le = tambour::libevent;

std::int64_t event_base::read_clock() noexcept {
  const std::int64_t us = poller->monotonic_ns() / 1000;
  constexpr std::int64_t stale_us = 5 * le::us_per_s;
  if (offset_read_at_us == 0 || offset_read_at_us + stale_us < us) {
    wall_offset_us = poller->wall_ns() / 1000 - us;
    offset_read_at_us = us;
  }
  return us;
}

std::int64_t event_base::timeout_begin() noexcept {
  if (cached_us != 0 && !runs_in_other_thread()) return cached_us;
  // Rounded up: expiry rounds down, and no timeout may expire early.
  return (poller->monotonic_ns() + 999) / 1000;
}

int event_base::wake() noexcept {
  if (!notifiable) return -1;
  if (std::exchange(wake_pending, true)) return 0;
  poller->wake();
  return 0;
}

void event_base::wait_for_callback() noexcept {
  if (current_done == nullptr || evthread_cond_fns_.wait_condition == nullptr) return;
  ++waiters;
  evthread_cond_fns_.wait_condition(current_done, base_lock, nullptr);
}

void event_base::poll(bool may_block) noexcept {
  std::int64_t timeout_ns = 0;
  if (may_block && !signals.any_pending()) {
    timeout_ns = -1;
    if (!timeouts.empty()) {
      const std::int64_t now_ns = poller->monotonic_ns();
      const std::int64_t due_us = timeouts.next();
      const std::int64_t due_ns = due_us > INT64_MAX / 1000 ? INT64_MAX : due_us * 1000;
      timeout_ns = due_ns > now_ns ? due_ns - now_ns : 0;
    }
  }
  submit_changes();
  polling = true;
  unlock();
  poller->poll(timeout_ns, ready);
  lock();
  polling = false;
  take_results();
}

void event_base::submit_changes() noexcept {
  cached_us = 0;
  signals.before_wait();
  signals.submit_changes();
  fds.submit_changes();
}

void event_base::take_results() noexcept {
  wake_pending = false;
  if (!ready.empty()) {
    ready.run_all();
    // The inspector has woken the loop, perhaps.
    if (observed != nullptr) tambour::compat::observer()->answer(observed);
  }
  ready.reset_any_ran();
  fds.activate_ready();
}

void event_base::activate_expired() noexcept {
  if (timeouts.empty()) return;
  const std::int64_t at = now();
  if (timeouts.next() > at) return;
  timeouts.expire(at, [](event& ev) {
    delete_event(&ev, le::Block::never);
    event_active_nolock_(&ev, EV_TIMEOUT, 1);
  });
}

void event_base::activate_later_queue() noexcept {
  while (event_callback* const callback = later.first()) {
    later.remove(*callback);
    callback->evcb_flags =
        static_cast<short>((callback->evcb_flags & ~EVLIST_ACTIVE_LATER) | EVLIST_ACTIVE);
    queues[callback->evcb_pri].append(*callback);
    if (callback->evcb_closure == le::closure_self) ++deferred_count;
  }
}

namespace {

/// Adds the timeout of a persistent event again, counted from when it was due.
void renew(event_base& base, event& ev) {
  const timeval interval = ev.ev_.ev_io.ev_timeout;
  if (interval.tv_sec == 0 && interval.tv_usec == 0) return;
  const std::int64_t now = base.now();
  // The upper bits of a common timeout are not part of its time.
  const bool is_common = base.common_of(ev.ev_timeout) != nullptr;
  const std::int64_t delay =
      is_common ? le::microseconds_of(interval) : le::microseconds_of_relative(interval);
  const bool by_timeout = (ev.ev_res & EV_TIMEOUT) != 0;
  std::int64_t at = (by_timeout ? le::microseconds_of(ev.ev_timeout) : now) + delay;
  if (at < now) at = now + delay;
  timeval until = le::to_timeval(at);
  if (is_common) {
    until.tv_usec |=
        static_cast<suseconds_t>(le::common::bits(interval) & ~le::common::microseconds);
  }
  event_add_nolock_(&ev, &until, 1);
}

/// Invokes the callback of a signal as often as the signal came. The callback may delete the event.
void run_signal(event_base& base, event& ev) {
  short calls = ev.ev_.ev_signal.ev_ncalls;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wdangling-pointer"
  // Reset before this function returns, unless event_del() has done so.
  if (calls != 0) ev.ev_.ev_signal.ev_pncalls = &calls;
#pragma GCC diagnostic pop
  base.unlock();
  while (calls != 0) {
    --calls;
    ev.ev_.ev_signal.ev_ncalls = calls;
    if (calls == 0) ev.ev_.ev_signal.ev_pncalls = nullptr;
    ev.ev_evcallback.evcb_cb_union.evcb_callback(ev.ev_fd, ev.ev_res, ev.ev_evcallback.evcb_arg);
    base.lock();
    const bool must_stop = base.break_asked;
    base.unlock();
    if (!must_stop) continue;
    if (calls != 0) ev.ev_.ev_signal.ev_pncalls = nullptr;
    return;
  }
}

}  // namespace

/// Runs one callback, with the lock released.
void event_base::run(event_callback& callback, event* ev) {
  const auto function = callback.evcb_cb_union;
  void* const argument = callback.evcb_arg;
  switch (callback.evcb_closure) {
    case le::closure_signal:
      run_signal(*this, *ev);
      return;
    case le::closure_persist:
      renew(*this, *ev);
      [[fallthrough]];
    case le::closure_event: {
      const int fd = ev->ev_fd;
      const short result = ev->ev_res;
      unlock();
      function.evcb_callback(fd, result, argument);
      return;
    }
    case le::closure_self:
      unlock();
      function.evcb_selfcb(&callback, argument);
      return;
    case le::closure_finalize_event:
    case le::closure_finalize_free: {
      const bool must_free = callback.evcb_closure == le::closure_finalize_free;
      current = nullptr;
      unlock();
      // First, because the function may assign the event again.
      le::debug::note_teardown(ev);
      function.evcb_evfinalize(ev, argument);
      if (must_free) event_mm_free_(ev);
      return;
    }
    case le::closure_finalize_callback:
      current = nullptr;
      unlock();
      function.evcb_cbfinalize(&callback, argument);
      return;
    default:
      event_errx(EVENT_ERR_ABORT_, "an active callback of no kind");
  }
}

/// Returns the number of callbacks that count, or -1 if the loop must stop.
template <class RunOne>
int event_base::process_queue(Queue& queue, int limit, std::int64_t until_us, RunOne run_one) {
  int count = 0;
  while (event_callback* const callback = queue.first()) {
    event* ev = nullptr;
    if ((callback->evcb_flags & EVLIST_INIT) != 0) {
      ev = le::event_of(callback);
      if ((ev->ev_events & EV_PERSIST) != 0 || (callback->evcb_flags & EVLIST_FINALIZING) != 0) {
        remove_active(*callback);
      } else {
        delete_event(ev, le::Block::never);
      }
    } else {
      remove_active(*callback);
    }
    if ((callback->evcb_flags & EVLIST_INTERNAL) == 0) ++count;
    current = callback;
    waiters = 0;
    run_one(*callback, ev);
    lock();
    current = nullptr;
    if (waiters != 0) {
      waiters = 0;
      if (evthread_cond_fns_.signal_condition != nullptr)
        evthread_cond_fns_.signal_condition(current_done, 1);
    }
    if (break_asked) return -1;
    if (count >= limit) return count;
    if (count != 0 && until_us >= 0) {
      update_cached_time();
      if (now() >= until_us) return count;
    }
    if (continue_asked) break;
  }
  return count;
}

template <class RunOne>
int event_base::process_queues(RunOne run_one) {
  std::int64_t until_us = -1;
  if (max_dispatch_us >= 0) {
    update_cached_time();
    until_us = now() + max_dispatch_us;
  }
  int count = 0;
  for (int i = 0; i < queue_count; ++i) {
    if (queues[i].first() == nullptr) continue;
    running_priority = i;
    count = i < limit_after_priority
                ? process_queue(queues[i], INT32_MAX, -1, run_one)
                : process_queue(queues[i], max_dispatch_callbacks, until_us, run_one);
    if (count != 0) break;
  }
  running_priority = -1;
  return count;
}

int event_base::process_active() {
  const auto run_one = [this](event_callback& callback, event* ev) { run(callback, ev); };
  if (observed == nullptr) [[likely]]
    return process_queues(run_one);
  const tambour::compat::TimedIteration iteration(*observed);
  return process_queues([&](event_callback& callback, event* ev) {
    const tambour::compat::TimedCall call(*observed, le::function_of(callback));
    run(callback, ev);
  });
}

int event_base_loop(event_base* base, int flags) {
  const le::BaseLock locked(*base);
  if (base->running) {
    event_warnx(
        "%s: reentrant invocation.  Only one event_base_loop can run on each event_base at "
        "once.",
        "event_base_loop");
    return -1;
  }
  base->running = true;
  base->signals.receive();
  base->cached_us = 0;
  if (evthread_id_fn_ != nullptr) base->owner = evthread_id_fn_();
  base->exit_asked = false;
  base->break_asked = false;
  int result = 0;
  for (bool done = false; !done;) {
    base->continue_asked = false;
    base->deferred_count = 0;
    if (base->exit_asked || base->break_asked) break;
    const bool may_block = base->active_count == 0 && (flags & EVLOOP_NONBLOCK) == 0;
    if ((flags & EVLOOP_NO_EXIT_ON_EMPTY) == 0 && !base->has_events() && base->active_count == 0) {
      result = 1;
      break;
    }
    base->activate_later_queue();
    base->poll(may_block);
    base->update_cached_time();
    base->activate_expired();
    base->signals.queue_arrived();
    if (base->active_count != 0) {
      const int count = base->process_active();
      done = (flags & EVLOOP_ONCE) != 0 && base->active_count == 0 && count != 0;
    } else {
      done = (flags & EVLOOP_NONBLOCK) != 0;
    }
  }
  base->cached_us = 0;
  base->running = false;
  base->fds.submit_changes();
  base->poller->release_unwatched_fds();
  return result;
}

int event_base_dispatch(event_base* base) { return event_base_loop(base, 0); }
