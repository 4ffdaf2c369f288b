// What the connections of a server count, and the memory that they share.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tambour/detail/namespaces.h>
#include <tambour/http/http2.h>

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

/// Shared by the connections of a server. Thread: callable from any thread.
class H2Counters {
 public:
  void count(H2Event event) noexcept {
    counters_[static_cast<std::size_t>(event)].fetch_add(1, std::memory_order_relaxed);
  }
  void add_buffered(std::int64_t bytes) noexcept {
    buffered_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t buffered_bytes() const noexcept {
    return buffered_bytes_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] Http2Stats stats() const noexcept;

 private:
  [[nodiscard]] std::uint64_t operator[](H2Event event) const noexcept {
    return counters_[static_cast<std::size_t>(event)].load(std::memory_order_relaxed);
  }

  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(H2Event::protocol_error) + 1>
      counters_{};
  std::atomic<std::int64_t> buffered_bytes_{0};
};

/// The bytes that one connection buffers. They are added to the total of the server in steps, so
/// that small requests cost no atomic operation. Thread: that of the connection's loop.
class H2Memory {
 public:
  static constexpr std::int64_t step = std::int64_t{64} * 1024;

  explicit H2Memory(H2Counters& counters) noexcept : counters_(counters) {}
  H2Memory(const H2Memory&) = delete;
  H2Memory& operator=(const H2Memory&) = delete;
  ~H2Memory() { counters_.add_buffered(-published_); }

  void add(std::size_t bytes) noexcept { change(static_cast<std::int64_t>(bytes)); }
  void remove(std::size_t bytes) noexcept { change(-static_cast<std::int64_t>(bytes)); }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  /// True if the connection holds a part of more than `server_bytes_max`.
  [[nodiscard]] bool is_overloaded(std::size_t server_bytes_max) const noexcept {
    return bytes_ >= step &&
           static_cast<std::uint64_t>(counters_.buffered_bytes()) > server_bytes_max;
  }

 private:
  void change(std::int64_t bytes) noexcept {
    bytes_ += bytes;
    const std::int64_t unpublished = bytes_ - published_;
    if (unpublished < step && unpublished > -step) return;
    published_ = bytes_;
    counters_.add_buffered(unpublished);
  }

  H2Counters& counters_;
  std::int64_t bytes_ = 0;
  std::int64_t published_ = 0;
};

}  // namespace tambour::http
