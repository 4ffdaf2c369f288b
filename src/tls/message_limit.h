// The limit of handshake messages after the handshake.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tambour/detail/namespaces.h>

#include "base/clock.h"

namespace tambour::tls::detail {

/// Bounds the messages that cost more to process than to send: new keys, tickets, and attempts to
/// renegotiate. The count begins again after `window_ns`, and after `window_bytes` of data: peers
/// that change their keys by time or by volume stay below it.
class MessageLimit {
 public:
  static constexpr std::uint32_t messages_max = 64;
  static constexpr std::int64_t window_ns = 60 * base::ns_per_s;
  static constexpr std::uint32_t window_bytes = 1024 * 1024;

  /// A message was received.
  void count(std::int64_t now_ns) noexcept {
    if (now_ns - began_ns_ >= window_ns) {
      messages_ = 0;
      began_ns_ = now_ns;
    }
    ++messages_;
  }
  /// Data was received.
  void note_data(std::size_t bytes) noexcept {
    bytes_ += static_cast<std::uint32_t>(bytes);
    if (bytes_ < window_bytes) return;
    bytes_ = 0;
    messages_ = 0;
  }

  [[nodiscard]] bool any() const noexcept { return messages_ > 0; }
  [[nodiscard]] bool exceeded() const noexcept { return messages_ > messages_max; }

 private:
  std::int64_t began_ns_ = 0;
  std::uint32_t messages_ = 0;  ///< Since the count began.
  std::uint32_t bytes_ = 0;     ///< Since note_data() has last reset the count.
};

}  // namespace tambour::tls::detail
