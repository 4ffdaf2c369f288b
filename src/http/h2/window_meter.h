// How much of a window a peer uses in one round trip, for windows that grow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <tambour/detail/namespaces.h>

#include "http_message/h2/frame.h"

namespace tambour::http {

/// Counts the bytes that arrive between a PING and its answer. Their number is that which a window
/// must allow so that it does not limit the rate.
class WindowMeter {
 public:
  /// The data of the PING, which its answer repeats.
  static constexpr std::string_view ping = "roundtrp";

  [[nodiscard]] bool is_measuring() const noexcept { return is_measuring_; }
  /// The PING was queued, after so many bytes of the round trip.
  void begin(std::uint32_t bytes) noexcept {
    is_measuring_ = true;
    bytes_ = bytes;
  }
  /// No effect between measurements.
  void count(std::uint32_t bytes) noexcept {
    if (is_measuring_) bytes_ += bytes;
  }
  /// The answer has arrived.
  void end() noexcept { is_measuring_ = false; }

  /// After end(): the size that a window of `window` bytes should have, at most `window_max` unless
  /// it is larger already. It is twice the bytes of the round trip if they have used up two thirds
  /// of the window.
  [[nodiscard]] std::uint32_t grown(std::uint32_t window, std::uint32_t window_max) const noexcept {
    if (bytes_ * 3 < std::uint64_t{window} * 2) return window;
    const std::uint64_t wanted =
        std::min<std::uint64_t>({bytes_ * 2, window_max, detail::h2::window_size_max});
    return std::max(window, static_cast<std::uint32_t>(wanted));
  }

 private:
  std::uint64_t bytes_ = 0;
  bool is_measuring_ = false;
};

}  // namespace tambour::http
