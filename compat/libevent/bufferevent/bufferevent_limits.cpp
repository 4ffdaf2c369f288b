// Rate limits in event2/bufferevent.h.

#include <algorithm>
#include <climits>
#include <new>

#include "libevent/bufferevent/rate_limit.h"

using tambour::libevent::BevLocked;
using tambour::libevent::BufferEvent;
using tambour::libevent::Direction;
using tambour::libevent::GroupLocked;
using tambour::libevent::Held;
using tambour::libevent::limit_for;
using tambour::libevent::limit_of;
using tambour::libevent::max_of;
using tambour::libevent::of;
using tambour::libevent::on_group_refill;
using tambour::libevent::RateLimit;
using tambour::libevent::reading;
using tambour::libevent::writing;
namespace suspended = tambour::libevent::suspended;

ev_token_bucket_cfg* ev_token_bucket_cfg_new(size_t read_rate, size_t read_burst, size_t write_rate,
                                             size_t write_burst, const timeval* tick_len) {
  // The upper bits of a common timeout are not part of its time.
  constexpr long us_mask = 0x000fffff;
  constexpr long us_per_ms = 1000;
  constexpr long ms_per_second = 1000;
  const timeval tick = tick_len != nullptr ? *tick_len : timeval{1, 0};
  if (read_rate > read_burst || write_rate > write_burst || read_rate < 1 || write_rate < 1)
    return nullptr;
  if (read_burst > EV_RATE_LIMIT_MAX || write_burst > EV_RATE_LIMIT_MAX) return nullptr;
  if (tick.tv_sec < 0 || tick.tv_sec > INT_MAX / ms_per_second) return nullptr;
  const long ms = tick.tv_sec * ms_per_second + (tick.tv_usec & us_mask) / us_per_ms;
  if (ms <= 0) return nullptr;
  void* const memory = event_mm_calloc_(1, sizeof(ev_token_bucket_cfg));
  if (memory == nullptr) return nullptr;
  return new (memory) ev_token_bucket_cfg{read_rate,   read_burst, write_rate,
                                          write_burst, tick,       static_cast<unsigned>(ms)};
}

void ev_token_bucket_cfg_free(ev_token_bucket_cfg* cfg) { event_mm_free_(cfg); }

int bufferevent_set_rate_limit(bufferevent* bufev, ev_token_bucket_cfg* cfg) {
  BufferEvent& bev = of(bufev);
  const Held held(bev);  // Over TLS, resuming invokes callbacks.
  if (cfg == nullptr) {
    if (bev.limit == nullptr) return 0;
    bev.limit->cfg = nullptr;
    bev.resume_reading(suspended::bandwidth);
    bev.resume_writing(suspended::bandwidth);
    event_del(&bev.limit->refill);
    return 0;
  }
  RateLimit* const limit = limit_for(bev);
  if (limit == nullptr) return -1;
  if (limit->cfg == cfg) return 0;
  timeval now{};
  event_base_gettimeofday_cached(bev.ev_base, &now);
  const bool keep = limit->cfg != nullptr;
  limit->cfg = cfg;
  ev_token_bucket_init_(&limit->bucket, cfg, ev_token_bucket_get_tick_(&now, cfg), keep ? 1 : 0);
  event_del(&limit->refill);
  bool waits = false;
  for (const Direction direction : {reading, writing}) {
    if (limit_of(limit->bucket, direction) > 0) {
      resume(bev, direction, suspended::bandwidth);
    } else {
      suspend(bev, direction, suspended::bandwidth);
      waits = true;
    }
  }
  if (waits) add_refill(*limit);
  return 0;
}

