// The calls on wall-clock timers that an input can make, each with its report to the model. On the
// simulator, the clock is set too.
#include <utility>

#include "fuzz/player_handles.h"

namespace tambour::fuzz {
namespace {

constexpr std::int64_t never_ns = WallTime::max().time_since_epoch().count();

std::int64_t ns_of(WallTime time) { return time.time_since_epoch().count(); }

}  // namespace

void Player::ensure(Slot<WallTimer>& slot) {
  if (slot.handle != nullptr) return;
  slot.id = model_.add(Kind::wall_timer);
  const std::uint32_t tag = model_.at(slot.id).tag = ++tags_;
  note("new wall-clock timer " + std::to_string(slot.id));
  slot.handle = std::make_unique<WallTimer>(*loop_, function<WallTimer::Function>(slot.id, tag));
}

/// The next time of a computed timer: any time after `now`, or WallTime::max() for unknown.
WallTime Player::answer(Id id, WallTime now) {
  if (silent()) return WallTime::max();
  check(ns_of(now) <= descriptors_->wall_now_ns(), "the time that a timer was asked with");
  const Duration delay = this->delay();
  // Throws in the same states as callbacks do: see act_inside().
  if (delay < Duration(0) && (starting_ || state_ == State::dispatching)) {
    note("wall-clock timer " + std::to_string(id) + " is asked, and throws");
    model_.stop(id);
    throw Thrown{};
  }
  const std::int64_t next = after(ns_of(now), delay + Duration(delay == Duration(0) ? 1 : 0));
  note("wall-clock timer " + std::to_string(id) +
       " computes its next time: " + std::to_string(next));
  model_.answered(id, next);
  return WallTime(Duration(next));
}

void Player::start_by_asking(Slot<WallTimer>& slot) {
  const Id id = slot.id;
  note("start " + std::to_string(id) + " by asking");
  model_.stop(id);
  Item& item = model_.at(id);
  item.repeating = false;
  item.computed = true;
  starting_ = true;
  try {
    check(slot.handle->start_by([this, id](WallTime now) { return answer(id, now); }).has_value(),
          "WallTimer::start_by()");
    model_.arm_wall(id, ns_of(slot.handle->time()));
  } catch (const Thrown&) {
    check(!slot.handle->is_started(), "a timer that threw when it was asked");
  }
  starting_ = false;
}

void Player::start_wall_timer(Slot<WallTimer>& slot, std::size_t mode) {
  Item& item = model_.at(slot.id);
  const Duration delay = this->delay();
  const std::int64_t now = descriptors_->wall_now_ns();
  if (mode < 3) {
    const std::int64_t time = delay < Duration(0) ? now - 1'000'000'000 : after(now, delay);
    note("start " + std::to_string(slot.id) + " at " + std::to_string(time));
    check(slot.handle->start_at(WallTime(Duration(time))).has_value(), "WallTimer::start_at()");
    item.repeating = item.computed = false;
    return model_.arm_wall(slot.id, time);
  }
  const Duration offset(input_.byte() - 100);
  note("start " + std::to_string(slot.id) + " every " + text(delay) + " and " + text(offset));
  const bool started = slot.handle->start_every(delay, offset).has_value();
  check(started == (delay > Duration(0)), "WallTimer::start_every()");
  if (!started) return model_.stop(slot.id);
  item.repeating = true;
  item.computed = false;
  item.period = delay.count();
  item.due_deadline = offset.count();
  const std::int64_t first = ns_of(slot.handle->time());
  check(first > now && first <= after(descriptors_->wall_now_ns(), delay),
        "the first time of many");
  model_.arm_wall(slot.id, first);
}

/// Checks the next time of each timer. That of a repeating timer is copied into the model.
void Player::note_wall_times() {
  for (auto& slot : wall_timers_) {
    if (slot.handle == nullptr || silent()) continue;
    Item& item = model_.at(slot.id);
    check(slot.handle->is_started() == item.started, "WallTimer::started()");
    if (!item.started) continue;
    const std::int64_t time = ns_of(slot.handle->time());
    if (!item.repeating) {
      check(time == item.deadline, "WallTimer::time()");
      continue;
    }
    const std::int64_t offset = item.due_deadline;
    check(time == never_ns || (time - offset) % item.period == 0, "the time of an interval");
    item.deadline = time;
  }
}

void Player::set_wall_clock() {
  const Duration delay = this->delay();
  const Duration largest_limit = std::chrono::hours(255);
  const bool back = input_.flag();
  if (delay < Duration(0) || delay > largest_limit) return;
  const std::int64_t now = descriptors_->wall_now_ns() + (back ? -delay.count() : delay.count());
  if (!descriptors_->set_wall_clock(now)) return;
  note("set the wall clock to " + std::to_string(now));
  model_.wall_clock_set(now);
}

void Player::act_on_wall_timer() {
  auto& slot = wall_timers_[input_.below(wall_timers_.size())];
  const std::size_t kind = input_.below(16);
  if (kind == 10) return destroy(slot);
  ensure(slot);
  switch (kind) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return start_wall_timer(slot, kind);
    case 5:
    case 6:
      return start_by_asking(slot);
    case 7:
      note("ask " + std::to_string(slot.id) + " again");
      slot.handle->recompute();
      model_.at(slot.id).asked = model_.at(slot.id).computed;
      return model_.disturb();
    case 8:
      note("stop " + std::to_string(slot.id));
      slot.handle->stop();
      return model_.stop(slot.id);
    case 9:
      return set_priority(slot);
    case 11:
      return set_function<WallTimer, WallTimer::Function>(slot);
    case 12:
      return move(wall_timers_, slot);
    default:
      return set_wall_clock();
  }
}

}  // namespace tambour::fuzz
