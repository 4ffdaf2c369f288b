// event_callbacks that are not events: deferred callbacks of evbuffers and bufferevents.

#include "libevent/event/base.h"
#include "libevent/event/debug_mode.h"

namespace le = tambour::libevent;
using le::BaseLock;

namespace {

/// Beyond this number per iteration, deferred callbacks wait for the next one.
constexpr int most_deferred = 32;

}  // namespace

int event_callback_activate_nolock_(event_base* base, event_callback* callback) {
  if ((callback->evcb_flags & (EVLIST_FINALIZING | EVLIST_ACTIVE)) != 0) return 0;
  int result = 1;
  if ((callback->evcb_flags & EVLIST_ACTIVE_LATER) != 0) {
    base->remove_active_later(*callback);
    result = 0;
  }
  base->insert_active(*callback);
  base->wake_if_needed();
  return result;
}

int event_callback_activate_later_nolock_(event_base* base, event_callback* callback) {
  if ((callback->evcb_flags & (EVLIST_ACTIVE | EVLIST_ACTIVE_LATER)) != 0) return 0;
  base->insert_active_later(*callback);
  base->wake_if_needed();
  return 1;
}

int event_callback_activate_(event_base* base, event_callback* callback) {
  const BaseLock locked(*base);
  return event_callback_activate_nolock_(base, callback);
}

void event_callback_init_(event_base* base, event_callback* callback) {
  *callback = {};
  callback->evcb_pri = static_cast<ev_uint8_t>(base->queue_count - 1);
}

int event_callback_cancel_(event_base* base, event_callback* callback) {
  const BaseLock locked(*base);
  return event_callback_cancel_nolock_(base, callback, 0);
}

int event_callback_cancel_nolock_(event_base* base, event_callback* callback,
                                  int even_if_finalizing) {
  if ((callback->evcb_flags & EVLIST_FINALIZING) != 0 && even_if_finalizing == 0) return 0;
  if ((callback->evcb_flags & EVLIST_INIT) != 0) {
    return le::delete_event(le::event_of(callback), even_if_finalizing != 0
                                                        ? le::Block::even_if_finalized
                                                        : le::Block::unless_finalizing);
  }
  if ((callback->evcb_flags & EVLIST_ACTIVE) != 0) {
    base->remove_active(*callback);
  } else if ((callback->evcb_flags & EVLIST_ACTIVE_LATER) != 0) {
    base->remove_active_later(*callback);
  }
  return 0;
}

void event_callback_finalize_nolock_(event_base* base, unsigned, event_callback* callback,
                                     void (*function)(event_callback*, void*)) {
  if ((callback->evcb_flags & EVLIST_INIT) != 0)
    le::delete_event(le::event_of(callback), le::Block::never);
  callback->evcb_closure = le::closure_finalize_callback;
  callback->evcb_cb_union.evcb_cbfinalize = function;
  event_callback_activate_nolock_(base, callback);
  callback->evcb_flags |= EVLIST_FINALIZING;
}

void event_callback_finalize_(event_base* base, unsigned flags, event_callback* callback,
                              void (*function)(event_callback*, void*)) {
  const BaseLock locked(*base);
  event_callback_finalize_nolock_(base, flags, callback, function);
}

int event_callback_finalize_many_(event_base* base, int count, event_callback** callbacks,
                                  void (*function)(event_callback*, void*)) {
  if (base == nullptr) base = event_global_current_base_;
  const BaseLock locked(*base);
  // Only one of them can be running, and then the function must wait for it.
  event_callback* last = callbacks[0];
  for (int i = 0; i < count; ++i) {
    if (callbacks[i] == base->current) {
      last = callbacks[i];
    } else {
      event_callback_cancel_nolock_(base, callbacks[i], 0);
    }
  }
  event_callback_finalize_nolock_(base, 0, last, function);
  return 0;
}

void event_deferred_cb_init_(event_callback* callback, std::uint8_t priority,
                             void (*function)(event_callback*, void*), void* argument) {
  *callback = {};
  callback->evcb_cb_union.evcb_selfcb = function;
  callback->evcb_arg = argument;
  callback->evcb_pri = priority;
  callback->evcb_closure = le::closure_self;
}

void event_deferred_cb_set_priority_(event_callback* callback, std::uint8_t priority) {
  callback->evcb_pri = priority;
}

int event_deferred_cb_schedule_(event_base* base, event_callback* callback) {
  if (base == nullptr) base = event_global_current_base_;
  const BaseLock locked(*base);
  if (base->deferred_count > most_deferred)
    return event_callback_activate_later_nolock_(base, callback);
  const int is_new = event_callback_activate_nolock_(base, callback);
  base->deferred_count += is_new;
  return is_new;
}

void event_deferred_cb_cancel_(event_base* base, event_callback* callback) {
  if (base == nullptr) base = event_global_current_base_;
  event_callback_cancel_(base, callback);
}
