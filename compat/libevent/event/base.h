// The implementation of `struct event_base`, on a backend of Tambour.
//
// Events and event_callbacks are memory of the user and keep libevent's values in their fields,
// which programs that embed them read. The rules for queues and priorities are libevent's.
//
// The lock of a base is held wherever its fields are used, except during callbacks and while the
// backend waits. Then only the thread of the loop uses the backend; other threads note what they
// change (FdMap) and wake the loop, which submits the changes before it waits again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include <event2/event.h>
#include <event2/event_compat.h>
#include <event2/event_struct.h>

#include "backend/backend.h"
#include "base/ready_queue.h"
#include "common/timer_table.h"
#include "libevent/event/core.h"
#include "libevent/event/fd_map.h"
#include "libevent/event/log.h"
#include "libevent/event/signal_map.h"
#include "libevent/event/threads.h"

namespace tambour::compat {
class HostedBackend;
struct LoopRecord;
}  // namespace tambour::compat

namespace tambour::libevent {

/// What an event_callback does when it runs: `evcb_closure`.
enum Closure : std::uint8_t {
  closure_event,
  closure_signal,
  closure_persist,
  closure_self,
  closure_finalize_callback,
  closure_finalize_event,
  closure_finalize_free
};

/// Whether event_del() waits for a callback that is running in another thread.
enum class Block : std::uint8_t {
  never = 0,
  always = 1,
  unless_finalizing = 2,
  even_if_finalized = 3
};

/// A list of event_callbacks through `evcb_active_next`.
class CallbackQueue {
 public:
  CallbackQueue() noexcept = default;
  CallbackQueue(const CallbackQueue&) = delete;
  CallbackQueue& operator=(const CallbackQueue&) = delete;

  [[nodiscard]] event_callback* first() const noexcept { return first_; }
  static event_callback* next(const event_callback& entry) noexcept {
    return entry.evcb_active_next.tqe_next;
  }
  void append(event_callback& added) noexcept {
    added.evcb_active_next.tqe_next = nullptr;
    added.evcb_active_next.tqe_prev = last_;
    *last_ = &added;
    last_ = &added.evcb_active_next.tqe_next;
  }
  void remove(event_callback& removed) noexcept {
    auto& link = removed.evcb_active_next;
    if (link.tqe_next != nullptr) {
      link.tqe_next->evcb_active_next.tqe_prev = link.tqe_prev;
    } else {
      last_ = link.tqe_prev;
    }
    *link.tqe_prev = link.tqe_next;
  }

 private:
  event_callback* first_ = nullptr;
  event_callback** last_ = &first_;
};

/// The events with one common timeout, by ascending deadline.
struct CommonTimeout {
  event_list events;
  timeval duration;  ///< With the mark in its microseconds; programs have its address.
  event timer;       ///< Expires with the first of the events.
  event_base* base;
};

/// An event of event_base_once().
struct Once {
  Once* next;
  Once** link;
  event ev;
  event_callback_fn callback;
  void* argument;
};

struct Method {
  const char* name;
  BackendKind kind;
  int features;
};
extern const Method methods[3];

/// Returns a base that uses `poller` and `method`, or if they are null, what `config` allows.
/// Returns null with a message on failure. `config` may be null.
event_base* new_base(const event_config* config, std::unique_ptr<detail::backend::Backend> poller,
                     const Method* method);

/// A base that an interface passes as an address.
inline event_base& base_of(void* base) noexcept { return *static_cast<event_base*>(base); }

inline event* event_of(event_callback* callback) noexcept {
  // The callback is the first member.
  return reinterpret_cast<event*>(callback);
}

constexpr std::int64_t us_per_s = 1'000'000;

/// The mark that event_base_init_common_timeout() puts into the microseconds of a duration.
namespace common {
constexpr unsigned long microseconds = 0x000fffff;
constexpr unsigned long index_mask = 0x0ff00000;
constexpr int index_shift = 20;
constexpr unsigned long mark_mask = 0xf0000000;
constexpr unsigned long mark = 0x50000000;
constexpr int count_max = 256;

inline unsigned long bits(const timeval& duration) noexcept {
  return static_cast<unsigned long>(duration.tv_usec);
}
inline int index_of(const timeval& duration) noexcept {
  return static_cast<int>((bits(duration) & index_mask) >> index_shift);
}
inline bool is_marked(const timeval& duration) noexcept {
  return (bits(duration) & mark_mask) == mark;
}
inline bool are_same(const timeval& a, const timeval& b) noexcept {
  return (bits(a) & ~microseconds) == (bits(b) & ~microseconds);
}
}  // namespace common

/// Without the mark. The seconds are limited so that the result fits.
inline std::int64_t microseconds_of(const timeval& time) noexcept {
  constexpr std::int64_t most_s = INT64_MAX / us_per_s / 4;
  const std::int64_t seconds = time.tv_sec > most_s    ? most_s
                               : time.tv_sec < -most_s ? -most_s
                                                       : time.tv_sec;
  return seconds * us_per_s + static_cast<std::int64_t>(common::bits(time) & common::microseconds);
}
/// Of a relative timeout that is not a common one: its microseconds may be more than a second.
/// Limited so that a time can be added.
inline std::int64_t microseconds_of_relative(const timeval& duration) noexcept {
  constexpr std::int64_t most_us = INT64_MAX / 8;
  return microseconds_of({.tv_sec = duration.tv_sec, .tv_usec = 0}) +
         std::clamp<std::int64_t>(duration.tv_usec, -most_us, most_us);
}
inline timeval to_timeval(std::int64_t us) noexcept {
  return {.tv_sec = us / us_per_s, .tv_usec = us % us_per_s};
}

/// `min_heap_idx` of an event is the position of its timeout in the table, and `ev_timeout` the
/// deadline.
struct TimeoutTraits {
  static void* allocate(std::size_t bytes) noexcept { return event_mm_malloc_(bytes); }
  static void free(void* memory) noexcept { event_mm_free_(memory); }
  static int position(const event& entry) noexcept { return entry.ev_timeout_pos.min_heap_idx; }
  static void set_position(event& entry, int position) noexcept {
    entry.ev_timeout_pos.min_heap_idx = position;
  }
  static std::int64_t deadline(const event& entry) noexcept {
    const std::int64_t us = microseconds_of(entry.ev_timeout);
    return us > 0 ? us : 0;
  }
  static void prefetch(const event& entry) noexcept {
    __builtin_prefetch(&entry.ev_timeout_pos);
    __builtin_prefetch(&entry.ev_timeout);
  }
};

}  // namespace tambour::libevent