bufferevent_rate_limit_group* bufferevent_rate_limit_group_new(event_base* base,
                                                               const ev_token_bucket_cfg* cfg) {
  constexpr std::size_t min_share_default = 64;
  void* const memory = event_mm_calloc_(1, sizeof(bufferevent_rate_limit_group));
  if (memory == nullptr) return nullptr;
  auto* const group = new (memory) bufferevent_rate_limit_group{};
  timeval now{};
  event_base_gettimeofday_cached(base, &now);
  group->cfg = *cfg;
  group->random = static_cast<std::uint32_t>(now.tv_usec);
  ev_token_bucket_init_(&group->bucket, cfg, ev_token_bucket_get_tick_(&now, cfg), 0);
  event_assign(&group->refill, base, -1, EV_PERSIST | EV_FINALIZE, &on_group_refill, group);
  if (event_add(&group->refill, &cfg->tick) != 0) {
    event_mm_free_(group);
    return nullptr;
  }
  group->lock = tambour::libevent::make_lock(EVTHREAD_LOCKTYPE_RECURSIVE);
  bufferevent_rate_limit_group_set_min_share(group, min_share_default);
  return group;
}

int bufferevent_rate_limit_group_set_cfg(bufferevent_rate_limit_group* group,
                                         const ev_token_bucket_cfg* cfg) {
  if (group == nullptr || cfg == nullptr) return -1;
  const GroupLocked locked(*group);
  const bool same_tick = evutil_timercmp(&group->cfg.tick, &cfg->tick, ==);
  group->cfg = *cfg;
  ev_token_bucket_init_(&group->bucket, cfg, 0, 1);
  if (!same_tick) event_add(&group->refill, &cfg->tick);
  return bufferevent_rate_limit_group_set_min_share(group, group->configured_min_share);
}

int bufferevent_rate_limit_group_set_min_share(bufferevent_rate_limit_group* group, size_t share) {
  if (share > EV_SSIZE_MAX) return -1;
  const GroupLocked locked(*group);
  group->configured_min_share = share;
  group->min_share = std::min({share, group->cfg.read_rate, group->cfg.write_rate});
  return 0;
}

void bufferevent_rate_limit_group_free(bufferevent_rate_limit_group* group) {
  tambour::libevent::lock(group->lock);
  // Members that are left must not refer to the group.
  while (group->members != nullptr) {
    BufferEvent& bev = *group->members->bev;
    const Held held(bev);
    leave_group(bev);
    bev.resume_reading(suspended::group_bandwidth);
    bev.resume_writing(suspended::group_bandwidth);
  }
  event_del(&group->refill);
  tambour::libevent::unlock(group->lock);
  tambour::libevent::free_lock(group->lock, EVTHREAD_LOCKTYPE_RECURSIVE);
  event_mm_free_(group);
}

int bufferevent_add_to_rate_limit_group(bufferevent* bufev, bufferevent_rate_limit_group* group) {
  BufferEvent& bev = of(bufev);
  const Held held(bev);
  RateLimit* const limit = limit_for(bev);
  if (limit == nullptr) return -1;
  if (limit->group == group) return 0;
  // Over TLS, that invokes callbacks, which may add it to another group.
  while (limit->group != nullptr) bufferevent_remove_from_rate_limit_group(bufev);
  bool waits[2];
  {
    const GroupLocked group_locked(*group);
    limit->group = group;
    limit->previous = nullptr;
    limit->next = group->members;
    if (limit->next != nullptr) limit->next->previous = limit;
    group->members = limit;
    ++group->member_count;
    waits[reading] = group->suspended[reading];
    waits[writing] = group->suspended[writing];
  }
  for (const Direction direction : {reading, writing})
    if (waits[direction]) suspend(bev, direction, suspended::group_bandwidth);
  return 0;
}

int bufferevent_remove_from_rate_limit_group(bufferevent* bufev) {
  BufferEvent& bev = of(bufev);
  const Held held(bev);
  leave_group(bev);
  bev.resume_reading(suspended::group_bandwidth);
  bev.resume_writing(suspended::group_bandwidth);
  return 0;
}

