// The calls on handles that an input can make, each with its report to the model.
#include "fuzz/player_handles.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace tambour::fuzz {
namespace {

constexpr int signal_numbers[] = {SIGURG, SIGWINCH, SIGCONT};

constexpr Kind kinds_of_hook[] = {Kind::idle, Kind::prepare, Kind::check, Kind::cleanup,
                                  Kind::fork};
constexpr HookPoint points[] = {HookPoint::idle, HookPoint::prepare, HookPoint::check,
                                HookPoint::cleanup, HookPoint::fork};

}  // namespace

// --- Watchers.

int Player::watched_number() {
  const std::size_t choice = input_.below(files_.size() + 2);
  if (choice == files_.size()) return descriptors_->bad_number();
  if (choice > files_.size()) return -1;
  return files_[choice].fd;
}

bool Player::is_open(int fd) const {
  return std::ranges::any_of(files_, [fd](const File& file) { return file.fd == fd; });
}

/// Records the watcher's descriptor in the model and in the table of descriptors.
void Player::note_fd(Slot<FdWatcher>& slot, int fd) {
  model_.at(slot.id).fd = fd;
  if (fd >= 0) announced_[fd] = true;
}

void Player::ensure(Slot<FdWatcher>& slot) {
  if (slot.handle != nullptr) return;
  const int fd = watched_number();
  const Events interest = events();
  const bool edge = input_.below(4) == 3;
  slot.id = model_.add(Kind::watcher);
  const std::uint32_t tag = model_.at(slot.id).tag = ++tags_;
  note("new watcher " + std::to_string(slot.id) + " of " + std::to_string(fd) + " for " +
       std::to_string(unsigned(interest)) + (edge ? " by edges" : ""));
  slot.handle =
      std::make_unique<FdWatcher>(*loop_, fd, interest, function<FdWatcher::Function>(slot.id, tag),
                                  edge ? Trigger::edge : Trigger::level);
  model_.set_interest(slot.id, interest, edge);
  note_fd(slot, fd);
}

void Player::start(Slot<FdWatcher>& slot) {
  Item& item = model_.at(slot.id);
  // The contract: after a descriptor was closed and opened again, the program calls set(). A closed
  // descriptor may have been reused by the loop itself.
  if (item.fd >= 0 && !item.started && !announced_[item.fd])
    set_descriptor(slot, is_open(item.fd) ? item.fd : watched_number());
  note("start " + std::to_string(slot.id));
  const bool started = slot.handle->start().has_value();
  check(started == (item.fd >= 0), "what FdWatcher::start() returned");
  if (!started || item.started) return;
  model_.start(slot.id);
  item.failing = item.fd == descriptors_->bad_number();
}

void Player::set_descriptor(Slot<FdWatcher>& slot, int fd) {
  const Events interest = events();
  const bool edge = input_.below(4) == 3;
  note("set " + std::to_string(slot.id) + " to " + std::to_string(fd) + " for " +
       std::to_string(unsigned(interest)) + (edge ? " by edges" : ""));
  slot.handle->set(fd, interest, edge ? Trigger::edge : Trigger::level);
  const bool started = model_.at(slot.id).started;
  model_.stop(slot.id);
  model_.set_interest(slot.id, interest, edge);
  note_fd(slot, fd);
  if (!started || fd < 0) return;
  model_.start(slot.id);
  model_.at(slot.id).failing = fd == descriptors_->bad_number();
}

void Player::act_on_watcher() {
  auto& slot = watchers_[input_.below(watchers_.size())];
  const std::size_t kind = input_.below(12);
  if (kind == 10) return destroy(slot);
  ensure(slot);
  switch (kind) {
    case 0:
    case 1:
    case 2:
    case 3:
      return start(slot);
    case 4:
    case 5:
      note("stop " + std::to_string(slot.id));
      slot.handle->stop();
      return model_.stop(slot.id);
    case 6: {
      const Events interest = events();
      const bool edge = input_.below(4) == 3;
      note("set " + std::to_string(slot.id) + " to " + std::to_string(unsigned(interest)) +
           (edge ? " by edges" : ""));
      slot.handle->set(interest, edge ? Trigger::edge : Trigger::level);
      return model_.set_interest(slot.id, interest, edge);
    }
    case 7:
      return set_descriptor(slot, watched_number());
    case 8:
      return set_priority(slot);
    case 9:
      return set_function<FdWatcher, FdWatcher::Function>(slot);
    default:
      return move(watchers_, slot);
  }
}

// --- Timers.

void Player::ensure(Slot<Timer>& slot) {
  if (slot.handle != nullptr) return;
  slot.id = model_.add(Kind::timer);
  const std::uint32_t tag = model_.at(slot.id).tag = ++tags_;
  note("new timer " + std::to_string(slot.id));
  slot.handle = std::make_unique<Timer>(*loop_, function<Timer::Function>(slot.id, tag));
}

void Player::start_timer(Slot<Timer>& slot) {
  Item& item = model_.at(slot.id);
  const Duration first = delay();
  const Duration interval = input_.below(3) == 2 ? delay() : Duration(0);
  note("start " + std::to_string(slot.id) + ": " + text(first) + ", then " + text(interval));
  const std::int64_t before = descriptors_->now_ns();
  if (interval == Duration(0)) {
    slot.handle->start(first);
  } else {
    slot.handle->start(first, interval);
  }
  const std::int64_t deadline = slot.handle->deadline().time_since_epoch().count();
  check(deadline >= after(before, first) && deadline <= after(descriptors_->now_ns(), first),
        "the deadline of a timer that was started");
  item.repeating = interval.count() > 0;
  item.period = item.repeating ? interval.count() : first.count();
  model_.arm(slot.id, deadline);
}