// NOLINTNEXTLINE(readability-identifier-naming): the name is libevent's.
struct event_base {
  using Queue = tambour::libevent::CallbackQueue;

  event_base() noexcept : fds(*this), signals(*this) {}

  void lock() const noexcept { tambour::libevent::lock(base_lock); }
  void unlock() const noexcept { tambour::libevent::unlock(base_lock); }
  /// True if locks are not used or the loop runs in this thread.
  [[nodiscard]] bool in_loop_thread() const noexcept {
    return evthread_id_fn_ == nullptr || owner == evthread_id_fn_();
  }
  [[nodiscard]] bool runs_in_other_thread() const noexcept {
    return (running || hosted != nullptr) && evthread_id_fn_ != nullptr &&
           owner != evthread_id_fn_();
  }
  void wake_if_needed() noexcept {
    if (runs_in_other_thread()) wake();
  }
  int wake() noexcept;
  /// Waits until the callback that another thread runs has returned.
  void wait_for_callback() noexcept;

  [[nodiscard]] bool has_events() const noexcept { return virtual_count > 0 || event_count > 0; }
  // A decrease does not change a maximum, which may have been cleared.
  void count(const event_callback& entry, int by) noexcept {
    if ((entry.evcb_flags & EVLIST_INTERNAL) != 0) return;
    event_count += by;
    if (by > 0 && event_count > event_count_max) event_count_max = event_count;
  }
  void count_active(int by) noexcept {
    active_count += by;
    if (by > 0 && active_count > active_count_max) active_count_max = active_count;
  }

  // The time, in microseconds of the monotonic clock.
  [[nodiscard]] std::int64_t now() noexcept { return cached_us != 0 ? cached_us : read_clock(); }
  std::int64_t read_clock() noexcept;
  /// When a timeout begins that is added now: in a callback at the cached time, else at the exact
  /// time. The original reads the coarse clock, which is up to a tick of the kernel (4 ms) late,
  /// and also waits by it. The drop-in waits by the exact clock, with which such a timeout would
  /// expire a tick early.
  [[nodiscard]] std::int64_t timeout_begin() noexcept;
  void update_cached_time() noexcept {
    cached_us = 0;
    if ((flags & EVENT_BASE_FLAG_NO_CACHE_TIME) == 0) cached_us = read_clock();
  }
  /// Waits and activates what is due. Returns false if the backend failed.
  void poll(bool may_block) noexcept;
  void submit_changes() noexcept;
  void take_results() noexcept;
  // A base that runs on an EventLoop of the program, see hosted.cpp: the parts of an iteration
  // before and after the wait, as GuestCalls describes them.
  [[nodiscard]] std::int64_t deadline_for_host() noexcept;
  bool run_for_host();
  // The inspector of unmodified programs, see observed.cpp.
  void begin_observation() noexcept;
  void end_observation() noexcept;
  int process_active();
  /// process_active(), where run_one(callback, event) runs a callback.
  template <class RunOne>
  int process_queues(RunOne run_one);
  template <class RunOne>
  int process_queue(Queue& queue, int limit, std::int64_t until_us, RunOne run_one);
  void run(event_callback& callback, event* ev);
  void activate_expired() noexcept;
  void activate_later_queue() noexcept;

