// The functions of event2/event_compat.h, which use one base of the process; the version; what is
// global.

#include <event2/event_compat.h>

#include "libevent/event/base.h"
#include "libevent/event/debug_mode.h"
#include "libevent/event/threads.h"

event_base* event_global_current_base_ = nullptr;

event_base* event_init() {
  event_base* const base = event_base_new_with_config(nullptr);
  if (base == nullptr) event_errx(1, "%s: Unable to construct event_base", "event_init");
  event_global_current_base_ = base;
  return base;
}

int event_dispatch() { return event_base_loop(event_global_current_base_, 0); }
int event_loop(int flags) { return event_base_loop(event_global_current_base_, flags); }
int event_loopexit(const timeval* timeout) {
  return event_base_loopexit(event_global_current_base_, timeout);
}
int event_loopbreak() { return event_base_loopbreak(event_global_current_base_); }
int event_once(evutil_socket_t fd, short events, void (*callback)(evutil_socket_t, short, void*),
               void* argument, const timeval* timeout) {
  return event_base_once(event_global_current_base_, fd, events, callback, argument, timeout);
}
const char* event_get_method() { return event_base_get_method(event_global_current_base_); }
int event_priority_init(int count) {
  return event_base_priority_init(event_global_current_base_, count);
}
void event_set(event* ev, evutil_socket_t fd, short events,
               void (*callback)(evutil_socket_t, short, void*), void* argument) {
  event_assign(ev, event_global_current_base_, fd, events, callback, argument);
}

const char* event_get_version() { return EVENT__VERSION; }
ev_uint32_t event_get_version_number() { return EVENT__NUMERIC_VERSION; }

extern "C" {
void event_disable_debug_mode();
void evutil_free_globals_();
}

void libevent_global_shutdown() {
  event_disable_debug_mode();
  evutil_free_globals_();
}

// Global state is guarded by locks of its own, or not shared.
int event_global_setup_locks_(int) { return 0; }
extern "C" int evsig_global_setup_locks_(int) { return 0; }
extern "C" void evsig_free_globals_() {}
