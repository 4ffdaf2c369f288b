// The functions of event2/bufferevent.h that every kind of bufferevent has.

#include <event2/buffer.h>

#include "libevent/bufferevent/bufferevent.h"

extern "C" {
#include <event2/bufferevent_compat.h>
}

using tambour::libevent::BevLocked;
using tambour::libevent::BufferEvent;
using tambour::libevent::Held;
using tambour::libevent::of;
namespace suspended = tambour::libevent::suspended;

void bufferevent_free(bufferevent* bufev) {
  BufferEvent& bev = of(bufev);
  tambour::libevent::lock(bev.lock);
  bufferevent_setcb(bufev, nullptr, nullptr, nullptr, nullptr);
  bev.release();
}

void bufferevent_incref(bufferevent* bufev) {
  BufferEvent& bev = of(bufev);
  bev.acquire();
  tambour::libevent::unlock(bev.lock);
}

int bufferevent_decref(bufferevent* bufev) {
  BufferEvent& bev = of(bufev);
  tambour::libevent::lock(bev.lock);
  return bev.release() ? 1 : 0;
}

void bufferevent_lock(bufferevent* bufev) { of(bufev).acquire(); }
void bufferevent_unlock(bufferevent* bufev) { of(bufev).release(); }

void bufferevent_setcb(bufferevent* bufev, bufferevent_data_cb readcb, bufferevent_data_cb writecb,
                       bufferevent_event_cb eventcb, void* cbarg) {
  const BevLocked locked(of(bufev));
  bufev->readcb = readcb;
  bufev->writecb = writecb;
  bufev->errorcb = eventcb;
  bufev->cbarg = cbarg;
}

void bufferevent_getcb(bufferevent* bufev, bufferevent_data_cb* readcb_ptr,
                       bufferevent_data_cb* writecb_ptr, bufferevent_event_cb* eventcb_ptr,
                       void** cbarg_ptr) {
  const BevLocked locked(of(bufev));
  if (readcb_ptr != nullptr) *readcb_ptr = bufev->readcb;
  if (writecb_ptr != nullptr) *writecb_ptr = bufev->writecb;
  if (eventcb_ptr != nullptr) *eventcb_ptr = bufev->errorcb;
  if (cbarg_ptr != nullptr) *cbarg_ptr = bufev->cbarg;
}

evbuffer* bufferevent_get_input(bufferevent* bufev) { return bufev->input; }
evbuffer* bufferevent_get_output(bufferevent* bufev) { return bufev->output; }
event_base* bufferevent_get_base(bufferevent* bev) { return bev->ev_base; }

int bufferevent_get_priority(const bufferevent* bev) {
  return event_initialized(&bev->ev_read) != 0 ? event_get_priority(&bev->ev_read)
                                               : event_base_get_npriorities(bev->ev_base) / 2;
}

int bufferevent_write(bufferevent* bufev, const void* data, size_t size) {
  return evbuffer_add(bufev->output, data, size) == 0 ? 0 : -1;
}
int bufferevent_write_buffer(bufferevent* bufev, evbuffer* buf) {
  return evbuffer_add_buffer(bufev->output, buf) == 0 ? 0 : -1;
}
size_t bufferevent_read(bufferevent* bufev, void* data, size_t size) {
  return static_cast<size_t>(evbuffer_remove(bufev->input, data, size));
}
int bufferevent_read_buffer(bufferevent* bufev, evbuffer* buf) {
  return evbuffer_add_buffer(buf, bufev->input);
}

int bufferevent_enable(bufferevent* bufev, short event) {
  BufferEvent& bev = of(bufev);
  const Held held(bev);
  int started = event;
  if (bev.read_suspended != 0) started &= ~EV_READ;
  if (bev.write_suspended != 0) started &= ~EV_WRITE;
  bev.enabled = static_cast<short>(bev.enabled | event);
  return started != 0 && bev.start(static_cast<short>(started)) < 0 ? -1 : 0;
}

int bufferevent_disable(bufferevent* bufev, short event) {
  BufferEvent& bev = of(bufev);
  const BevLocked locked(bev);
  bev.enabled = static_cast<short>(bev.enabled & ~event);
  return bev.stop(event) < 0 ? -1 : 0;
}

short bufferevent_get_enabled(bufferevent* bufev) {
  const BevLocked locked(of(bufev));
  return bufev->enabled;
}

int bufferevent_set_timeouts(bufferevent* bufev, const timeval* timeout_read,
                             const timeval* timeout_write) {
  const BevLocked locked(of(bufev));
  bufev->timeout_read = timeout_read != nullptr ? *timeout_read : timeval{};
  bufev->timeout_write = timeout_write != nullptr ? *timeout_write : timeval{};
  return of(bufev).adjust_timeouts();
}

void bufferevent_settimeout(bufferevent* bufev, int timeout_read, int timeout_write) {
  const timeval reading{timeout_read, 0};
  const timeval writing{timeout_write, 0};
  bufferevent_set_timeouts(bufev, timeout_read != 0 ? &reading : nullptr,
                           timeout_write != 0 ? &writing : nullptr);
}

