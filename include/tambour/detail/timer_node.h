// The base of Timer. Not part of the public interface: it is visible only because a timer embeds it
// and must have a known size.
#pragma once

#include <cstdint>
#include <utility>

#include <tambour/detail/ready_node.h>
#include <tambour/detail/wheel_node.h>

#pragma GCC visibility push(default)

namespace tambour::detail {

/// The flags of a timer. A base, so that they fit into the padding of ReadyNode.
class TimerFlags {
 protected:
  bool started_ = false;
  bool repeating_ = false;
};

/// What the loop runs when a timer is due, and keeps in its timing wheel until then.
class TimerNode : public ReadyNode, public TimerFlags, public WheelNode {
 public:
  using ReadyNode::ReadyNode;
  TimerNode(TimerNode&& other) noexcept
      : ReadyNode(static_cast<ReadyNode&&>(other)),
        TimerFlags(std::exchange(static_cast<TimerFlags&>(other), {})),
        WheelNode(static_cast<WheelNode&&>(other)),
        period_ns_(other.period_ns_) {}
  TimerNode& operator=(TimerNode&&) = delete;

 protected:
  // A reset touches the flags, the links of the wheel, this member and the core of the loop, which
  // follows: less than a cache line.
  std::int64_t period_ns_ = 0;  ///< The interval if repeating, otherwise the last delay.
};

}  // namespace tambour::detail

#pragma GCC visibility pop
