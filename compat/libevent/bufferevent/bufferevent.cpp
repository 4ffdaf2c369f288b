// Creation, references and the end of bufferevents, and their callbacks.

#include "libevent/bufferevent/bufferevent.h"

#include <cerrno>

#include <event2/buffer.h>

using tambour::libevent::BevLocked;
using tambour::libevent::BufferEvent;
using tambour::libevent::Held;

extern "C" void evbuffer_set_parent_(evbuffer* buffer, bufferevent* bev);

namespace tambour::libevent {

bool BufferEvent::init(event_base* base, int chosen) noexcept {
  constexpr int both = BEV_OPT_DEFER_CALLBACKS | BEV_OPT_UNLOCK_CALLBACKS;
  ev_base = base;
  enabled = EV_WRITE;
  options = chosen;
  input = evbuffer_new();
  output = evbuffer_new();
  bool count = input != nullptr && output != nullptr;
  if (count && (options & BEV_OPT_THREADSAFE) != 0) count = enable_locking(nullptr) == 0;
  if (count && (options & both) == BEV_OPT_UNLOCK_CALLBACKS) {
    event_warnx("UNLOCK_CALLBACKS requires DEFER_CALLBACKS");
    count = false;
  }
  if (!count) {
    if (input != nullptr) evbuffer_free(input);
    if (output != nullptr) evbuffer_free(output);
    if (owns_lock) free_lock(lock, EVTHREAD_LOCKTYPE_RECURSIVE);
    return false;
  }
  event_deferred_cb_init_(
      &deferred, static_cast<std::uint8_t>(event_base_get_npriorities(base) / 2),
      (options & BEV_OPT_UNLOCK_CALLBACKS) != 0 ? &run_deferred_unlocked : &run_deferred,
      static_cast<bufferevent*>(this));
  evbuffer_set_parent_(input, this);
  evbuffer_set_parent_(output, this);
  return true;
}

int BufferEvent::enable_locking(void* with) noexcept {
  if (lock != nullptr) return -1;
  BufferEvent* const below = underlying_one();
  bool local = false;
  if (with == nullptr && below != nullptr) with = below->lock;
  if (with == nullptr) {
    with = make_lock(EVTHREAD_LOCKTYPE_RECURSIVE);
    if (with == nullptr) return -1;
    local = true;
  }
  lock = with;
  owns_lock = local;
  evbuffer_enable_locking(input, with);
  evbuffer_enable_locking(output, with);
  if (below != nullptr && below->lock == nullptr) below->enable_locking(with);
  return 0;
}

void BufferEvent::retire() noexcept {
  unlink();
  // No function of the group may resume a member that is about to be freed.
  leave_group(*this);
  // Deferred callbacks of the buffers hold references until they have run.
  constexpr int callbacks_max = 4;
  event_callback* callbacks[callbacks_max] = {&ev_read.ev_evcallback, &ev_write.ev_evcallback,
                                              &deferred};
  int count = 3;
  if (event* const refill = refill_event(*this); refill != nullptr)
    callbacks[count++] = &refill->ev_evcallback;
  event_callback_finalize_many_(ev_base, count, callbacks, [](event_callback*, void* argument) {
    of(static_cast<bufferevent*>(argument)).destroy();
  });
  tambour::libevent::unlock(lock);
}

void BufferEvent::destroy() noexcept {
  tambour::libevent::lock(lock);
  BufferEvent* const below = underlying_one();
  destruct();
  evbuffer_set_parent_(input, nullptr);
  evbuffer_set_parent_(output, nullptr);
  evbuffer_free(input);
  evbuffer_free(output);
  free_limit(*this);
  if (address != nullptr) event_mm_free_(address);
  void* const held = lock;
  if (owns_lock && below != nullptr && below->lock == held) {
    below->owns_lock = true;
    owns_lock = false;
  }
  const bool local = owns_lock;
  tambour::libevent::unlock(held);
  if (local) free_lock(held, EVTHREAD_LOCKTYPE_RECURSIVE);
  event_mm_free_(this);
  if (below != nullptr) {
    tambour::libevent::lock(below->lock);
    below->release();
  }
}

void BufferEvent::suspend_reading(std::uint16_t why) noexcept {
  const BevLocked locked(*this);
  if (read_suspended == 0) stop(EV_READ);
  read_suspended |= why;
}

void BufferEvent::resume_reading(std::uint16_t why) noexcept {
  const BevLocked locked(*this);
  read_suspended &= static_cast<std::uint16_t>(~why);
  // The caller may have freed it in a callback.
  if (references > 0 && read_suspended == 0 && (enabled & EV_READ) != 0) start(EV_READ);
}

void BufferEvent::suspend_writing(std::uint16_t why) noexcept {
  const BevLocked locked(*this);
  if (write_suspended == 0) stop(EV_WRITE);
  write_suspended |= why;
}

void BufferEvent::resume_writing(std::uint16_t why) noexcept {
  const BevLocked locked(*this);
  write_suspended &= static_cast<std::uint16_t>(~why);
  if (references > 0 && write_suspended == 0 && (enabled & EV_WRITE) != 0) start(EV_WRITE);
}

void BufferEvent::schedule() noexcept {
  // Until the callback has run.
  if (event_deferred_cb_schedule_(ev_base, &deferred) != 0) ++references;
}

void BufferEvent::run_read_callback(int more) noexcept {
  if (readcb == nullptr) return;
  if (((options | more) & BEV_OPT_DEFER_CALLBACKS) != 0) {
    read_pending = true;
    return schedule();
  }
  readcb(this, cbarg);
  check_high_watermark();
}

void BufferEvent::run_write_callback(int more) noexcept {
  if (writecb == nullptr) return;
  if (((options | more) & BEV_OPT_DEFER_CALLBACKS) != 0) {
    write_pending = true;
    return schedule();
  }
  writecb(this, cbarg);
}

void BufferEvent::run_event_callback(short kind, int more) noexcept {
  if (errorcb == nullptr) return;
  if (((options | more) & BEV_OPT_DEFER_CALLBACKS) != 0) {
    event_pending = static_cast<short>(event_pending | kind);
    error_pending = errno;
    return schedule();
  }
  errorcb(this, kind, cbarg);
}

void BufferEvent::trigger(short events, int more) noexcept {
  const bool any = (more & BEV_TRIG_IGNORE_WATERMARKS) != 0;
  if ((events & EV_READ) != 0 && (any || evbuffer_get_length(input) >= wm_read.low))
    run_read_callback(more);
  if ((events & EV_WRITE) != 0 && (any || evbuffer_get_length(output) <= wm_write.low))
    run_write_callback(more);
}

/// A read callback that leaves the buffer full would never be invoked again: nothing more is read.
void BufferEvent::check_high_watermark() noexcept {
  if (wm_read.high == 0 || (enabled & EV_READ) == 0) return;
  if (evbuffer_get_length(input) >= wm_read.high) trigger(EV_READ, BEV_OPT_DEFER_CALLBACKS);
}

void BufferEvent::run_deferred(event_callback* /*callback*/, void* argument) {
  BufferEvent& bev = of(static_cast<bufferevent*>(argument));
  tambour::libevent::lock(bev.lock);
  if ((bev.event_pending & BEV_EVENT_CONNECTED) != 0 && bev.errorcb != nullptr) {
    bev.event_pending = static_cast<short>(bev.event_pending & ~BEV_EVENT_CONNECTED);
    bev.errorcb(&bev, BEV_EVENT_CONNECTED, bev.cbarg);
  }
  if (bev.read_pending && bev.readcb != nullptr) {
    bev.read_pending = false;
    bev.readcb(&bev, bev.cbarg);
    bev.check_high_watermark();
  }
  if (bev.write_pending && bev.writecb != nullptr) {
    bev.write_pending = false;
    bev.writecb(&bev, bev.cbarg);
  }
  if (bev.event_pending != 0 && bev.errorcb != nullptr) {
    const short kind = bev.event_pending;
    errno = bev.error_pending;
    bev.event_pending = 0;
    bev.error_pending = 0;
    bev.errorcb(&bev, kind, bev.cbarg);
  }
  bev.release();
}

void BufferEvent::run_deferred_unlocked(event_callback* /*callback*/, void* argument) {
  BufferEvent& bev = of(static_cast<bufferevent*>(argument));
  // The callbacks may change or free the bufferevent, of which a reference is held.
  const auto unlocked = [&bev](auto call) {
    void* const held = bev.lock;
    tambour::libevent::unlock(held);
    call();
    tambour::libevent::lock(held);
  };
  tambour::libevent::lock(bev.lock);
  if ((bev.event_pending & BEV_EVENT_CONNECTED) != 0 && bev.errorcb != nullptr) {
    bev.event_pending = static_cast<short>(bev.event_pending & ~BEV_EVENT_CONNECTED);
    unlocked([&bev, callback = bev.errorcb, user = bev.cbarg] {
      callback(&bev, BEV_EVENT_CONNECTED, user);
    });
  }
  if (bev.read_pending && bev.readcb != nullptr) {
    bev.read_pending = false;
    unlocked([&bev, callback = bev.readcb, user = bev.cbarg] { callback(&bev, user); });
    bev.check_high_watermark();
  }
  if (bev.write_pending && bev.writecb != nullptr) {
    bev.write_pending = false;
    unlocked([&bev, callback = bev.writecb, user = bev.cbarg] { callback(&bev, user); });
  }
  if (bev.event_pending != 0 && bev.errorcb != nullptr) {
    const short kind = bev.event_pending;
    const int error = bev.error_pending;
    bev.event_pending = 0;
    bev.error_pending = 0;
    unlocked([&bev, kind, error, callback = bev.errorcb, user = bev.cbarg] {
      errno = error;
      callback(&bev, kind, user);
    });
  }
  bev.release();
}

namespace {

void on_read_timeout(evutil_socket_t /*fd*/, short /*events*/, void* argument) {
  BufferEvent& bev = of(static_cast<bufferevent*>(argument));
  const Held held(bev);
  bufferevent_disable(&bev, EV_READ);
  bev.run_event_callback(BEV_EVENT_TIMEOUT | BEV_EVENT_READING, 0);
}

void on_write_timeout(evutil_socket_t /*fd*/, short /*events*/, void* argument) {
  BufferEvent& bev = of(static_cast<bufferevent*>(argument));
  const Held held(bev);
  bufferevent_disable(&bev, EV_WRITE);
  bev.run_event_callback(BEV_EVENT_TIMEOUT | BEV_EVENT_WRITING, 0);
}

}  // namespace

void BufferEvent::use_timeout_events() noexcept {
  event_assign(&ev_read, ev_base, -1, EV_FINALIZE, &on_read_timeout,
               static_cast<bufferevent*>(this));
  event_assign(&ev_write, ev_base, -1, EV_FINALIZE, &on_write_timeout,
               static_cast<bufferevent*>(this));
}

int BufferEvent::adjust_timeout_events() noexcept {
  const bool reading =
      (enabled & EV_READ) != 0 && read_suspended == 0 && evutil_timerisset(&timeout_read);
  const bool writing = (enabled & EV_WRITE) != 0 && write_suspended == 0 &&
                       evutil_timerisset(&timeout_write) && evbuffer_get_length(output) != 0;
  const int read_result = reading ? event_add(&ev_read, &timeout_read) : event_del(&ev_read);
  const int write_result = writing ? event_add(&ev_write, &timeout_write) : event_del(&ev_write);
  return read_result < 0 || write_result < 0 ? -1 : 0;
}

int BufferEvent::adjust_socket_events() noexcept {
  const auto adjust = [](event& selected, short kind, const timeval& timeout) {
    if (::event_pending(&selected, kind, nullptr) == 0) return 0;
    if (evutil_timerisset(&timeout)) return event_add(&selected, &timeout);
    event_remove_timer(&selected);
    return 0;
  };
  const int reading = adjust(ev_read, EV_READ, timeout_read);
  const int writing = adjust(ev_write, EV_WRITE, timeout_write);
  return reading < 0 || writing < 0 ? -1 : 0;
}

}  // namespace tambour::libevent
