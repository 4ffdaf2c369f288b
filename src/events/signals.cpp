// Signals: the service of a loop that queues the watchers of the signals that have arrived.
#include "events/signals.h"

#include <bit>
#include <utility>

#include "base/failure.h"
#include "loop/core.h"

namespace tambour::detail::events {

Signals::Signals(loop::Core& core) noexcept
    : core_(core), watch_(core, [this] { take_pending(); }) {}

Result<> Signals::open_slot() noexcept {
  if (slot_ != nullptr) return {};
  auto taken = SignalSlot::acquire();
  if (!taken) return std::unexpected(taken.error());
  if (auto started = watch_.start((*taken)->fd()); !started) {
    (*taken)->release();
    return started;
  }
  slot_ = *taken;
  return {};
}

Result<> Signals::add(Signal& signal) noexcept {
  const int number = signal.number_;
  if (number < 1 || number > SignalSlot::number_max) return base::failure(EINVAL);
  if (auto opened = open_slot(); !opened) return opened;
  detail::Hlist<Signal>& watchers = watchers_[static_cast<std::size_t>(number)];
  if (watchers.empty()) {
    if (auto watched = slot_->watch(number); !watched) return watched;
  }
  watchers.push_front(signal);
  core_.add_reference();
  return {};
}

void Signals::remove(Signal& signal) noexcept {
  signal.unlink();
  signal.unlist();
  if (watchers_[static_cast<std::size_t>(signal.number_)].empty()) slot_->unwatch(signal.number_);
  core_.drop_reference();
}

template <class F>
void Signals::for_each_of(std::uint64_t set, F&& f) noexcept {
  for (; set != 0; set &= set - 1) {
    const auto number = static_cast<std::size_t>(std::countr_zero(set)) + 1;
    for (Signal* signal = watchers_[number].front(); signal != nullptr; signal = signal->next())
      f(*signal);
  }
}

void Signals::take_pending() noexcept {
  for_each_of(slot_->take_pending(), [this](Signal& signal) { core_.queue_now(signal); });
}

void Signals::feed(int number) noexcept {
  if (number < 1 || number > SignalSlot::number_max) return;
  for_each_of(SignalSlot::bit_of(number), [this](Signal& signal) { core_.queue(signal); });
}

std::int64_t Signals::before_wait() noexcept {
  if (slot_ == nullptr) return base::end_of_time_ns;
  slot_->claim();
  if (slot_->any_pending() && core_.backend().has_virtual_time())
    for_each_of(slot_->take_pending(), [this](Signal& signal) { core_.queue(signal); });
  return base::end_of_time_ns;
}

void Signals::disown_if_lost(bool /*has_all*/) noexcept {
  if (slot_ != nullptr) slot_->disown_if_lost();
}

Result<> Signals::reopen() noexcept {
  if (slot_ == nullptr) return {};
  // Before reopen() closes the descriptor, whose number may be reused afterwards.
  watch_.stop();
  if (auto reopened = slot_->reopen(); !reopened) return reopened;
  return watch_.start(slot_->fd());
}

void Signals::close() noexcept {
  for (detail::Hlist<Signal>& watchers : watchers_) {
    while (Signal* const signal = watchers.front()) remove(*signal);
  }
  if (slot_ == nullptr) return;
  watch_.stop();
  std::exchange(slot_, nullptr)->release();
}

}  // namespace tambour::detail::events
