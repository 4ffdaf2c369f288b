// A number of tokens that frames of a peer spend.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <tambour/base/clock.h>
#include <tambour/detail/namespaces.h>

namespace tambour::http {

/// A number of tokens, which is never larger than at the beginning.
class TokenBudget {
 public:
  explicit TokenBudget(std::uint32_t tokens_max) noexcept
      : tokens_(tokens_max), tokens_max_(tokens_max) {}

  void spend(std::int64_t tokens = 1) noexcept { tokens_ -= tokens; }
  void earn(std::int64_t tokens) noexcept { tokens_ = std::min(tokens_ + tokens, tokens_max_); }
  /// Earns one token for each second since the last call.
  void earn_by_time(TimePoint now) noexcept {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now - earned_at_);
    if (seconds <= Duration::zero()) return;
    earn(seconds.count());
    earned_at_ += seconds;
  }
  [[nodiscard]] bool is_used_up() const noexcept { return tokens_ < 0; }
  /// True if twice the tokens have been spent.
  [[nodiscard]] bool is_overdrawn() const noexcept { return tokens_ < -tokens_max_; }

 private:
  std::int64_t tokens_;
  std::int64_t tokens_max_;
  TimePoint earned_at_{};
};

}  // namespace tambour::http
