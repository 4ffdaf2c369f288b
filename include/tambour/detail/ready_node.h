// The base of the handles and operations that a loop runs. Not part of the public interface: it is
// visible only because a handle embeds it and must have a known size.
#pragma once

#include <cstdint>
#include <source_location>

#include <tambour/base/callback.h>
#include <tambour/base/priority.h>
#include <tambour/detail/intrusive_list.h>

namespace tambour::detail::base {
class ReadyQueue;
}  // namespace tambour::detail::base

#pragma GCC visibility push(default)

namespace tambour::detail {

/// A heap object that is owned by a loop, or by an object of a loop, until it has ended.
class LoopOwned : public Closure, public ListHook<LoopOwned> {};

/// An item whose callback is to be run in this iteration of the loop.
class ReadyNode : public ListHook<ReadyNode> {
 public:
  using Run = void (*)(ReadyNode&);
  /// `created_at` is reported by the stall detector; a public handle passes the location of its
  /// caller.
  explicit ReadyNode(Run run,
                     std::source_location created_at = std::source_location::current()) noexcept
      : run_(run), created_at_(created_at) {}

  [[nodiscard]] std::source_location created_at() const noexcept { return created_at_; }
  void set_created_at(const std::source_location& created_at) noexcept { created_at_ = created_at; }

  [[nodiscard]] int priority() const noexcept { return priority_max - urgency_; }

  /// Values out of range are clamped. An item that is already queued keeps its position.
  void set_priority(int priority) noexcept {
    if (priority < priority_min) priority = priority_min;
    if (priority > priority_max) priority = priority_max;
    urgency_ = static_cast<std::uint8_t>(priority_max - priority);
  }

  /// Makes the item run immediately, during the wait, instead of being queued. For items that only
  /// record in a queue of their own that they are due: such an item must not invoke callbacks, nor
  /// submit, cancel or destroy operations.
  void run_at_once() noexcept { urgency_ = at_once; }

 private:
  friend class base::ReadyQueue;
  using Hook = ListHook<ReadyNode>;
  static constexpr std::uint8_t at_once = 0xff;  ///< A value of urgency_.
  Run run_;
  std::source_location created_at_;
  std::uint8_t urgency_ = priority_max;  ///< 0 is the highest priority.
};

using ReadyNodes = IntrusiveList<ReadyNode>;

}  // namespace tambour::detail

#pragma GCC visibility pop
