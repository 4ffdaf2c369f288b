#include "loop/timers.h"

#include <new>

#include "base/mutant.h"
#include "base/probe.h"

namespace tambour::loop {

void Timers::expire(std::int64_t now_ns, ReadyQueue& ready) noexcept {
  constexpr int few = 8;
  for (int i = 0; i < few; ++i) {
    if (!any_due(now_ns)) return;
    expire_top(now_ns, ready);
  }
  if (!any_due(now_ns)) return;
  try {
    expire_all(now_ns, ready);
  } catch (const std::bad_alloc&) {
    while (any_due(now_ns)) expire_top(now_ns, ready);
  }
}

void Timers::make_ready(Timer& timer, std::int64_t now_ns, ReadyQueue& ready) noexcept {
  TAMBOUR_PROBE2(timer, &timer, now_ns - timer.deadline_ns_);
  if (!timer.linked()) ready.push(timer);
  if (!timer.repeating_) return;
  const std::int64_t missed = (now_ns - timer.deadline_ns_) / timer.period_ns_;
  timer.deadline_ns_ = base::saturating_add(timer.deadline_ns_, (missed + 1) * timer.period_ns_);
}

void Timers::expire_top(std::int64_t now_ns, ReadyQueue& ready) noexcept {
  Timer& timer = heap_.top();
  const std::int64_t key_ns = heap_.top_key();
  if (timer.started_ && timer.deadline_ns_ == key_ns) make_ready(timer, now_ns, ready);
  // The timer repeats or was postponed. It may still be due in this iteration, behind other timers.
  const bool lost = base::mutant == base::Mutant::pushed_back_lost && !timer.repeating_;
  if (timer.started_ && timer.deadline_ns_ > key_ns && !lost) {
    timer.queued_ns_ = timer.deadline_ns_;
    heap_.raise_top_key(timer.deadline_ns_);
  } else {
    heap_.pop();
  }
}

void Timers::expire_all(std::int64_t now_ns, ReadyQueue& ready) {
  const auto due = heap_.take_up_to(now_ns);
  for (std::size_t i = 0; i < due.size(); ++i) {
    // Prefetch: many timers are spread over much memory.
    constexpr std::size_t ahead = 8;
    if (i + ahead < due.size()) __builtin_prefetch(due[i + ahead].item);
    // Timers that were postponed but are still due are in the heap again; expire those that come
    // first.
    while (next_ns() < due[i].key) expire_top(now_ns, ready);
    Timer& timer = *due[i].item;
    if (timer.started_ && timer.deadline_ns_ == due[i].key) make_ready(timer, now_ns, ready);
    if (timer.started_ && timer.deadline_ns_ > due[i].key) arm(timer, timer.deadline_ns_);
  }
  while (any_due(now_ns)) expire_top(now_ns, ready);
}

std::int64_t Timers::count_started() const noexcept {
  std::int64_t count = 0;
  static_cast<void>(heap_.any_of([&count](const Timer& timer) {
    if (timer.started_) ++count;
    return false;
  }));
  return count;
}

bool Timers::are_started(std::int64_t at_least) noexcept {
  std::size_t stopped = 0;
  const bool found = heap_.any_of([&](const Timer& timer) {
    if (!timer.started_) {
      ++stopped;
      return false;
    }
    return --at_least <= 0;
  });
  // Remove stopped timers, or each iteration would walk past them again.
  if (stopped > heap_.size() / 2) {
    heap_.remove_if([](const Timer& timer) { return !timer.started_; });
  }
  return found;
}

void Timers::shift(std::int64_t by_ns) noexcept {
  heap_.change_keys([by_ns](Timer& timer, std::int64_t) {
    timer.deadline_ns_ = base::saturating_add(timer.deadline_ns_, by_ns);
    return timer.queued_ns_ = base::saturating_add(timer.queued_ns_, by_ns);
  });
}

void Timers::abandon() noexcept {
  heap_.drain([](Timer& timer) {
    timer.started_ = false;
    timer.unlink();
  });
}

}  // namespace tambour::loop
