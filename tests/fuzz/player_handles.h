// Calls that handles of every type have, shared by the sources of the Player.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "fuzz/player.h"

namespace tambour::fuzz {

inline std::int64_t after(std::int64_t from_ns, Duration delay) {
  std::int64_t sum;
  const std::int64_t ns = delay.count() < 0 ? 0 : delay.count();
  return __builtin_add_overflow(from_ns, ns, &sum) ? never.time_since_epoch().count() : sum;
}

inline std::string text(Duration time) { return std::to_string(time.count()) + " ns"; }

/// A function object that is too large for the inline storage of a Callback, and not trivial.
template <class Inner>
struct Large {
  Inner inner;
  std::shared_ptr<int> shared = std::make_shared<int>(1);
  template <class... Args>
  void operator()(Args... args) const {
    inner(args...);
    if (*shared != 1) std::abort();
  }
};

template <class Function>
Function Player::function(Id id, std::uint32_t tag) {
  const Called called{.player = this, .id = id, .tag = tag};
  if (tag % 2 == 0) return Function(called);
  return Function(Large<Called>{.inner = called});
}

template <class Handle>
void Player::destroy(Slot<Handle>& slot) {
  if (slot.handle == nullptr) return;
  note("destroy " + std::to_string(slot.id));
  model_.remove(slot.id);
  slot.handle.reset();
}

/// Moves the handle to a new address, or onto another handle, which is destroyed.
template <class Handle, std::size_t size>
void Player::move(std::array<Slot<Handle>, size>& slots, Slot<Handle>& slot) {
  Slot<Handle>& target = slots[input_.below(size)];
  note("move " + std::to_string(slot.id) + " over " + std::to_string(target.id));
  if (&target == &slot || target.handle == nullptr) {
    slot.handle = std::make_unique<Handle>(std::move(*slot.handle));
    return;
  }
  model_.remove(target.id);
  *target.handle = std::move(*slot.handle);
  target.id = slot.id;
  slot.handle.reset();
}

template <class Handle>
void Player::set_priority(Slot<Handle>& slot) {
  const int priority = int(input_.below(3)) - 1;
  note("set_priority " + std::to_string(slot.id) + " to " + std::to_string(priority));
  slot.handle->set_priority(priority);
  model_.at(slot.id).priority = priority;
}

template <class Handle, class Function>
void Player::set_function(Slot<Handle>& slot) {
  note("set_function " + std::to_string(slot.id));
  model_.at(slot.id).tag = ++tags_;
  slot.handle->set_function(function<Function>(slot.id, tags_));
}

}  // namespace tambour::fuzz