namespace {

ev_ssize_t limit_now(bufferevent* bufev, Direction direction) noexcept {
  BufferEvent& bev = of(bufev);
  const BevLocked locked(bev);
  if (bev.limit == nullptr || bev.limit->cfg == nullptr) return EV_SSIZE_MAX;
  update(*bev.limit);
  return limit_of(bev.limit->bucket, direction);
}

/// Subtracts from a limit, member must exist.
int decrement(bufferevent* bufev, Direction direction, ev_ssize_t bytes) noexcept {
  BufferEvent& bev = of(bufev);
  const BevLocked locked(bev);
  if (bev.limit == nullptr || bev.limit->cfg == nullptr) return -1;
  ev_ssize_t& limit = limit_of(bev.limit->bucket, direction);
  const ev_ssize_t before = limit;
  limit -= bytes;
  if (before > 0 && limit <= 0) {
    suspend(bev, direction, suspended::bandwidth);
    return event_add(&bev.limit->refill, &bev.limit->cfg->tick) < 0 ? -1 : 0;
  }
  if (before <= 0 && limit > 0) {
    if (!is_suspended(bev, other(direction))) event_del(&bev.limit->refill);
    resume(bev, direction, suspended::bandwidth);
  }
  return 0;
}

int set_max(bufferevent* bufev, ev_ssize_t BufferEvent::* member, std::size_t size) noexcept {
  const BevLocked locked(of(bufev));
  of(bufev).*member = size > EV_SSIZE_MAX ? 0 : static_cast<ev_ssize_t>(size);
  return 0;
}

}  // namespace

ev_ssize_t bufferevent_get_read_limit(bufferevent* bev) { return limit_now(bev, reading); }
ev_ssize_t bufferevent_get_write_limit(bufferevent* bev) { return limit_now(bev, writing); }

int bufferevent_decrement_read_limit(bufferevent* bev, ev_ssize_t decr) {
  return decrement(bev, reading, decr);
}
int bufferevent_decrement_write_limit(bufferevent* bev, ev_ssize_t decr) {
  return decrement(bev, writing, decr);
}

int bufferevent_set_max_single_read(bufferevent* bev, size_t size) {
  return set_max(bev, &BufferEvent::read_max, size);
}
int bufferevent_set_max_single_write(bufferevent* bev, size_t size) {
  return set_max(bev, &BufferEvent::write_max, size);
}
ev_ssize_t bufferevent_get_max_single_read(bufferevent* bev) {
  const BevLocked locked(of(bev));
  return max_of(of(bev).read_max);
}
ev_ssize_t bufferevent_get_max_single_write(bufferevent* bev) {
  const BevLocked locked(of(bev));
  return max_of(of(bev).write_max);
}
ev_ssize_t bufferevent_get_max_to_read(bufferevent* bev) {
  const BevLocked locked(of(bev));
  return read_allowance(of(bev));
}
ev_ssize_t bufferevent_get_max_to_write(bufferevent* bev) {
  const BevLocked locked(of(bev));
  return write_allowance(of(bev));
}

const ev_token_bucket_cfg* bufferevent_get_token_bucket_cfg(const bufferevent* bev) {
  const BevLocked locked(of(bev));
  return of(bev).limit != nullptr ? of(bev).limit->cfg : nullptr;
}

ev_ssize_t bufferevent_rate_limit_group_get_read_limit(bufferevent_rate_limit_group* group) {
  const GroupLocked locked(*group);
  return group->bucket.read_limit;
}
ev_ssize_t bufferevent_rate_limit_group_get_write_limit(bufferevent_rate_limit_group* group) {
  const GroupLocked locked(*group);
  return group->bucket.write_limit;
}
int bufferevent_rate_limit_group_decrement_read(bufferevent_rate_limit_group* group,
                                                ev_ssize_t decr) {
  subtract_from_group(*group, reading, decr, false);
  return 0;
}
int bufferevent_rate_limit_group_decrement_write(bufferevent_rate_limit_group* group,
                                                 ev_ssize_t decr) {
  subtract_from_group(*group, writing, decr, false);
  return 0;
}

void bufferevent_rate_limit_group_get_totals(bufferevent_rate_limit_group* grp,
                                             ev_uint64_t* total_read_out,
                                             ev_uint64_t* total_written_out) {
  if (total_read_out != nullptr) *total_read_out = grp->total_read;
  if (total_written_out != nullptr) *total_written_out = grp->total_written;
}
void bufferevent_rate_limit_group_reset_totals(bufferevent_rate_limit_group* grp) {
  grp->total_read = grp->total_written = 0;
}