void Player::act_on_timer() {
  auto& slot = timers_[input_.below(timers_.size())];
  const std::size_t kind = input_.below(12);
  if (kind == 10) return destroy(slot);
  ensure(slot);
  Item& item = model_.at(slot.id);
  const std::int64_t now = loop_->now().time_since_epoch().count();
  switch (kind) {
    case 0:
    case 1:
    case 2:
    case 3:
      return start_timer(slot);
    case 4: {
      const Duration delay = this->delay();
      note("start_at " + std::to_string(slot.id) + ": now + " + text(delay));
      slot.handle->start_at(TimePoint(Duration(after(now, delay))));
      item.repeating = false;
      item.period = 0;
      return model_.arm(slot.id, after(now, delay));
    }
    case 5: {
      const Duration delay = this->delay();
      note("reset " + std::to_string(slot.id) + ": " + text(delay));
      slot.handle->reset(delay);
      if (!item.repeating) item.period = delay.count();
      return model_.arm(slot.id, after(now, delay));
    }
    case 6:
      note("reset " + std::to_string(slot.id));
      slot.handle->reset();
      return model_.arm(slot.id, after(now, Duration(item.period)));
    case 7:
      note("stop " + std::to_string(slot.id));
      slot.handle->stop();
      return model_.stop(slot.id);
    case 8:
      return set_priority(slot);
    case 9:
      return set_function<Timer, Timer::Function>(slot);
    default:
      return move(timers_, slot);
  }
}

// --- Hooks, asyncs, signals.

void Player::ensure(Slot<Hook>& slot) {
  if (slot.handle != nullptr) return;
  const std::size_t point = input_.below(std::size(points));
  slot.id = model_.add(kinds_of_hook[point]);
  const std::uint32_t tag = model_.at(slot.id).tag = ++tags_;
  note("new " + Model::name(slot.id, model_.at(slot.id)));
  slot.handle =
      std::make_unique<Hook>(*loop_, points[point], function<Hook::Function>(slot.id, tag));
}

void Player::act_on_hook() {
  auto& slot = hooks_[input_.below(hooks_.size())];
  const std::size_t kind = input_.below(8);
  if (kind == 6) return destroy(slot);
  ensure(slot);
  switch (kind) {
    case 4:
      note("stop " + std::to_string(slot.id));
      slot.handle->stop();
      return model_.stop(slot.id);
    case 5:
      return set_priority(slot);
    case 7:
      return move(hooks_, slot);
    default:
      note("start " + std::to_string(slot.id));
      slot.handle->start();
      return model_.start(slot.id);
  }
}

void Player::act_on_async() {
  auto& slot = asyncs_[input_.below(asyncs_.size())];
  if (slot.handle == nullptr) {
    slot.id = model_.add(Kind::async);
    const std::uint32_t tag = model_.at(slot.id).tag = ++tags_;
    note("new async " + std::to_string(slot.id));
    slot.handle = std::make_unique<Async>(*loop_, function<Async::Function>(slot.id, tag));
  }
  switch (input_.below(8)) {
    case 0:
    case 1:
      note("start " + std::to_string(slot.id));
      slot.handle->start();
      return model_.start(slot.id);
    case 2:
      note("stop " + std::to_string(slot.id));
      slot.handle->stop();
      return model_.stop(slot.id);
    case 3:
      return set_priority(slot);
    case 4:
      return destroy(slot);
    default:
      note("send " + std::to_string(slot.id));
      slot.handle->send();
      model_.at(slot.id).sent = true;
      // Sending to a stopped async causes an iteration without a callback.
      model_.disturb();
  }
}

void Player::ensure(Slot<Signal>& slot) {
  if (slot.handle != nullptr) return;
  slot.id = model_.add(Kind::signal);
  Item& item = model_.at(slot.id);
  item.tag = ++tags_;
  item.number = signal_numbers[input_.below(std::size(signal_numbers))];
  note("new signal " + std::to_string(slot.id) + " of " + std::to_string(item.number));
  slot.handle =
      std::make_unique<Signal>(*loop_, item.number, function<Signal::Function>(slot.id, item.tag));
}

void Player::act_on_signal() {
  auto& slot = signals_[input_.below(signals_.size())];
  const std::size_t kind = input_.below(12);
  if (kind == 4) return destroy(slot);
  ensure(slot);
  const int number = slot.handle->number();
  switch (kind) {
    case 0:
    case 1:
    case 2:
      note("start " + std::to_string(slot.id));
      check(slot.handle->start().has_value(), "Signal::start()");
      model_.disturb();  // The first signal handle makes the loop watch for signals.
      return model_.start(slot.id);
    case 3:
      note("stop " + std::to_string(slot.id));
      slot.handle->stop();
      return model_.stop(slot.id);
    case 5:
      return set_priority(slot);
    case 6:
      return set_function<Signal, Signal::Function>(slot);
    case 7:
      return move(signals_, slot);
    case 8:
    case 9:
      // After the wait, other events determine whether the signal is delivered in this iteration.
      if (state_ != State::outside && state_ != State::dispatching) return;
      note("raise " + std::to_string(number));
      Signal::feed(number);
      return model_.raise_signal(number);
    default:
      note("feed signal " + std::to_string(number));
      Signal::feed(*loop_, number);
      return model_.feed_signal(number);
  }
}

}  // namespace tambour::fuzz
