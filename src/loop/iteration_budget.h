// What one connection may do in an iteration of its loop, so that the other connections of the loop
// are not starved.
#pragma once

#include <cstdint>

#include "loop/core.h"

namespace tambour::detail::loop {

/// The budget of one connection whose peer may send many messages ahead, each of which costs the
/// time of a handler. The first message of an iteration is always handled.
class IterationBudget {
 public:
  static constexpr unsigned default_messages_max = 64;

  explicit constexpr IterationBudget(unsigned messages_max = default_messages_max) noexcept
      : messages_max_(messages_max) {}

  /// Counts a message. Returns true if it must wait for the next iteration: this connection has
  /// handled `messages_max` messages in this iteration, or the iteration has lasted too long.
  [[nodiscard]] bool is_exhausted(Core& core) noexcept {
    constexpr unsigned often = 4;  // Amortizes the clock reads.
    if (iteration_ != core.iteration_number()) {
      iteration_ = core.iteration_number();
      messages_ = 0;
    }
    const unsigned before = messages_++;
    return before >= messages_max_ || (before % often == 1 && core.iteration_is_long());
  }

 private:
  std::uint64_t iteration_ = 0;
  unsigned messages_ = 0;  ///< In this iteration.
  unsigned messages_max_;
};

}  // namespace tambour::detail::loop
