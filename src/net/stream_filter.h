// Access to the filter of a stream for layer tls, to its engine, and to its mode for servers.
#pragma once

#include <utility>

#include <tambour/detail/owned_pointer.h>
#include <tambour/detail/transport_filter.h>
#include <tambour/net/stream.h>

namespace tambour::detail::net {

struct StreamFilter {
  [[nodiscard]] static io::TransportKind kind(const Stream& stream) noexcept {
    return stream.kind_;
  }
  /// The stream must have one.
  [[nodiscard]] static io::TransportFilter& of(Stream& stream) noexcept { return *stream.filter_; }
  /// The engine of the stream, for one use.
  [[nodiscard]] static io::Transport transport(const Stream& stream) noexcept;
  /// From now on the stream, a socket, transfers its bytes through `filter`, and through the one
  /// that detach() has returned, which `filter` owns.
  static void attach(Stream& stream, OwnedPointer<io::TransportFilter> filter) noexcept {
    stream.filter_ = std::move(filter);
    stream.kind_ = io::TransportKind::tls;
  }
  /// The number of filters.
  [[nodiscard]] static unsigned depth(const Stream& stream) noexcept {
    return stream.filter_ != nullptr ? stream.filter_->depth() + 1 : 0;
  }
  /// Removes the filter; null: there is none.
  [[nodiscard]] static OwnedPointer<io::TransportFilter> detach(Stream& stream) noexcept {
    if (stream.filter_ != nullptr) stream.kind_ = io::TransportKind::socket;
    return std::move(stream.filter_);
  }
};

struct StreamMode {
  /// The socket of the stream was opened in non-blocking mode.
  static void note_nonblocking(Stream& stream) noexcept { stream.is_nonblocking_ = true; }
};

}  // namespace tambour::detail::net
