// A protocol between a stream and its socket, such as TLS.
//
// Internal building block of streams and connections; not part of the public interface. It is
// visible only because a stream owns its filter.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <tambour/detail/owned_pointer.h>

namespace tambour::detail::io {
class Transport;
}  // namespace tambour::detail::io

#pragma GCC visibility push(default)

namespace tambour {

namespace tls {
class Session;
}  // namespace tls

namespace detail::io {

/// Encodes what is written and decodes what is read. Owned by the stream or connection, which calls
/// it through its Transport. Filters stack: `below` is the transport of the socket, or of the next
/// filter, which this one owns.
///
/// Outcomes are as those of Transport: a number of bytes, or a negated errno value. Errors of the
/// protocol have negated numbers above those of errno. EAGAIN means that the socket is not ready.
/// No call has to be repeated with the same bytes.
class TransportFilter {
 public:
  TransportFilter() = default;
  TransportFilter(const TransportFilter&) = delete;
  TransportFilter& operator=(const TransportFilter&) = delete;
  virtual ~TransportFilter() = default;

  /// Continues the handshake, before which nothing else is called. Returns 0 when it is complete,
  /// EAGAIN to wait until the socket is readable, and EINPROGRESS until it is writable.
  virtual std::int32_t handshake(const Transport& below) noexcept = 0;
  /// 0: end of stream. Receives from the socket once at most, and not at all unless `may_receive`.
  virtual std::int32_t read(const Transport& below, std::span<std::byte> into,
                            bool may_receive) noexcept = 0;
  /// Accepts a part of the bytes, or fails with EAGAIN while encoded bytes of an earlier write wait
  /// for the socket. Without bytes, like flush().
  virtual std::int32_t write(const Transport& below, std::span<const iovec> from) noexcept = 0;
  /// Sends the encoded bytes that wait. Returns 0 when none is left.
  virtual std::int32_t flush(const Transport& below) noexcept = 0;
  /// Sends the end of the stream. To be called again after EAGAIN.
  virtual std::int32_t shutdown_write(const Transport& below) noexcept = 0;
  /// Called before the socket is closed, for each filter of the stack.
  virtual void close(const Transport& below) noexcept = 0;

  /// True if read() failed with `outcome` because the connection has ended without the message by
  /// which the protocol ends.
  [[nodiscard]] virtual bool is_truncation(std::int32_t outcome) const noexcept = 0;
  /// The outcome of a handshake on a socket from which bytes were received before, and not read:
  /// they would be taken for bytes of the protocol.
  [[nodiscard]] virtual std::int32_t unread_input() const noexcept = 0;

  [[nodiscard]] virtual const tls::Session& session() const noexcept = 0;

  /// False if read() has no bytes, end or error to return before the socket is readable.
  [[nodiscard]] bool may_read_now() const noexcept {
    return may_read_now_ || (below_ != nullptr && below_->may_read_now());
  }
  /// The number of encoded bytes that wait for the socket, in this filter and those below.
  [[nodiscard]] std::size_t unsent() const noexcept {
    return below_ == nullptr ? unsent_ : unsent_ + below_->unsent();
  }
  /// Returns the number of encoded bytes that the socket has accepted since the last call.
  [[nodiscard]] std::int64_t take_progress() noexcept {
    const std::int64_t accepted = std::exchange(accepted_, 0);
    return below_ == nullptr ? accepted : below_->take_progress();
  }

  /// The filter between this one and the socket; null: none.
  [[nodiscard]] TransportFilter* below() const noexcept { return below_.get(); }
  void set_below(OwnedPointer<TransportFilter> filter) noexcept { below_ = std::move(filter); }
  [[nodiscard]] OwnedPointer<TransportFilter> take_below() noexcept { return std::move(below_); }
  /// The number of filters below.
  [[nodiscard]] unsigned depth() const noexcept {
    return below_ == nullptr ? 0 : below_->depth() + 1;
  }

 protected:
  bool may_read_now_ = true;   // NOLINT(readability-identifier-naming): for derived classes.
  std::size_t unsent_ = 0;     // NOLINT(readability-identifier-naming)
  std::int64_t accepted_ = 0;  // NOLINT(readability-identifier-naming)

 private:
  OwnedPointer<TransportFilter> below_;
};

}  // namespace detail::io
}  // namespace tambour

#pragma GCC visibility pop
