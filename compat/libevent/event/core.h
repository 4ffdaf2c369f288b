// What evbuffers and bufferevents use of the event core: memory, locks, deferred callbacks and
// messages. The names and signatures are those that libevent exports, so that its other libraries
// find the same ones.
#pragma once

#include <cstddef>
#include <cstdint>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>

extern "C" {

/// The functions of event_set_mem_functions(), or malloc(3) and its relatives.
void* event_mm_malloc_(std::size_t size);
void* event_mm_calloc_(std::size_t count, std::size_t size);
void* event_mm_realloc_(void* memory, std::size_t size);
void event_mm_free_(void* memory);
char* event_mm_strdup_(const char* text);

/// The callbacks of evthread_set_lock_callbacks(). All are null without threads.
extern evthread_lock_callbacks evthread_lock_fns_;

/// Callbacks that a base invokes from its loop.
void event_deferred_cb_init_(event_callback* callback, std::uint8_t priority,
                             void (*function)(event_callback*, void*), void* argument);
void event_deferred_cb_set_priority_(event_callback* callback, std::uint8_t priority);
/// Returns a nonzero value if the callback was not scheduled before.
int event_deferred_cb_schedule_(event_base* base, event_callback* callback);
void event_deferred_cb_cancel_(event_base* base, event_callback* callback);
/// Invokes `function` from the loop once none of the callbacks runs or is scheduled.
int event_callback_finalize_many_(event_base* base, int count, event_callback** callbacks,
                                  void (*function)(event_callback*, void*));

void event_warn(const char* format, ...) __attribute__((format(printf, 1, 2)));
void event_warnx(const char* format, ...) __attribute__((format(printf, 1, 2)));
void event_errx(int code, const char* format, ...) __attribute__((format(printf, 2, 3), noreturn));

}  // extern "C"

namespace tambour::libevent {

/// A lock of evthread_set_lock_callbacks(), or null, which is never waited for.
inline void lock(void* selected) noexcept {
  if (selected != nullptr) evthread_lock_fns_.lock(0, selected);
}
inline void unlock(void* selected) noexcept {
  if (selected != nullptr) evthread_lock_fns_.unlock(0, selected);
}
/// Returns null if there is no memory or no locking.
inline void* make_lock(unsigned type) noexcept {
  return evthread_lock_fns_.alloc != nullptr ? evthread_lock_fns_.alloc(type) : nullptr;
}
inline void free_lock(void* selected, unsigned type) noexcept {
  if (selected != nullptr && evthread_lock_fns_.free != nullptr)
    evthread_lock_fns_.free(selected, type);
}

/// Holds a lock, if it is not null.
class HeldLock {
 public:
  explicit HeldLock(void* selected) noexcept : which_(selected) { lock(which_); }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;
  ~HeldLock() { unlock(which_); }

 private:
  void* which_;
};

}  // namespace tambour::libevent
