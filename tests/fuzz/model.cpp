// Model: what a loop must do after each call, written plainly.
#include "fuzz/model.h"

#include <poll.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace tambour::fuzz {
namespace {

constexpr std::int64_t end_of_time = std::numeric_limits<std::int64_t>::max();

/// Returns the events that a watcher of `interest` receives if poll(2) reports `ready`: an error or
/// hang-up makes everything ready. A watcher without interest receives nothing.
Events reported_events(unsigned ready, Events interest) {
  if (interest == Events::none) return Events::none;
  Events got = Events(std::uint16_t(ready)) &
               (Events::read | Events::urgent | Events::write | Events::closed | Events::error);
  if ((ready & (POLLERR | POLLHUP)) == 0) return got & interest;
  got = (got & Events::error) | Events::read | Events::write | Events::closed;
  const Events hit = got & (interest | Events::error);
  return hit == Events::none && (ready & POLLHUP) != 0 ? interest : hit;
}

bool contains(Events set, Events part) { return (set & part) == part; }

std::string text(Events events) { return std::to_string(unsigned(events)); }

}  // namespace

std::string Model::name(Id id, const Item& item) {
  static constexpr const char* names[] = {
      "watcher",      "timer",     "prepare hook", "check hook", "idle hook",
      "cleanup hook", "fork hook", "async",        "signal",     "wall-clock timer"};
  return std::string(names[std::size_t(item.kind)]) + " " + std::to_string(id);
}

void Model::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

Id Model::add(Kind kind) {
  items_[next_id_].kind = kind;
  return next_id_++;
}

void Model::queue(Item& item, Due due, bool certain) {
  if (item.due == Due::no) {
    item.due = due;
    item.due_priority = item.priority;
    item.late = false;
  } else if (!item.certain && item.due_priority != item.priority) {
    item.late = true;  // The model cannot know with which of the two priorities it was queued.
  }
  item.certain = item.certain || certain;
}

void Model::drop(Item& item) noexcept {
  item.due = Due::no;
  item.certain = false;
  item.late = false;
  item.must = item.may = Events::none;
}

void Model::start(Id id) {
  Item& item = at(id);
  if (item.started) return;
  item.started = true;
  item.fresh = true;
  item.perhaps = item.kind == Kind::signal && raised_[item.number] > 0;
}

void Model::stop(Id id) {
  Item& item = at(id);
  item.started = false;
  item.failing = false;
  item.raised = item.perhaps = false;
  item.overdue = item.asked = false;
  drop(item);
}

void Model::set_interest(Id id, Events interest, bool edge) {
  Item& item = at(id);
  item.interest = interest;
  item.edge = edge;
  item.fresh = true;
  if (item.failing || item.due == Due::no) return;
  item.must &= interest | Events::error;
  item.may &= interest | Events::error;
  if (item.may == Events::none) {
    drop(item);
  } else if (item.must == Events::none) {
    item.certain = false;
  }
}

void Model::feed(int fd, Events events) {
  for (auto& [id, item] : items_) {
    if (item.kind != Kind::watcher || !item.started || item.failing || item.fd != fd) continue;
    const Events hit = reported_events(unsigned(events), item.interest);
    if (hit == Events::none) continue;
    if (item.due == Due::now && !item.certain) {
      // The model cannot know whether it is merged into the pending call or comes in the next
      // iteration.
      item.may |= hit;
      item.loose = true;
      continue;
    }
    queue(item, Due::next, true);
    item.must |= hit;
    item.may |= hit;
  }
}

void Model::arm(Id id, std::int64_t deadline) {
  Item& item = at(id);
  drop(item);
  item.started = true;
  item.deadline = deadline;
}

void Model::arm_wall(Id id, std::int64_t deadline) {
  stop(id);
  Item& item = at(id);
  item.started = true;
  item.deadline = item.was_asked = deadline;
  // On a kernel backend the loop has a timerfd, which is not rearmed when the timer is stopped: it
  // may wake the loop long after that.
  if (!virtual_time) rings_ = true;
}

void Model::answered(Id id, std::int64_t deadline) {
  Item& item = at(id);
  item.was_asked = item.deadline;
  item.deadline = deadline;
  disturb();
}

void Model::wall_clock_set(std::int64_t now_ns) {
  disturb();
  for (auto& [id, item] : items_) {
    if (item.kind != Kind::wall_timer || !item.started) continue;
    item.asked = item.asked || item.computed;
    if (item.deadline > now_ns) item.certain = item.overdue = false;
  }
}

void Model::reopened() {
  disturb();
  for (auto& [id, item] : items_) {
    if (!item.started) continue;
    if (item.kind == Kind::fork) queue(item, Due::next, true);
    if (item.kind == Kind::wall_timer) item.asked = item.asked || item.computed;
  }
}

void Model::feed_signal(int number) {
  for (auto& [id, item] : items_) {
    if (item.kind != Kind::signal || !item.started || item.number != number) continue;
    // As with descriptors, the model cannot know whether it is merged into the pending call.
    if (item.due == Due::now && !item.certain) {
      item.perhaps = true;
    } else {
      queue(item, Due::next, true);
    }
  }
}

