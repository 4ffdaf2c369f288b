// Rate limits of bufferevents and of groups of them, as token buckets.
//
// A bucket is refilled once per tick. What is transferred is subtracted afterwards, so a limit may
// become negative; then reading or writing is suspended until enough ticks have passed.
//
// Locks are acquired in the order bufferevent, group. A function that holds the lock of a group
// tries the locks of its members, and leaves those that are taken to the next tick.

#pragma once

#include <sys/time.h>

#include <cstddef>
#include <cstdint>

#include <event2/bufferevent.h>

#include "libevent/bufferevent/bufferevent.h"

struct ev_token_bucket_cfg {
  std::size_t read_rate;
  std::size_t read_burst;
  std::size_t write_rate;
  std::size_t write_burst;
  timeval tick;
  unsigned tick_ms;
};

struct ev_token_bucket {
  ev_ssize_t read_limit;
  ev_ssize_t write_limit;
  ev_uint32_t last_updated;
};

extern "C" {
ev_uint32_t ev_token_bucket_get_tick_(const timeval* at, const ev_token_bucket_cfg* cfg);
int ev_token_bucket_init_(ev_token_bucket* bucket, const ev_token_bucket_cfg* cfg, ev_uint32_t tick,
                          int keep);
int ev_token_bucket_update_(ev_token_bucket* bucket, const ev_token_bucket_cfg* cfg,
                            ev_uint32_t tick);
}

namespace tambour::libevent {

struct RateLimit {
  BufferEvent* bev;
  bufferevent_rate_limit_group* group;
  RateLimit* next;      ///< In the group.
  RateLimit* previous;  ///< In the group.
  ev_token_bucket bucket;
  ev_token_bucket_cfg* cfg;  ///< The user's; null without a limit of its own.
  event refill;
};

}  // namespace tambour::libevent

struct bufferevent_rate_limit_group {
  tambour::libevent::RateLimit* members;
  int member_count;
  ev_token_bucket bucket;
  ev_token_bucket_cfg cfg;
  bool suspended[2];       ///< Reading, writing.
  bool pending_resume[2];  ///< Members are left that could not be resumed.
  std::uint64_t total_read;
  std::uint64_t total_written;
  std::size_t min_share;
  std::size_t configured_min_share;
  std::uint32_t random;
  event refill;
  void* lock;
};

namespace tambour::libevent {

enum Direction : std::uint8_t { reading, writing };

inline ev_ssize_t& limit_of(ev_token_bucket& bucket, Direction direction) noexcept {
  return direction == reading ? bucket.read_limit : bucket.write_limit;
}
inline void suspend(BufferEvent& bev, Direction direction, std::uint16_t why) noexcept {
  direction == reading ? bev.suspend_reading(why) : bev.suspend_writing(why);
}
inline void resume(BufferEvent& bev, Direction direction, std::uint16_t why) noexcept {
  direction == reading ? bev.resume_reading(why) : bev.resume_writing(why);
}
inline bool is_suspended(const BufferEvent& bev, Direction direction) noexcept {
  return ((direction == reading ? bev.read_suspended : bev.write_suspended) &
          suspended::bandwidth) != 0;
}
inline Direction other(Direction direction) noexcept {
  return direction == reading ? writing : reading;
}

class GroupLocked {
 public:
  explicit GroupLocked(const bufferevent_rate_limit_group& group) noexcept : lock_(group.lock) {
    tambour::libevent::lock(lock_);
  }
  GroupLocked(const GroupLocked&) = delete;
  GroupLocked& operator=(const GroupLocked&) = delete;
  ~GroupLocked() { tambour::libevent::unlock(lock_); }

 private:
  void* lock_;
};

/// Adds what the ticks since the last update bring.
void update(RateLimit& limit) noexcept;
/// Starts to wait for the next tick.
inline void add_refill(RateLimit& limit) noexcept { event_add(&limit.refill, &limit.cfg->tick); }
/// Subtracts bytes that a member has transferred, or that the user subtracts.
void subtract_from_group(bufferevent_rate_limit_group& group, Direction direction, ev_ssize_t bytes,
                         bool transferred) noexcept;
/// The callback of a group's event.
void on_group_refill(evutil_socket_t fd, short events, void* argument);
/// The limit of a bufferevent, which is made if it has none. Returns null if there is no memory.
RateLimit* limit_for(BufferEvent& bev) noexcept;

}  // namespace tambour::libevent
