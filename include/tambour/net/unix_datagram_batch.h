// Batches of Unix datagrams, which one system call receives or sends: recvmmsg(2), sendmmsg(2).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/net/endpoint.h>

namespace tambour::detail::net {
class DatagramHeaders;
}  // namespace tambour::detail::net

#pragma GCC visibility push(default)

namespace tambour {

/// A datagram in a batch, whose memory it refers to: invalidated when the batch changes.
struct UnixDatagram {
  std::span<const std::byte> bytes{};
  /// The sender of a received datagram: its address() is empty if it has no name. The destination
  /// of one to be sent; nullopt: the peer of a connected socket.
  std::optional<Endpoint> address{};
  bool is_truncated = false;  ///< Received: it was longer than `bytes_each`.

  /// The bytes as a text.
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

/// A fixed block of memory for several datagrams of a UnixDatagram socket.
///
///   UnixDatagramBatch batch(64, 2048);
///   while (co_await socket.receive(batch))
///     for (const UnixDatagram& datagram : batch) use(datagram);
class UnixDatagramBatch {
 public:
  static constexpr std::size_t datagrams_max = 1024;  ///< UIO_MAXIOV

  /// `datagrams` is clamped to 1 to datagrams_max, and `bytes_each` to at least 1. Throws
  /// std::bad_alloc.
  explicit UnixDatagramBatch(std::size_t datagrams = 64, std::size_t bytes_each = 2048);
  UnixDatagramBatch(UnixDatagramBatch&&) noexcept;
  UnixDatagramBatch& operator=(UnixDatagramBatch&&) noexcept;
  ~UnixDatagramBatch();

  [[nodiscard]] std::size_t size() const noexcept { return datagrams_.size() - first_; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  /// The size of the longest datagram that is received whole.
  [[nodiscard]] std::size_t bytes_each() const noexcept { return bytes_each_; }
  [[nodiscard]] const UnixDatagram& operator[](std::size_t index) const noexcept {
    return datagrams_[first_ + index];
  }
  [[nodiscard]] auto begin() const noexcept {
    return datagrams_.begin() + static_cast<std::ptrdiff_t>(first_);
  }
  [[nodiscard]] auto end() const noexcept { return datagrams_.end(); }

  /// Adds a copy of a datagram to send. Fails with ENOBUFS if the batch is full, and with EMSGSIZE
  /// if it is longer than `bytes_each`.
  [[nodiscard]] Result<> add(std::span<const std::byte> bytes,
                             const std::optional<Endpoint>& to = {}) noexcept;
  [[nodiscard]] Result<> add(std::string_view text,
                             const std::optional<Endpoint>& to = {}) noexcept {
    return add(std::as_bytes(std::span(text)), to);
  }
  /// Removes the first datagram, for example after sending it has failed.
  void drop_front() noexcept;
  void clear() noexcept;

 private:
  friend class UnixDatagramSocket;

  std::size_t bytes_each_;
  detail::OwnedPointer<std::byte[]> memory_;
  std::vector<UnixDatagram> datagrams_;  ///< Has its full capacity.
  std::size_t first_ = 0;                ///< Those before it have been sent or dropped.
  detail::OwnedPointer<detail::net::DatagramHeaders> headers_;
};

}  // namespace tambour

#pragma GCC visibility pop
