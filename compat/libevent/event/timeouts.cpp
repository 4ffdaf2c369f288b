// Timeouts: the heap, and the queues of common timeouts.

#include <utility>

#include "libevent/event/base.h"
#include "libevent/event/debug_mode.h"

namespace le = tambour::libevent;
using le::BaseLock;
using le::CommonTimeout;

namespace {

void schedule(CommonTimeout& common) noexcept {
  const event& head = *common.events.tqh_first;
  const timeval at = le::to_timeval(le::microseconds_of(head.ev_timeout));
  event_add_nolock_(&common.timer, &at, 1);
}

void on_common_timeout(int, short, void* argument) {
  auto& common = *static_cast<CommonTimeout*>(argument);
  event_base& base = *common.base;
  const BaseLock locked(base);
  const std::int64_t now = base.now();
  while (event* const ev = common.events.tqh_first) {
    if (le::microseconds_of(ev->ev_timeout) > now) return schedule(common);
    le::delete_event(ev, le::Block::never);
    event_active_nolock_(ev, EV_TIMEOUT, 1);
  }
}

/// Most often at the end, because the events have the same duration.
void insert_in_order(CommonTimeout& common, event& ev) noexcept {
  const std::int64_t at = le::microseconds_of(ev.ev_timeout);
  event_list& list = common.events;
  // Each `tqe_prev` is the address of a `tqe_next`; the last one of the head.
  event* after = nullptr;  // The first event with a later deadline.
  event** link = list.tqh_last;
  while (link != &list.tqh_first) {
    auto* const entry =
        reinterpret_cast<decltype(ev.ev_timeout_pos.ev_next_with_common_timeout)*>(link);
    event* const before = *entry->tqe_prev;
    if (le::microseconds_of(before->ev_timeout) <= at) break;
    after = before;
    link = entry->tqe_prev;
  }
  auto& local = ev.ev_timeout_pos.ev_next_with_common_timeout;
  local.tqe_next = after;
  local.tqe_prev = link;
  *link = &ev;
  if (after != nullptr) {
    after->ev_timeout_pos.ev_next_with_common_timeout.tqe_prev = &local.tqe_next;
  } else {
    list.tqh_last = &local.tqe_next;
  }
}

}  // namespace

void event_base::insert_timeout(event& ev) noexcept {
  count(ev.ev_evcallback, 1);
  ev.ev_evcallback.evcb_flags |= EVLIST_TIMEOUT;
  CommonTimeout* const common = common_of(ev.ev_timeout);
  if (common == nullptr) {
    timeouts.add(ev);
    return;
  }
  insert_in_order(*common, ev);
  if (common->events.tqh_first == &ev) schedule(*common);
}

void event_base::remove_timeout(event& ev) noexcept {
  count(ev.ev_evcallback, -1);
  ev.ev_evcallback.evcb_flags &= ~EVLIST_TIMEOUT;
  CommonTimeout* const common = common_of(ev.ev_timeout);
  if (common == nullptr) {
    timeouts.remove(ev);
    return;
  }
  auto& local = ev.ev_timeout_pos.ev_next_with_common_timeout;
  if (local.tqe_next != nullptr) {
    local.tqe_next->ev_timeout_pos.ev_next_with_common_timeout.tqe_prev = local.tqe_prev;
  } else {
    common->events.tqh_last = local.tqe_prev;
  }
  *local.tqe_prev = local.tqe_next;
}

const timeval* event_base_init_common_timeout(event_base* base, const timeval* duration) {
  const BaseLock locked(*base);
  timeval wanted = *duration;
  if (wanted.tv_usec > le::us_per_s) {
    if (base->common_of(wanted) != nullptr)
      wanted.tv_usec &= static_cast<suseconds_t>(le::common::microseconds);
    wanted.tv_sec += wanted.tv_usec / le::us_per_s;
    wanted.tv_usec %= le::us_per_s;
  }
  for (int i = 0; i < base->common_count; ++i) {
    const timeval& known = base->commons[i]->duration;
    const auto known_us =
        static_cast<suseconds_t>(le::common::bits(known) & le::common::microseconds);
    if (known.tv_sec == wanted.tv_sec && known_us == wanted.tv_usec) return &known;
  }
  if (base->common_count == le::common::count_max) {
    event_warnx("%s: Too many common timeouts already in use; we only support %d per event_base",
                "event_base_init_common_timeout", le::common::count_max);
    return nullptr;
  }
  if (base->commons == nullptr) {
    base->commons = static_cast<CommonTimeout**>(
        event_mm_malloc_(le::common::count_max * sizeof(CommonTimeout*)));
  }
  auto* const created =
      base->commons == nullptr
          ? nullptr
          : static_cast<CommonTimeout*>(event_mm_calloc_(1, sizeof(CommonTimeout)));
  if (created == nullptr) {
    event_warn("%s: calloc", "event_base_init_common_timeout");
    return nullptr;
  }
  created->events.tqh_last = &created->events.tqh_first;
  created->base = base;
  const unsigned long index = static_cast<unsigned long>(base->common_count)
                              << le::common::index_shift;
  created->duration = {.tv_sec = wanted.tv_sec,
                       .tv_usec = static_cast<suseconds_t>(
                           static_cast<unsigned long>(wanted.tv_usec) | le::common::mark | index)};
  event_assign(&created->timer, base, -1, 0, &on_common_timeout, created);
  created->timer.ev_evcallback.evcb_flags |= EVLIST_INTERNAL;
  event_priority_set(&created->timer, 0);
  base->commons[base->common_count++] = created;
  return &created->duration;
}
