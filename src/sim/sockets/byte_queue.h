// A first-in, first-out queue of bytes.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>

namespace tambour::sim::detail {

using Buffers = std::span<const iovec>;

inline std::size_t total_size(Buffers buffers) noexcept {
  std::size_t sum = 0;
  for (const iovec& buffer : buffers) sum += buffer.iov_len;
  return sum;
}

/// Copies `bytes` into the buffers. Returns the number of bytes that fitted.
inline std::size_t scatter(std::string_view bytes, Buffers into) noexcept {
  std::size_t done = 0;
  for (const iovec& buffer : into) {
    const std::size_t part = std::min(buffer.iov_len, bytes.size() - done);
    if (part != 0) std::memcpy(buffer.iov_base, bytes.data() + done, part);
    done += part;
  }
  return done;
}

/// Returns the first `size` bytes of the buffers, or all of them if there are fewer.
inline std::string gather(Buffers from, std::size_t size) {
  std::string bytes;
  bytes.reserve(std::min(size, total_size(from)));
  for (const iovec& buffer : from) {
    const std::size_t part = std::min(buffer.iov_len, size - bytes.size());
    if (part != 0) bytes.append(static_cast<const char*>(buffer.iov_base), part);
  }
  return bytes;
}

class ByteQueue {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size() - begin_; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::string_view view() const noexcept {
    return std::string_view(bytes_).substr(begin_);
  }

  void append(std::string_view bytes) {
    if (begin_ > bytes_.size() / 2) {
      bytes_.erase(0, begin_);
      begin_ = 0;
    }
    bytes_.append(bytes);
  }

  void drop(std::size_t count) noexcept {
    begin_ += count;
    if (begin_ == bytes_.size()) clear();
  }

  void clear() noexcept {
    bytes_.clear();
    begin_ = 0;
  }

 private:
  std::string bytes_;
  std::size_t begin_ = 0;
};

}  // namespace tambour::sim::detail
