// The base of a timer that can be in the timing wheel of its loop. Not part of the public
// interface: it is visible only because Timer derives from it and must have a known size.
#pragma once

#include <cstdint>

#include <tambour/detail/intrusive_list.h>

#pragma GCC visibility push(default)

namespace tambour::detail {

/// An item of a base::TimingWheel. Moving a node puts the new one in the old one's position. A node
/// must leave the wheel before it is destroyed.
class WheelNode : private ListHook<WheelNode> {
 public:
  WheelNode() = default;

  [[nodiscard]] bool in_wheel() const noexcept { return ListHook<WheelNode>::linked(); }
  /// The deadline that was given last.
  [[nodiscard]] std::int64_t deadline_ns() const noexcept { return deadline_ns_; }

 protected:
  /// A node that will be accessed soon, for prefetching; null if unknown. It may be destroyed
  /// meanwhile. Kept in a link that is unused outside of the wheel.
  void hint(WheelNode& other) noexcept { previous_ = &other; }
  [[nodiscard]] const WheelNode* hinted() const noexcept {
    return in_wheel() ? nullptr : static_cast<const WheelNode*>(previous_);
  }

  std::int64_t deadline_ns_ = 0;

 private:
  friend class base::TimingWheel;
};

}  // namespace tambour::detail

#pragma GCC visibility pop
