// ByteStream, and the implementation over a socket.
#include <tambour/net/byte_stream.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/failure.h"

namespace tambour {
namespace {

template <class T>
Task<Result<T>> fail(int error) {
  co_return detail::base::failure(error);
}

/// Nothing uses the object after a wait of the stream: it may have been destroyed.
class SocketBytes final : public ByteStreamImplementation {
 public:
  SocketBytes(SocketStream stream, Buffer received) noexcept
      : stream_(std::move(stream)), received_(std::move(received)) {}

  EventLoop& loop() const noexcept override { return stream_.loop(); }
  bool is_open() const noexcept override { return stream_.is_open(); }

  Task<Result<std::size_t>> read(Buffer& into, std::size_t bytes_max) override {
    if (!received_.empty()) co_return take_received(into, bytes_max);
    co_return co_await stream_.read(into, bytes_max);
  }
  Task<Result<>> write(Buffer& from) override { co_return co_await stream_.write(from); }
  Task<Result<>> write(std::span<const std::byte> from) override {
    co_return co_await stream_.write(from);
  }
  Result<> try_write(Buffer& from) noexcept override { return stream_.try_write(from); }
  Task<Result<>> shutdown_write() override { co_return co_await stream_.shutdown_write(); }
  void close() noexcept override {
    received_.clear();
    stream_.close();
  }

  const tls::Session* tls() const noexcept override { return stream_.tls(); }
  Result<Endpoint> local_endpoint() const override { return stream_.local_endpoint(); }
  Result<Endpoint> peer_endpoint() const override { return stream_.peer_endpoint(); }
  Result<SocketStream> release_socket(Buffer& received) override {
    received.append(std::move(received_));
    return std::move(stream_);
  }

 private:
  std::size_t take_received(Buffer& into, std::size_t bytes_max) {
    const std::size_t size = std::min(received_.size(), std::max(bytes_max, std::size_t{1}));
    into.append(received_.take(size));
    return size;
  }

  SocketStream stream_;
  Buffer received_;
};

}  // namespace

Task<Result<>> ByteStreamImplementation::write(std::span<const std::byte> from) {
  Buffer copy;
  copy.append(from);
  co_return co_await write(copy);
}

Result<> ByteStreamImplementation::try_write(Buffer& /*from*/) noexcept {
  return detail::base::failure(EAGAIN);
}

Result<Endpoint> ByteStreamImplementation::local_endpoint() const {
  return detail::base::failure(ENOTSOCK);
}
Result<Endpoint> ByteStreamImplementation::peer_endpoint() const {
  return detail::base::failure(ENOTSOCK);
}
Result<SocketStream> ByteStreamImplementation::release_socket(Buffer& /*received*/) {
  return detail::base::failure(ENOTSOCK);
}

ByteStream::ByteStream(SocketStream stream, Buffer received)
    : implementation_(std::make_unique<SocketBytes>(std::move(stream), std::move(received))) {}

Task<Result<std::size_t>> ByteStream::read(Buffer& into, std::size_t bytes_max) {
  if (!is_open()) return fail<std::size_t>(EBADF);
  return implementation_->read(into, bytes_max);
}

Task<Result<>> ByteStream::write(Buffer& from) {
  if (!is_open()) return fail<void>(EBADF);
  return implementation_->write(from);
}

Task<Result<>> ByteStream::write(std::span<const std::byte> from) {
  if (!is_open()) return fail<void>(EBADF);
  return implementation_->write(from);
}

Result<> ByteStream::try_write(Buffer& from) noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  return implementation_->try_write(from);
}

Task<Result<>> ByteStream::shutdown_write() {
  if (!is_open()) return fail<void>(EBADF);
  return implementation_->shutdown_write();
}

Result<Endpoint> ByteStream::local_endpoint() const {
  if (!is_open()) return detail::base::failure(EBADF);
  return implementation_->local_endpoint();
}

Result<Endpoint> ByteStream::peer_endpoint() const {
  if (!is_open()) return detail::base::failure(EBADF);
  return implementation_->peer_endpoint();
}

Result<SocketStream> ByteStream::release_socket(Buffer& received) {
  if (!is_open()) return detail::base::failure(EBADF);
  return implementation_->release_socket(received);
}

}  // namespace tambour
