// The table of events that were set up, and the aborts for those that were not.
#include "libevent/event/debug_mode.h"

#include <fcntl.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "libevent/event/log.h"

int event_debug_mode_on_ = 0;

namespace tambour::libevent::debug {
namespace {

/// Events were used: it is too late to begin. Any thread sets it.
std::atomic<bool> too_late{false};

void note_use() noexcept {
  if (!too_late.load(std::memory_order_relaxed)) too_late.store(true, std::memory_order_relaxed);
}

/// The events that are set up, and whether each is added. Never destroyed: programs may use events
/// while the process exits.
struct Known {
  std::mutex mutex;
  std::unordered_map<const event*, bool> events;
};
Known& known() {
  static Known& instance = *new Known;
  return instance;
}

void fail(const char* text, const event* ev, const char* caller) {
  event_errx(EVENT_ERR_ABORT_, "%s called on %s event %p (events: 0x%x, fd: %d, flags: 0x%x)",
             caller, text, static_cast<const void*>(ev), static_cast<unsigned>(ev->ev_events),
             ev->ev_fd, static_cast<unsigned>(ev->ev_evcallback.evcb_flags));
}

}  // namespace

void begin() noexcept { note_use(); }

void note_setup(const event* ev) {
  note_use();
  if (!is_on()) return;
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.events[ev] = false;
}

void note_teardown(const event* ev) {
  note_use();
  if (!is_on()) return;
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.events.erase(ev);
}

void note_added(const event* ev, bool added) {
  note_use();
  if (!is_on()) return;
  Known& all = known();
  bool was_set_up = false;
  {
    const std::lock_guard lock(all.mutex);
    if (const auto found = all.events.find(ev); found != all.events.end()) {
      found->second = added;
      was_set_up = true;
    }
  }
  if (!was_set_up) fail("a non-initialized", ev, added ? "event_add" : "event_del");
}

void check_is_setup(const event* ev, const char* caller) {
  if (!is_on()) return;
  Known& all = known();
  std::unique_lock lock(all.mutex);
  const bool is_known = all.events.contains(ev);
  lock.unlock();
  if (!is_known) fail("a non-initialized", ev, caller);
}

void check_is_not_added(const event* ev, const char* caller) {
  if (!is_on()) return;
  Known& all = known();
  std::unique_lock lock(all.mutex);
  const auto found = all.events.find(ev);
  const bool is_added = found != all.events.end() && found->second;
  lock.unlock();
  if (is_added) fail("an already added", ev, caller);
}

}  // namespace tambour::libevent::debug

void event_enable_debug_mode() {
  if (event_debug_mode_on_ != 0) event_errx(1, "%s was called twice!", "event_enable_debug_mode");
  if (tambour::libevent::debug::too_late)
    event_errx(1, "%s must be called *before* creating any events or event_bases",
               "event_enable_debug_mode");
  event_debug_mode_on_ = 1;
}

extern "C" void event_disable_debug_mode() {
  auto& all = tambour::libevent::debug::known();
  const std::lock_guard lock(all.mutex);
  all.events.clear();
  event_debug_mode_on_ = 0;
}

void event_debug_unassign(event* ev) {
  tambour::libevent::debug::check_is_not_added(ev, "event_debug_unassign");
  tambour::libevent::debug::note_teardown(ev);
  ev->ev_evcallback.evcb_flags &= ~EVLIST_INIT;
}