namespace {

void check_watermark(evbuffer* input, const evbuffer_cb_info* /*info*/, void* argument) {
  BufferEvent& bev = of(static_cast<bufferevent*>(argument));
  if (evbuffer_get_length(input) >= bev.wm_read.high) {
    bev.suspend_reading(suspended::watermark);
  } else {
    bev.resume_reading(suspended::watermark);
  }
}

void set_high_watermark(BufferEvent& bev) noexcept {
  constexpr ev_uint32_t never_deferred = 2;
  if (bev.wm_read.high == 0) {
    if (bev.watermark_callback != nullptr)
      evbuffer_cb_clear_flags(bev.input, bev.watermark_callback, EVBUFFER_CB_ENABLED);
    return bev.resume_reading(suspended::watermark);
  }
  if (bev.watermark_callback == nullptr)
    bev.watermark_callback =
        evbuffer_add_cb(bev.input, &check_watermark, static_cast<bufferevent*>(&bev));
  if (bev.watermark_callback != nullptr)
    evbuffer_cb_set_flags(bev.input, bev.watermark_callback, EVBUFFER_CB_ENABLED | never_deferred);
  check_watermark(bev.input, nullptr, static_cast<bufferevent*>(&bev));
}

}  // namespace

void bufferevent_setwatermark(bufferevent* bufev, short events, size_t lowmark, size_t highmark) {
  const Held held(of(bufev));
  if ((events & EV_WRITE) != 0) bufev->wm_write = {lowmark, highmark};
  if ((events & EV_READ) != 0) {
    bufev->wm_read = {lowmark, highmark};
    set_high_watermark(of(bufev));
  }
}

int bufferevent_getwatermark(bufferevent* bufev, short events, size_t* lowmark, size_t* highmark) {
  if (events != EV_READ && events != EV_WRITE) return -1;
  const BevLocked locked(of(bufev));
  const event_watermark& marks = events == EV_READ ? bufev->wm_read : bufev->wm_write;
  if (lowmark != nullptr) *lowmark = marks.low;
  if (highmark != nullptr) *highmark = marks.high;
  return 0;
}

int bufferevent_flush(bufferevent* bufev, short iotype, bufferevent_flush_mode mode) {
  const Held held(of(bufev));
  return of(bufev).flush(iotype, mode);
}

namespace {
constexpr int trigger_options = BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS;
}

void bufferevent_trigger(bufferevent* bufev, short iotype, int options) {
  const Held held(of(bufev));
  of(bufev).trigger(iotype, options & trigger_options);
}

void bufferevent_trigger_event(bufferevent* bufev, short kind, int options) {
  const Held held(of(bufev));
  of(bufev).run_event_callback(kind, options & trigger_options);
}

int bufferevent_setfd(bufferevent* bufev, evutil_socket_t fd) {
  const Held held(of(bufev));
  return of(bufev).set_fd(fd) ? 0 : -1;
}

evutil_socket_t bufferevent_getfd(bufferevent* bufev) {
  const BevLocked locked(of(bufev));
  return of(bufev).fd();
}

bufferevent* bufferevent_get_underlying(bufferevent* bufev) {
  const BevLocked locked(of(bufev));
  return of(bufev).underlying_one();
}

// What libevent's other libraries call.
extern "C" {

int bufferevent_init_common_(BufferEvent* bev, event_base* base, int options) {
  return bev->init(base, options) ? 0 : -1;
}
void bufferevent_init_generic_timeout_cbs_(bufferevent* bufev) { of(bufev).use_timeout_events(); }
int bufferevent_generic_adj_timeouts_(bufferevent* bufev) {
  return of(bufev).adjust_timeout_events();
}
int bufferevent_generic_adj_existing_timeouts_(bufferevent* bufev) {
  return of(bufev).adjust_socket_events();
}
ev_ssize_t bufferevent_get_read_max_(bufferevent* bufev) {
  return tambour::libevent::read_allowance(of(bufev));
}
ev_ssize_t bufferevent_get_write_max_(bufferevent* bufev) {
  return tambour::libevent::write_allowance(of(bufev));
}
void bufferevent_decrement_read_buckets_(bufferevent* bufev, ev_ssize_t bytes) {
  tambour::libevent::count_read(of(bufev), bytes);
}
void bufferevent_decrement_write_buckets_(bufferevent* bufev, ev_ssize_t bytes) {
  tambour::libevent::count_written(of(bufev), bytes);
}
void bufferevent_incref_and_lock_(bufferevent* bufev) { of(bufev).acquire(); }
int bufferevent_decref_and_unlock_(bufferevent* bufev) { return of(bufev).release() ? 1 : 0; }
void bufferevent_suspend_read_(bufferevent* bufev, std::uint16_t why) {
  of(bufev).suspend_reading(why);
}
void bufferevent_unsuspend_read_(bufferevent* bufev, std::uint16_t why) {
  of(bufev).resume_reading(why);
}
void bufferevent_suspend_write_(bufferevent* bufev, std::uint16_t why) {
  of(bufev).suspend_writing(why);
}
void bufferevent_unsuspend_write_(bufferevent* bufev, std::uint16_t why) {
  of(bufev).resume_writing(why);
}
void bufferevent_run_readcb_(bufferevent* bufev, int options) {
  of(bufev).run_read_callback(options);
}
void bufferevent_run_writecb_(bufferevent* bufev, int options) {
  of(bufev).run_write_callback(options);
}
void bufferevent_run_eventcb_(bufferevent* bufev, short kind, int options) {
  of(bufev).run_event_callback(kind, options);
}
int bufferevent_disable_hard_(bufferevent* bufev, short event) {
  const BevLocked locked(of(bufev));
  of(bufev).connecting = false;
  return bufferevent_disable(bufev, event);
}
int bufferevent_enable_locking_(bufferevent* bufev, void* lock) {
  return of(bufev).enable_locking(lock);
}
int bufferevent_get_options_(bufferevent* bufev) {
  const BevLocked locked(of(bufev));
  return of(bufev).options;
}
int bufferevent_add_event_(event* added, const timeval* timeout) {
  return tambour::libevent::add_event(*added, *timeout);
}

}  // extern "C"
