// BufferEvent: what socket, filter and pair bufferevents share.
//
// The user sees the base class, `struct bufferevent` of event2/bufferevent_struct.h. An object
// exists as long as it has references: the user's, and one for each call in progress and for each
// deferred callback. When the last one is released, the object is unlinked from others, and freed
// once none of its callbacks runs in another thread.
//
// The lock is recursive, and the locks of both buffers are the same one. Callbacks of the user are
// invoked with the lock held, except with BEV_OPT_UNLOCK_CALLBACKS.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include <event2/bufferevent.h>
#include <event2/bufferevent_struct.h>

#include "libevent/event/core.h"

struct evbuffer_cb_entry;
struct evdns_getaddrinfo_request;

/// Tells the kinds apart. Programs compare no more than the addresses.
struct bufferevent_ops {
  const char* type;
};
extern "C" const bufferevent_ops bufferevent_ops_socket;
extern "C" const bufferevent_ops bufferevent_ops_filter;
extern "C" const bufferevent_ops bufferevent_ops_pair;

namespace tambour::libevent {
class BufferEvent;
}

// The functions that libevent_core exports for libevent_openssl, which cannot call other members.
extern "C" {
int bufferevent_init_common_(tambour::libevent::BufferEvent* bev, event_base* base, int options);
void bufferevent_incref_and_lock_(bufferevent* bev);
/// Returns a nonzero value if that was the last reference.
int bufferevent_decref_and_unlock_(bufferevent* bev);
int bufferevent_enable_locking_(bufferevent* bev, void* lock);
/// For kinds without a descriptor: the events are added for timeouts only.
void bufferevent_init_generic_timeout_cbs_(bufferevent* bev);
int bufferevent_generic_adj_timeouts_(bufferevent* bev);
/// For kinds with a descriptor.
int bufferevent_generic_adj_existing_timeouts_(bufferevent* bev);
void bufferevent_suspend_read_(bufferevent* bev, std::uint16_t why);
void bufferevent_unsuspend_read_(bufferevent* bev, std::uint16_t why);
void bufferevent_run_eventcb_(bufferevent* bev, short kind, int options);
/// How much may be read or written now under the limits: zero or more.
ev_ssize_t bufferevent_get_read_max_(bufferevent* bev);
ev_ssize_t bufferevent_get_write_max_(bufferevent* bev);
/// Subtract bytes from the limits, and suspend reading or writing if they are used up.
void bufferevent_decrement_read_buckets_(bufferevent* bev, ev_ssize_t bytes);
void bufferevent_decrement_write_buckets_(bufferevent* bev, ev_ssize_t bytes);
}

namespace tambour::libevent {

struct RateLimit;

/// Reasons for which reading or writing is suspended although it is enabled.
namespace suspended {
inline constexpr std::uint16_t watermark = 0x01;
inline constexpr std::uint16_t bandwidth = 0x02;
inline constexpr std::uint16_t group_bandwidth = 0x04;
inline constexpr std::uint16_t lookup = 0x08;
inline constexpr std::uint16_t filter = 0x10;
inline constexpr std::uint16_t read_ahead = 0x20;  ///< By evhttp.
}  // namespace suspended

class BufferEvent : public bufferevent {
 public:
  /// What the functions of the API return if the user has not set a maximum.
  static constexpr ev_ssize_t single_transfer_default = 16384;

  /// Returns null if there is no memory or the options contradict each other.
  template <class T>
  static T* make(event_base* base, int options) noexcept {
    void* const memory = event_mm_calloc_(1, sizeof(T));
    if (memory == nullptr) return nullptr;
    T* const created = new (memory) T{};
    if (created->init(base, options)) return created;
    event_mm_free_(memory);
    return nullptr;
  }

  BufferEvent(const BufferEvent&) = delete;
  BufferEvent& operator=(const BufferEvent&) = delete;

  /// Starts or stops the events of a kind. Called if the user changes `enabled`, and if reading or
  /// writing is suspended or resumed.
  virtual int start(short events) noexcept = 0;
  virtual int stop(short events) noexcept = 0;
  /// Called if the user changes the timeouts.
  virtual int adjust_timeouts() noexcept = 0;
  /// Called when the last reference is released.
  virtual void unlink() noexcept {}
  /// Called before the memory is freed.
  virtual void destruct() noexcept {}
  virtual int flush(short events, bufferevent_flush_mode mode) noexcept = 0;
  virtual bool set_fd(int /*fd*/) noexcept { return false; }
  /// Returns -1 if there is none.
  virtual int fd() noexcept { return -1; }
  virtual BufferEvent* underlying_one() noexcept { return nullptr; }
  /// Returns whether it is for bufferevent_socket_connect().
  virtual bool can_connect() const noexcept { return false; }

  void suspend_reading(std::uint16_t why) noexcept;
  void resume_reading(std::uint16_t why) noexcept;
  void suspend_writing(std::uint16_t why) noexcept;
  void resume_writing(std::uint16_t why) noexcept;

  /// Invoke the callbacks of the user, or schedule them if the options here or those of the object
  /// say so.
  void run_read_callback(int options) noexcept;
  void run_write_callback(int options) noexcept;
  void run_event_callback(short kind, int options) noexcept;
  /// Invokes callbacks if the lengths of the buffers are beyond the low-water marks.
  void trigger(short events, int options) noexcept;

