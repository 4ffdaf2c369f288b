// The time that a client has for the body of a request: ServerOptions::body_timeout.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <tambour/clock.h>

#include "base/clock.h"

namespace tambour::http {

/// Only the time in which a task waits for the body counts. Received bytes extend it.
class BodyBudget {
 public:
  /// `rate_min` is in bytes per second; 0: received bytes extend nothing. No `most`: no limit.
  BodyBudget(Duration most, std::size_t rate_min) noexcept : most_(most), rate_min_(rate_min) {}

  void restart() noexcept { left_ = most_; }
  /// Zero: no limit.
  [[nodiscard]] Duration left() const noexcept { return left_; }

  void use(Duration spent, std::size_t received) noexcept {
    if (most_ <= Duration::zero()) return;
    Duration gained{};
    if (rate_min_ > 0)
      gained = std::chrono::nanoseconds(received * std::uint64_t{1'000'000'000} / rate_min_);
    // At least a nanosecond, because zero means no limit.
    left_ = std::clamp(base::saturating_add(left_ - spent, gained), Duration(1), most_);
  }

 private:
  Duration most_;
  std::size_t rate_min_;
  Duration left_{};
};

}  // namespace tambour::http