void Model::raise_signal(int number) {
  for (auto& [id, item] : items_) {
    if (item.kind == Kind::signal && item.started && item.number == number) item.raised = true;
  }
  raised_[number] = 3;
  disturb();
}

void Model::begin_prepare() {
  ++iteration_;
  if (disturbed_ > 0) --disturbed_;
  for (auto& [id, item] : items_) {
    if (item.kind == Kind::prepare && item.started) queue(item, Due::now, true);
  }
}

void Model::look_at_wall_clock(std::int64_t now_ns) {
  for (auto& [id, item] : items_) {
    if (item.kind != Kind::wall_timer || !item.started) continue;
    item.overdue = item.deadline <= now_ns;
  }
}

void Model::collect_events_of_wait(Item& watcher, const std::map<int, Readiness>& descriptors) {
  const auto found = descriptors.find(watcher.fd);
  const Readiness ready = found == descriptors.end() ? Readiness{} : found->second;
  Events must = reported_events(ready.must, watcher.interest);
  Events may = reported_events(ready.must, watcher.interest) |
               reported_events(ready.may, watcher.interest) |
               reported_events(ready.may & ~unsigned(POLLERR), watcher.interest);
  if (without_errors) {
    // select(2) reports only readable and writable.
    const unsigned readable = ready.must & (POLLIN | POLLHUP | POLLERR);
    const unsigned writable = ready.must & (POLLOUT | POLLERR);
    must = (readable != 0 ? Events::read : Events::none) |
           (writable != 0 ? Events::write : Events::none);
    must &= watcher.interest;
  }
  if (watcher.edge && !std::exchange(watcher.fresh, false))
    must &= watcher.fresh_read ? Events::read : Events::none;
  watcher.fresh_read = false;
  if (std::exchange(watcher.loose, false)) may |= watcher.interest | Events::error;
  if (false_events) may |= watcher.interest & (Events::read | Events::write);
  if (may == Events::none) return;
  queue(watcher, Due::next, must != Events::none);
  watcher.must |= must;
  watcher.may |= may;
}

void Model::wait(const std::map<int, Readiness>& descriptors) {
  interrupted_ = false;
  for (auto& [id, item] : items_) {
    if (item.due == Due::now) {
      if (item.certain) fail(name(id, item) + " was due and has not been called");
      drop(item);
    }
    if (item.kind != Kind::watcher || !item.started) continue;
    if (item.failing) {
      queue(item, Due::next, true);
      item.must = item.may = Events::error;
      // It may have been queued when it was started, with its priority at that time.
      item.late = true;
    } else {
      collect_events_of_wait(item, descriptors);
    }
  }
}

void Model::begin_check() {
  for (auto& [id, item] : items_) {
    if (item.kind == Kind::check && item.started) queue(item, Due::now, true);
  }
}

void Model::expire(std::int64_t now_ns) {
  for (auto& [id, item] : items_) {
    if (item.kind != Kind::timer || !item.started) continue;
    if (item.due != Due::no && !item.repeating) continue;
    if (item.deadline > now_ns || item.deadline == end_of_time) continue;
    if (item.due == Due::no) {
      item.due_deadline = item.deadline;
      item.batch = iteration_;
    }
    queue(item, Due::next, true);
    if (!item.repeating) continue;
    const std::int64_t missed = (now_ns - item.deadline) / item.period;
    std::int64_t next;
    if (__builtin_mul_overflow(missed + 1, item.period, &next) ||
        __builtin_add_overflow(item.deadline, next, &next))
      next = end_of_time;
    item.deadline = next;
  }
}

void Model::expire_by_wall_clock(std::int64_t now_ns) {
  for (auto& [id, item] : items_) {
    if (item.kind != Kind::wall_timer || !item.started || item.deadline > now_ns) continue;
    const bool certain = virtual_time && item.overdue;
    queue(item, Due::next, certain);
    item.late = item.late || !certain || item.asked;
  }
}

void Model::queue_idle() {
  int highest = -100;
  int highest_perhaps = -100;
  for (const auto& [id, item] : items_) {
    if (item.due != Due::next) continue;
    highest_perhaps = std::max(highest_perhaps, item.late ? 100 : item.due_priority);
    if (item.certain && !item.late) highest = std::max(highest, item.due_priority);
  }
  if (disturbed()) highest_perhaps = 100;
  for (auto& [id, item] : items_) {
    if (item.kind != Kind::idle || !item.started || item.priority <= highest) continue;
    queue(item, Due::next, item.priority > highest_perhaps);
  }
}

