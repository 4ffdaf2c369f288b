// Rate limits: how much a bufferevent may transfer now, and when it and its group are resumed.
#include "libevent/bufferevent/rate_limit.h"

#include <algorithm>
#include <climits>
#include <new>

extern "C" {

ev_uint32_t ev_token_bucket_get_tick_(const timeval* at, const ev_token_bucket_cfg* cfg) {
  constexpr std::uint64_t ms_per_second = 1000;
  constexpr std::uint64_t us_per_ms = 1000;
  const std::uint64_t ms = static_cast<std::uint64_t>(at->tv_sec) * ms_per_second +
                           static_cast<std::uint64_t>(at->tv_usec) / us_per_ms;
  return static_cast<ev_uint32_t>(ms / cfg->tick_ms);
}

int ev_token_bucket_init_(ev_token_bucket* bucket, const ev_token_bucket_cfg* cfg, ev_uint32_t tick,
                          int keep) {
  if (keep != 0) {
    bucket->read_limit = std::min(bucket->read_limit, static_cast<ev_ssize_t>(cfg->read_burst));
    bucket->write_limit = std::min(bucket->write_limit, static_cast<ev_ssize_t>(cfg->write_burst));
    return 0;
  }
  bucket->read_limit = static_cast<ev_ssize_t>(cfg->read_rate);
  bucket->write_limit = static_cast<ev_ssize_t>(cfg->write_rate);
  bucket->last_updated = tick;
  return 0;
}

int ev_token_bucket_update_(ev_token_bucket* bucket, const ev_token_bucket_cfg* cfg,
                            ev_uint32_t tick) {
  const ev_uint32_t ticks = tick - bucket->last_updated;
  // A clock that was set back makes a large difference.
  if (ticks == 0 || ticks > INT_MAX) return 0;
  const auto refill = [ticks](ev_ssize_t& limit, std::size_t rate, std::size_t burst) {
    // A limit is not below -EV_SSIZE_MAX, so the difference fits an unsigned number.
    const std::size_t missing = burst - static_cast<std::size_t>(limit);
    if (missing / ticks < rate) {
      limit = static_cast<ev_ssize_t>(burst);
    } else {
      limit += static_cast<ev_ssize_t>(ticks * rate);
    }
  };
  refill(bucket->read_limit, cfg->read_rate, cfg->read_burst);
  refill(bucket->write_limit, cfg->write_rate, cfg->write_burst);
  bucket->last_updated = tick;
  return 1;
}

}  // extern "C"

