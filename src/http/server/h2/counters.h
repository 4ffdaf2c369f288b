// What the connections of a server count.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tambour/detail/namespaces.h>
#include <tambour/http/http2.h>

#include "http/h2/memory.h"

namespace tambour::http {

/// The counters of Http2Stats, in its order.
enum class H2Event : std::uint8_t {
  connection,
  refused_stream,
  overloaded_stream,
  postponed_handler,
  oversized_head,
  oversized_block,
  delayed_read,
  reset_flood,
  idle_frame_flood,
  unread_answers,
  stalled_stream,
  stalled_connection,
  settings_timeout,
  ping_timeout,
  protocol_error,
};

namespace detail {

/// Shared by the connections of a server. Thread: callable from any thread.
class H2Counters {
 public:
  void count(H2Event event) noexcept {
    counters_[static_cast<std::size_t>(event)].fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] H2BufferedBytes& buffered() noexcept { return buffered_; }
  [[nodiscard]] Http2Stats stats() const noexcept;

 private:
  [[nodiscard]] std::uint64_t operator[](H2Event event) const noexcept {
    return counters_[static_cast<std::size_t>(event)].load(std::memory_order_relaxed);
  }

  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(H2Event::protocol_error) + 1>
      counters_{};
  H2BufferedBytes buffered_;
};

}  // namespace detail

}  // namespace tambour::http