  /// Returns whether `function` is that of `deferred`, whose argument is the object.
  static bool is_deferred(void (*function)(event_callback*, void*)) noexcept {
    return function == &run_deferred || function == &run_deferred_unlocked;
  }

  bool init(event_base* base, int chosen) noexcept;
  int enable_locking(void* with) noexcept;
  /// Makes the events ones that are added for timeouts only, for kinds without a descriptor.
  void use_timeout_events() noexcept;
  /// adjust_timeouts() for kinds without a descriptor, and with one.
  int adjust_timeout_events() noexcept;
  int adjust_socket_events() noexcept;

  void acquire() noexcept {
    tambour::libevent::lock(lock);
    ++references;
  }
  /// Returns true if it was the last reference.
  bool release() noexcept {
    if (--references != 0) {
      tambour::libevent::unlock(lock);
      return false;
    }
    retire();
    return true;
  }

  int references = 1;
  int options = 0;
  void* lock = nullptr;
  bool owns_lock = false;
  bool read_pending = false;
  bool write_pending = false;
  bool connecting = false;
  bool refused = false;  ///< Reading has found that the connection was refused.
  short event_pending = 0;
  std::uint16_t read_suspended = 0;
  std::uint16_t write_suspended = 0;
  int error_pending = 0;  ///< errno of the deferred event.
  int dns_error = 0;
  evbuffer_cb_entry* watermark_callback = nullptr;
  event_callback deferred{};
  ev_ssize_t read_max = 0;  ///< The maximum of one transfer, or zero if it is not set.
  ev_ssize_t write_max = 0;
  RateLimit* limit = nullptr;
  sockaddr_storage* address = nullptr;  ///< Of the peer, if it was connected by name.
  evdns_getaddrinfo_request* lookup = nullptr;

 protected:
  explicit BufferEvent(const bufferevent_ops& kind) noexcept : bufferevent{} { be_ops = &kind; }
  ~BufferEvent() = default;

  void restart_read_timeout() noexcept {
    if (evutil_timerisset(&timeout_read)) event_add(&ev_read, &timeout_read);
  }
  void restart_write_timeout() noexcept {
    if (evutil_timerisset(&timeout_write)) event_add(&ev_write, &timeout_write);
  }

 private:
  void schedule() noexcept;
  void check_high_watermark() noexcept;
  void retire() noexcept;
  void destroy() noexcept;
  static void run_deferred(event_callback* callback, void* argument);
  static void run_deferred_unlocked(event_callback* callback, void* argument);
};

inline BufferEvent& of(bufferevent* bev) noexcept { return *static_cast<BufferEvent*>(bev); }
inline BufferEvent& of(const bufferevent* bev) noexcept {
  return *static_cast<BufferEvent*>(const_cast<bufferevent*>(bev));
}

/// Holds the lock, and a reference.
class Held {
 public:
  explicit Held(BufferEvent& bev) noexcept : bev_(bev) { bev_.acquire(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { bev_.release(); }

 private:
  BufferEvent& bev_;
};

/// Holds the lock only: for functions that invoke no callbacks.
class BevLocked {
 public:
  explicit BevLocked(BufferEvent& bev) noexcept : lock_(bev.lock) { lock(lock_); }
  BevLocked(const BevLocked&) = delete;
  BevLocked& operator=(const BevLocked&) = delete;
  ~BevLocked() { unlock(lock_); }

 private:
  void* lock_;
};

/// What `upper`, which is made on top of `below`, does when its last reference is released: gives
/// `below` back to the user, or frees it. `on_event` is the event callback that `upper` has set.
/// Calls only functions that libraries export, because bufferevents of OpenSSL are in another one.
inline void unlink_from(BufferEvent& below, const BufferEvent& upper,
                        bufferevent_event_cb on_event) noexcept {
  const BevLocked locked(below);
  if ((upper.options & BEV_OPT_CLOSE_ON_FREE) == 0) {
    if (below.errorcb == on_event) bufferevent_setcb(&below, nullptr, nullptr, nullptr, nullptr);
    bufferevent_unsuspend_read_(&below, suspended::filter);
  } else if (below.references < 2) {
    // The reference of `upper` is released when its memory is freed.
    event_warnx("BEV_OPT_CLOSE_ON_FREE set on an bufferevent with too few references");
  } else {
    bufferevent_free(&below);
  }
}

/// Adds an event with a timeout, or without one if it is zero.
inline int add_event(event& added, const timeval& timeout) noexcept {
  return event_add(&added, evutil_timerisset(&timeout) ? &timeout : nullptr);
}

inline ev_ssize_t max_of(ev_ssize_t set) noexcept {
  return set != 0 ? set : BufferEvent::single_transfer_default;
}

/// How much may be read or written now under the limits: zero or more.
ev_ssize_t read_allowance(BufferEvent& bev) noexcept;
ev_ssize_t write_allowance(BufferEvent& bev) noexcept;
/// Subtracts bytes from the limits, and suspends reading or writing if they are used up.
void count_read(BufferEvent& bev, ev_ssize_t bytes) noexcept;
void count_written(BufferEvent& bev, ev_ssize_t bytes) noexcept;
/// The event that ends a suspension, or null.
event* refill_event(BufferEvent& bev) noexcept;
/// Takes the bufferevent from its group, without resuming it.
void leave_group(BufferEvent& bev) noexcept;
void free_limit(BufferEvent& bev) noexcept;

}  // namespace tambour::libevent