namespace tambour::libevent {
namespace {

bool try_lock(void* lock) noexcept {
  return lock == nullptr || evthread_lock_fns_.lock(EVTHREAD_TRY, lock) == 0;
}

void suspend_group(bufferevent_rate_limit_group& group, Direction direction) noexcept {
  group.suspended[direction] = true;
  group.pending_resume[direction] = false;
  for (RateLimit* member = group.members; member != nullptr; member = member->next) {
    // A member that is busy in another thread finds out when it asks for its allowance.
    void* const lock = member->bev->lock;
    if (!try_lock(lock)) continue;
    suspend(*member->bev, direction, suspended::group_bandwidth);
    tambour::libevent::unlock(lock);
  }
}

/// Resumes the members, beginning with any of them, so that none is always the first to use the
/// allowance.
void resume_group(bufferevent_rate_limit_group& group, Direction direction) noexcept {
  group.suspended[direction] = false;
  group.pending_resume[direction] = false;
  if (group.member_count == 0) return;
  constexpr std::uint32_t multiplier = 1664525;
  constexpr std::uint32_t increment = 1013904223;
  constexpr int used_shift = 16;
  group.random = group.random * multiplier + increment;
  const RateLimit* start = group.members;
  const auto skipped =
      (group.random >> used_shift) % static_cast<std::uint32_t>(group.member_count);
  for (std::uint32_t i = 0; i < skipped; ++i) start = start->next;
  // Returns the next member. Over TLS, resuming invokes callbacks, which may free members.
  const auto resume_member = [&group, direction](const RateLimit& member) -> const RateLimit* {
    void* const lock = member.bev->lock;
    if (!try_lock(lock)) {
      group.pending_resume[direction] = true;
      return member.next;
    }
    const RateLimit* next = nullptr;
    {
      const Held held(*member.bev);
      resume(*member.bev, direction, suspended::group_bandwidth);
      // The callback may have removed it from the group, but must not free the group. Resuming a
      // member twice has no effect.
      next = member.group == &group ? member.next : group.members;
    }
    tambour::libevent::unlock(lock);
    return next;
  };
  for (const RateLimit* member = start; member != nullptr;) member = resume_member(*member);
  for (const RateLimit* member = group.members; member != nullptr && member != start;)
    member = resume_member(*member);
}

}  // namespace

void update(RateLimit& limit) noexcept {
  timeval now{};
  event_base_gettimeofday_cached(limit.bev->ev_base, &now);
  const ev_uint32_t tick = ev_token_bucket_get_tick_(&now, limit.cfg);
  if (tick != limit.bucket.last_updated) ev_token_bucket_update_(&limit.bucket, limit.cfg, tick);
}

void subtract_from_group(bufferevent_rate_limit_group& group, Direction direction, ev_ssize_t bytes,
                         bool transferred) noexcept {
  const GroupLocked locked(group);
  ev_ssize_t& limit = limit_of(group.bucket, direction);
  const ev_ssize_t before = limit;
  limit -= bytes;
  if (transferred)
    (direction == reading ? group.total_read : group.total_written) +=
        static_cast<std::uint64_t>(bytes);
  if (limit <= 0 && (transferred || before > 0)) {
    suspend_group(group, direction);
  } else if (limit > 0 && (transferred ? group.suspended[direction] : before <= 0)) {
    resume_group(group, direction);
  }
}

namespace {

void count_bytes(BufferEvent& bev, Direction direction, ev_ssize_t bytes) noexcept {
  RateLimit* const limit = bev.limit;
  if (limit == nullptr) return;
  if (limit->cfg != nullptr) {
    ev_ssize_t& ev_ssize = limit_of(limit->bucket, direction);
    ev_ssize -= bytes;
    if (ev_ssize <= 0) {
      suspend(bev, direction, suspended::bandwidth);
      add_refill(*limit);
    } else if (is_suspended(bev, direction)) {
      if (!is_suspended(bev, other(direction))) event_del(&limit->refill);
      resume(bev, direction, suspended::bandwidth);
    }
  }
  if (limit->group != nullptr) subtract_from_group(*limit->group, direction, bytes, true);
}

ev_ssize_t allowance(BufferEvent& bev, Direction direction) noexcept {
  ev_ssize_t largest_limit = max_of(direction == reading ? bev.read_max : bev.write_max);
  RateLimit* const limit = bev.limit;
  if (limit == nullptr) return largest_limit;
  if (limit->cfg != nullptr) {
    update(*limit);
    largest_limit = limit_of(limit->bucket, direction);
  }
  if (bufferevent_rate_limit_group* const group = limit->group; group != nullptr) {
    const GroupLocked locked(*group);
    if (group->suspended[direction]) {
      suspend(bev, direction, suspended::group_bandwidth);
      largest_limit = 0;
    } else {
      const ev_ssize_t share = limit_of(group->bucket, direction) / group->member_count;
      largest_limit =
          std::min(largest_limit, std::max(share, static_cast<ev_ssize_t>(group->min_share)));
    }
  }
  return std::max(largest_limit, ev_ssize_t{0});
}

void on_refill(evutil_socket_t /*fd*/, short /*events*/, void* argument) {
  BufferEvent& bev = of(static_cast<bufferevent*>(argument));
  const Held held(bev);  // Over TLS, resuming invokes callbacks.
  RateLimit* const limit = bev.limit;
  if (limit == nullptr || limit->cfg == nullptr) return;
  update(*limit);
  bool again = false;
  for (const Direction direction : {reading, writing}) {
    if (!is_suspended(bev, direction)) continue;
    if (limit_of(limit->bucket, direction) > 0) {
      resume(bev, direction, suspended::bandwidth);
    } else {
      again = true;
    }
  }
  if (again) add_refill(*limit);
}

}  // namespace

void on_group_refill(evutil_socket_t /*fd*/, short /*events*/, void* argument) {
  auto& group = *static_cast<bufferevent_rate_limit_group*>(argument);
  timeval now{};
  event_base_gettimeofday_cached(event_get_base(&group.refill), &now);
  const GroupLocked locked(group);
  ev_token_bucket_update_(&group.bucket, &group.cfg, ev_token_bucket_get_tick_(&now, &group.cfg));
  for (const Direction direction : {reading, writing}) {
    const bool enough =
        limit_of(group.bucket, direction) >= static_cast<ev_ssize_t>(group.min_share);
    if (group.pending_resume[direction] || (group.suspended[direction] && enough))
      resume_group(group, direction);
  }
}

RateLimit* limit_for(BufferEvent& bev) noexcept {
  if (bev.limit != nullptr) return bev.limit;
  void* const memory = event_mm_calloc_(1, sizeof(RateLimit));
  if (memory == nullptr) return nullptr;
  bev.limit = new (memory) RateLimit{};
  bev.limit->bev = &bev;
  event_assign(&bev.limit->refill, bev.ev_base, -1, EV_FINALIZE, &on_refill,
               static_cast<bufferevent*>(&bev));
  return bev.limit;
}

ev_ssize_t read_allowance(BufferEvent& bev) noexcept { return allowance(bev, reading); }
ev_ssize_t write_allowance(BufferEvent& bev) noexcept { return allowance(bev, writing); }
void count_read(BufferEvent& bev, ev_ssize_t bytes) noexcept { count_bytes(bev, reading, bytes); }
void count_written(BufferEvent& bev, ev_ssize_t bytes) noexcept {
  count_bytes(bev, writing, bytes);
}

event* refill_event(BufferEvent& bev) noexcept {
  return bev.limit != nullptr ? &bev.limit->refill : nullptr;
}

void leave_group(BufferEvent& bev) noexcept {
  if (bev.limit == nullptr || bev.limit->group == nullptr) return;
  bufferevent_rate_limit_group& group = *bev.limit->group;
  const GroupLocked locked(group);
  RateLimit& limit = *bev.limit;
  (limit.previous != nullptr ? limit.previous->next : group.members) = limit.next;
  if (limit.next != nullptr) limit.next->previous = limit.previous;
  limit.group = nullptr;
  --group.member_count;
}

void free_limit(BufferEvent& bev) noexcept {
  if (bev.limit != nullptr) event_mm_free_(bev.limit);
  bev.limit = nullptr;
}

}  // namespace tambour::libevent
