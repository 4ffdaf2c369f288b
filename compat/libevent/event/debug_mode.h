// event_enable_debug_mode(3): knows which events were set up and added.
#pragma once

#include "libevent/event/core.h"
#include "libevent/event/threads.h"

namespace tambour::libevent::debug {

void note_setup(const event* ev);
void note_teardown(const event* ev);
void note_added(const event* ev, bool added);
void check_is_setup(const event* ev, const char* caller);
void check_is_not_added(const event* ev, const char* caller);
/// Debug mode must not be enabled after this.
void begin() noexcept;

inline bool is_on() noexcept { return event_debug_mode_on_ != 0; }

inline void require_setup(const event* ev, const char* caller) {
  if (is_on()) [[unlikely]]
    check_is_setup(ev, caller);
}

}  // namespace tambour::libevent::debug
