// Callbacks of an evbuffer, invoked at once or from the loop.

#include "libevent/buffer/buffer.h"

// bufferevents are counted by the references of their callbacks.
extern "C" void bufferevent_incref(bufferevent* bev);
extern "C" int bufferevent_decref(bufferevent* bev);

namespace flags = tambour::libevent::callback_flags;
using tambour::libevent::Locked;

namespace {

void run_deferred(event_callback* /*callback*/, void* argument) {
  auto* const buffer = static_cast<evbuffer*>(argument);
  tambour::libevent::lock(buffer->lock);
  bufferevent* const parent = buffer->parent;
  buffer->run_callbacks(EVBUFFER_CB_ENABLED | flags::never_deferred, EVBUFFER_CB_ENABLED, true);
  buffer->release();
  if (parent != nullptr) bufferevent_decref(parent);
}

evbuffer_cb_entry* make_entry(evbuffer_cb_func function, void* argument) {
  auto* const entry =
      static_cast<evbuffer_cb_entry*>(event_mm_calloc_(1, sizeof(evbuffer_cb_entry)));
  if (entry == nullptr) return nullptr;
  entry->function = function;
  entry->argument = argument;
  entry->flags = EVBUFFER_CB_ENABLED;
  return entry;
}

void link_entry(evbuffer& buffer, evbuffer_cb_entry* entry) noexcept {
  entry->next = buffer.callbacks;
  entry->link = &buffer.callbacks;
  if (entry->next != nullptr) entry->next->link = &entry->next;
  buffer.callbacks = entry;
}

void unlink_entry(evbuffer_cb_entry* entry) noexcept {
  *entry->link = entry->next;
  if (entry->next != nullptr) entry->next->link = entry->link;
}

}  // namespace

void evbuffer::notify() noexcept {
  if (added == 0 && deleted == 0) return;
  if (!deferred) return run_callbacks(EVBUFFER_CB_ENABLED, EVBUFFER_CB_ENABLED, true);
  if (event_deferred_cb_schedule_(base, deferred_callback) != 0) {
    // Until the callback has run.
    ++references;
    if (parent != nullptr) bufferevent_incref(parent);
  }
  // The counts remain for the callbacks that are invoked later.
  constexpr std::uint32_t now = EVBUFFER_CB_ENABLED | flags::never_deferred;
  run_callbacks(now, now, false);
}

void evbuffer::run_callbacks(std::uint32_t mask, std::uint32_t value, bool reset) noexcept {
  if (callbacks == nullptr) {
    added = deleted = 0;
    return;
  }
  if (added == 0 && deleted == 0) return;
  const evbuffer_cb_info info{length + deleted - added, added, deleted};
  const std::size_t now = length;
  if (reset) added = deleted = 0;
  ++running;
  for (evbuffer_cb_entry *entry = callbacks, *next = nullptr; entry != nullptr; entry = next) {
    if ((entry->flags & (mask | flags::removed)) == value) {
      if ((entry->flags & flags::obsolete) != 0) {
        entry->obsolete(this, info.orig_size, now, entry->argument);
      } else {
        entry->function(this, &info, entry->argument);
      }
    }
    next = entry->next;
  }
  if (--running != 0 || !callbacks_removed) return;
  callbacks_removed = false;
  for (evbuffer_cb_entry *entry = callbacks, *next = nullptr; entry != nullptr; entry = next) {
    next = entry->next;
    if ((entry->flags & flags::removed) != 0) {
      unlink_entry(entry);
      event_mm_free_(entry);
    }
  }
}

void evbuffer::remove_callback(evbuffer_cb_entry* entry) noexcept {
  if (running != 0) {
    // run_callbacks() may be at this entry.
    entry->flags |= flags::removed;
    callbacks_removed = true;
    return;
  }
  unlink_entry(entry);
  event_mm_free_(entry);
}

void evbuffer::remove_callbacks() noexcept {
  for (evbuffer_cb_entry *entry = callbacks, *next = nullptr; entry != nullptr; entry = next) {
    next = entry->next;
    remove_callback(entry);
  }
}

evbuffer_cb_entry* evbuffer_add_cb(evbuffer* buffer, evbuffer_cb_func cb, void* cbarg) {
  evbuffer_cb_entry* const entry = make_entry(cb, cbarg);
  if (entry == nullptr) return nullptr;
  const Locked locked(buffer);
  link_entry(*buffer, entry);
  return entry;
}

int evbuffer_remove_cb_entry(evbuffer* buffer, evbuffer_cb_entry* ent) {
  const Locked locked(buffer);
  buffer->remove_callback(ent);
  return 0;
}

int evbuffer_remove_cb(evbuffer* buffer, evbuffer_cb_func cb, void* cbarg) {
  const Locked locked(buffer);
  for (evbuffer_cb_entry* entry = buffer->callbacks; entry != nullptr; entry = entry->next) {
    if (entry->function != cb || entry->argument != cbarg) continue;
    if ((entry->flags & flags::removed) != 0) continue;
    buffer->remove_callback(entry);
    return 0;
  }
  return -1;
}

int evbuffer_cb_set_flags(evbuffer* buffer, evbuffer_cb_entry* cb, ev_uint32_t change) {
  const Locked locked(buffer);
  cb->flags |= change & ~flags::internal;
  return 0;
}

int evbuffer_cb_clear_flags(evbuffer* buffer, evbuffer_cb_entry* cb, ev_uint32_t change) {
  const Locked locked(buffer);
  cb->flags &= ~(change & ~flags::internal);
  return 0;
}

int evbuffer_setcb(evbuffer* buffer, evbuffer_cb cb, void* cbarg) {
  const Locked locked(buffer);
  evbuffer_cb_entry* entry = nullptr;
  if (cb != nullptr) {
    entry = make_entry(nullptr, cbarg);
    if (entry == nullptr) return -1;
    entry->obsolete = cb;
    entry->flags |= flags::obsolete;
  }
  buffer->remove_callbacks();
  if (entry != nullptr) link_entry(*buffer, entry);
  return 0;
}

int evbuffer_defer_callbacks(evbuffer* buffer, event_base* base) {
  const Locked locked(buffer);
  if (buffer->deferred_callback == nullptr) {
    void* const memory = event_mm_calloc_(1, sizeof(event_callback));
    if (memory == nullptr) return -1;
    buffer->deferred_callback = static_cast<event_callback*>(memory);
  }
  buffer->base = base;
  buffer->deferred = true;
  event_deferred_cb_init_(buffer->deferred_callback,
                          static_cast<std::uint8_t>(event_base_get_npriorities(base) / 2),
                          &run_deferred, buffer);
  return 0;
}

extern "C" {

void evbuffer_invoke_callbacks_(evbuffer* buffer) { buffer->changed(0, 0); }

void evbuffer_set_parent_(evbuffer* buffer, bufferevent* bev) {
  const Locked locked(buffer);
  buffer->parent = bev;
}

int evbuffer_get_callbacks_(evbuffer* buffer, event_callback** callbacks, int count_max) {
  const Locked locked(buffer);
  if (!buffer->deferred) return 0;
  if (count_max < 1) return -1;
  callbacks[0] = buffer->deferred_callback;
  return 1;
}

}  // extern "C"
