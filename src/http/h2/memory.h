// The memory that connections of HTTP/2 buffer, and that they share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tambour/detail/namespaces.h>

namespace tambour::http {

/// The bytes that all connections of a server buffer. Thread: callable from any thread.
class H2BufferedBytes {
 public:
  void add(std::int64_t bytes) noexcept { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t get() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> bytes_{0};
};

/// The bytes that one connection buffers. They are added to the total of all connections in steps,
/// so that small requests cost no atomic operation. Thread: that of the connection's loop.
class H2Memory {
 public:
  static constexpr std::int64_t step = std::int64_t{64} * 1024;

  explicit H2Memory(H2BufferedBytes& total) noexcept : total_(total) {}
  H2Memory(const H2Memory&) = delete;
  H2Memory& operator=(const H2Memory&) = delete;
  ~H2Memory() { total_.add(-published_); }

  void add(std::size_t bytes) noexcept { change(static_cast<std::int64_t>(bytes)); }
  void remove(std::size_t bytes) noexcept { change(-static_cast<std::int64_t>(bytes)); }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  /// True if the connection holds a part of more than `bytes_max` of all connections.
  [[nodiscard]] bool is_overloaded(std::size_t bytes_max) const noexcept {
    return bytes_ >= step && static_cast<std::uint64_t>(total_.get()) > bytes_max;
  }

 private:
  void change(std::int64_t bytes) noexcept {
    bytes_ += bytes;
    const std::int64_t unpublished = bytes_ - published_;
    if (unpublished < step && unpublished > -step) return;
    published_ = bytes_;
    total_.add(unpublished);
  }

  H2BufferedBytes& total_;
  std::int64_t bytes_ = 0;
  std::int64_t published_ = 0;
};

}  // namespace tambour::http