void Model::begin_dispatch(std::int64_t now_ns, std::int64_t wall_now_ns) {
  expire(now_ns);
  expire_by_wall_clock(wall_now_ns);
  for (auto& [id, item] : items_) {
    if (item.kind == Kind::async && item.started && item.sent) queue(item, Due::next, true);
  }
  for (auto& [id, item] : items_) {
    const bool raised = std::exchange(item.raised, false);
    if (!raised && !item.perhaps) continue;
    const bool was_due = item.due != Due::no;
    queue(item, Due::next, raised);
    item.late = item.late || !was_due;
    if (item.perhaps) item.perhaps = raised_[item.number] > 1;
  }
  for (auto& [number, iterations] : raised_) --iterations;
  queue_idle();
  begin_pending();
}

void Model::begin_pending() {
  for (auto& [id, item] : items_) {
    if (item.due == Due::next) item.due = Due::now;
    if (item.due == Due::no && item.perhaps) {
      queue(item, Due::now, false);
      item.late = true;
    }
  }
  if (taken_.empty()) taken_.swap(posted_);
}

void Model::end_dispatch(std::string_view after) {
  if (interrupted_) return;
  for (auto& [id, item] : items_) {
    if (item.due != Due::now) continue;
    if (item.certain) fail(name(id, item) + " has not been called after " + std::string(after));
    const Events may = item.may;
    drop(item);
    if (!item.loose) continue;
    // Fed while it was possibly due: it comes in the next iteration or in run_pending().
    queue(item, Due::next, false);
    item.may = may;
    item.late = true;
  }
  if (!taken_.empty()) fail("a posted task has not been run after " + std::string(after));
}

void Model::task_called(std::uint32_t number) {
  if (taken_.empty() || taken_.front() != number) {
    fail("task " + std::to_string(number) + " ran out of order");
    return;
  }
  taken_.pop_front();
  if (interrupted_) return;
  for (const auto& [id, item] : items_) {
    if (item.due == Due::now && item.certain)
      fail("a task was run before " + name(id, item) + ", which is due");
  }
}

void Model::check_order(Id id, const Item& called) {
  for (const auto& [other_id, other] : items_) {
    if (other_id == id || other.due != Due::now || !other.certain || other.late) continue;
    if (other.due_priority > called.due_priority && !called.late)
      fail(name(id, called) + " came before " + name(other_id, other) + " of a higher priority");
    if (other.kind == Kind::timer && called.kind == Kind::timer && other.batch == called.batch &&
        other.due_priority == called.due_priority && other.due_deadline < called.due_deadline)
      fail(name(id, called) + " came before " + name(other_id, other) + ", which was due earlier");
  }
}

void Model::called(Id id, std::uint32_t tag, Events events, std::int64_t wall_now_ns) {
  const auto found = items_.find(id);
  if (found == items_.end())
    return fail("one that was destroyed was called: " + std::to_string(id));
  Item& item = found->second;
  if (item.tag != tag) return fail(name(id, item) + ": a function was called that was replaced");
  if (!item.started) return fail(name(id, item) + " was called though it is stopped");
  if (item.kind == Kind::wall_timer) {
    if ((item.computed ? item.was_asked : item.deadline) > wall_now_ns)
      return fail(name(id, item) + " was called before its time");
    // The loop reads the wall clock itself, possibly later than the model.
    if (item.due == Due::no) item.late = true;
  } else if (item.due != Due::now) {
    return fail(name(id, item) + " was called though it is not due");
  }
  check_order(id, item);
  if (item.kind == Kind::watcher) {
    if (!contains(events, item.must) || !contains(item.may, events) || events == Events::none)
      return fail(name(id, item) + " received " + text(events) + ", which should be " +
                  text(item.must) + " at least, " + text(item.may) + " at most");
    if (std::exchange(item.failing, false)) item.started = false;
  }
  const bool once = !item.repeating && !item.computed;
  if ((item.kind == Kind::timer || item.kind == Kind::wall_timer) && once) item.started = false;
  item.overdue = item.asked = false;
  if (item.kind == Kind::async) item.sent = false;
  drop(item);
}

void Model::destroying_loop() {
  for (auto& [id, item] : items_) {
    if (item.kind == Kind::cleanup && item.started) queue(item, Due::now, true);
  }
}

void Model::destroyed_loop() {
  for (auto& [id, item] : items_) {
    if (item.kind == Kind::cleanup && item.due == Due::now)
      fail(name(id, item) + " was not called when the loop was destroyed");
    item.started = false;
    drop(item);
  }
}

std::int64_t Model::references() const {
  std::int64_t count = 0;
  for (const auto& [id, item] : items_) {
    if (!item.started || item.kind == Kind::cleanup) continue;
    if (item.kind == Kind::timer && !item.repeating && item.due != Due::no) continue;
    ++count;
  }
  return count;
}

bool Model::anything_due() const {
  if (!posted_.empty() || !taken_.empty()) return true;
  return std::ranges::any_of(items_, [](const auto& entry) {
    return entry.second.due != Due::no && entry.second.certain;
  });
}

std::int64_t Model::count_due() const {
  std::int64_t count = 0;
  for (const auto& [id, item] : items_) {
    if (item.due == Due::no) continue;
    if (!item.certain) return -1;
    ++count;
  }
  return count;
}

}  // namespace tambour::fuzz