  // The queues that an event can be in.
  void insert_active(event_callback& callback) noexcept {
    if ((callback.evcb_flags & EVLIST_ACTIVE) != 0) return;
    count(callback, 1);
    callback.evcb_flags |= EVLIST_ACTIVE;
    count_active(1);
    queues[callback.evcb_pri].append(callback);
  }
  void remove_active(event_callback& callback) noexcept {
    count(callback, -1);
    callback.evcb_flags &= ~EVLIST_ACTIVE;
    count_active(-1);
    queues[callback.evcb_pri].remove(callback);
  }
  void insert_active_later(event_callback& callback) noexcept;
  void remove_active_later(event_callback& callback) noexcept;
  void insert_timeout(event& ev) noexcept;
  void remove_timeout(event& ev) noexcept;
  void insert_inserted(event& ev) noexcept;
  void remove_inserted(event& ev) noexcept;

  [[nodiscard]] tambour::libevent::CommonTimeout* common_of(
      const timeval& duration) const noexcept {
    if (!tambour::libevent::common::is_marked(duration)) return nullptr;
    const int index = tambour::libevent::common::index_of(duration);
    return index < common_count ? commons[index] : nullptr;
  }

  std::unique_ptr<tambour::detail::backend::Backend> poller;
  tambour::detail::base::ReadyQueue ready;  ///< Results other than those of descriptors: wakeups.
  const tambour::libevent::Method* method = nullptr;
  tambour::compat::HostedBackend* hosted =
      nullptr;                                      ///< `poller`, if an EventLoop does the waiting.
  tambour::compat::LoopRecord* observed = nullptr;  ///< Null unless the program is inspected.
  tambour::libevent::FdMap fds;
  tambour::libevent::SignalMap signals;
  /// In microseconds. Common timeouts are in `commons`.
  tambour::compat::TimerTable<event, tambour::libevent::TimeoutTraits> timeouts;
  tambour::libevent::CommonTimeout** commons = nullptr;
  int common_count = 0;

  Queue* queues = nullptr;
  int queue_count = 0;
  Queue later;
  event_callback* current = nullptr;  ///< The one that runs.
  int running_priority = -1;
  tambour::libevent::Once* onces = nullptr;

  int virtual_count = 0;
  int virtual_count_max = 0;
  int event_count = 0;
  int event_count_max = 0;
  int active_count = 0;
  int active_count_max = 0;
  int deferred_count = 0;  ///< Deferred callbacks made active in this iteration.

  bool exit_asked = false;      ///< event_base_loopexit()
  bool break_asked = false;     ///< event_base_loopbreak()
  bool continue_asked = false;  ///< event_base_loopcontinue()
  bool running = false;
  bool polling = false;  ///< The thread of the loop is in the backend, without the lock.
  bool notifiable = false;
  bool wake_pending = false;

  std::int64_t cached_us = 0;
  std::int64_t wall_offset_us = 0;  ///< What the wall clock is ahead of the monotonic one.
  std::int64_t offset_read_at_us = 0;

  int flags = 0;
  bool with_changelist = false;
  std::int64_t max_dispatch_us = -1;
  int max_dispatch_callbacks = INT32_MAX;
  int limit_after_priority = 1;

  void* base_lock = nullptr;
  void* current_done = nullptr;  ///< A condition: `current` has returned.
  int waiters = 0;
  unsigned long owner = 0;
};

extern "C" {

extern event_base* event_global_current_base_;

int event_add_nolock_(event* ev, const timeval* timeout, int is_absolute);
int event_del_nolock_(event* ev, int blocking);
void event_active_nolock_(event* ev, int result, short calls);
int event_remove_timer_nolock_(event* ev);
void event_active_later_(event* ev, int result);
void event_active_later_nolock_(event* ev, int result);
int event_callback_activate_nolock_(event_base* base, event_callback* callback);
int event_callback_activate_later_nolock_(event_base* base, event_callback* callback);
int event_callback_activate_(event_base* base, event_callback* callback);
int event_callback_cancel_(event_base* base, event_callback* callback);
int event_callback_cancel_nolock_(event_base* base, event_callback* callback,
                                  int even_if_finalizing);
void event_callback_init_(event_base* base, event_callback* callback);
void event_callback_finalize_(event_base* base, unsigned flags, event_callback* callback,
                              void (*function)(event_callback*, void*));
void event_callback_finalize_nolock_(event_base* base, unsigned flags, event_callback* callback,
                                     void (*function)(event_callback*, void*));
int event_base_foreach_event_nolock_(event_base* base, event_base_foreach_event_cb function,
                                     void* argument);
void event_base_add_virtual_(event_base* base);
void event_base_del_virtual_(event_base* base);
void event_base_assert_ok_(event_base* base);
void event_base_assert_ok_nolock_(event_base* base);
const char* evutil_getenv_(const char* name);
int evthread_make_base_notifiable(event_base* base);

}  // extern "C"

namespace tambour::libevent {

inline int delete_event(event* ev, Block block) noexcept {
  return event_del_nolock_(ev, static_cast<int>(block));
}

/// Holds the lock of a base.
class BaseLock {
 public:
  explicit BaseLock(const event_base& base) noexcept : base_(base) { base_.lock(); }
  BaseLock(const BaseLock&) = delete;
  BaseLock& operator=(const BaseLock&) = delete;
  ~BaseLock() { base_.unlock(); }

 private:
  const event_base& base_;
};

}  // namespace tambour::libevent
