// The clock that times callbacks.
//
// Reading CLOCK_MONOTONIC takes about 24 ns, of which the counter of the processor (RDTSC) takes
// 10: two per cent of a callback that makes one system call. So the counter is read for each
// callback, and compared with the clock every millisecond.
#pragma once

#include <cstdint>

#include "backend/backend.h"

namespace tambour::detail::loop {

/// The clock of a loop, read from the counter where use_counter() has found one. Thread: that of
/// the loop.
class CallClock {
 public:
  /// Uses the counter if it runs at a constant rate, also while the processor sleeps, and if the
  /// kernel uses it. Until its rate is known, 10 ms later, now_ns() reads the clock. Not for loops
  /// with virtual time.
  void use_counter() noexcept;

  /// The clock of the loop has shown `now_ns`. Called in each iteration.
  void adjust(const backend::Backend& backend, std::int64_t now_ns) noexcept {
    if (has_counter_ && now_ns - adjusted_ns_ >= adjust_after_ns) [[unlikely]]
      compare_readings(backend);
  }

  /// The time by the clock of the loop. An adjustment may set it back by some nanoseconds.
  [[nodiscard]] std::int64_t now_ns(const backend::Backend& backend) const noexcept {
    if (ns_per_count_ == 0) return backend.monotonic_ns();
    // Negative if a virtual machine has moved to another host.
    const auto counts = static_cast<std::int64_t>(read_counter() - adjusted_count_);
    return adjusted_ns_ + static_cast<std::int64_t>(static_cast<double>(counts) * ns_per_count_);
  }

  /// For tests: `count` and `now_ns` were read at the same time.
  void compare(std::int64_t now_ns, std::uint64_t count) noexcept;
  [[nodiscard]] double ns_per_count() const noexcept { return ns_per_count_; }

 private:
  static constexpr std::int64_t adjust_after_ns = 1'000'000;

  static std::uint64_t read_counter() noexcept {
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
  }
  static bool has_constant_counter() noexcept;

  /// Reads the clock and the counter together.
  void compare_readings(const backend::Backend& backend) noexcept;

  bool has_counter_ = false;
  double ns_per_count_ = 0;  ///< Zero while it is unknown.
  std::int64_t adjusted_ns_ = 0;
  std::uint64_t adjusted_count_ = 0;
  /// The rate is measured from here on.
  std::int64_t first_ns_ = 0;
  std::uint64_t first_count_ = 0;
  std::int64_t measured_after_ns_ = 0;  ///< Since `first_ns_`; zero before the first comparison.
};

}  // namespace tambour::detail::loop
