// H2Tunnel: reads and writes DATA of its stream.
#include "http/server/h2/tunnel.h"

#include <cerrno>
#include <utility>

#include "http/server/h2/stream.h"

namespace tambour::http {
namespace {

template <class T>
Task<Result<T>> fail() {
  co_return std::unexpected(system_error(ECONNRESET));
}

}  // namespace

H2Tunnel::H2Tunnel(H2Stream& stream) noexcept : stream_(&stream), loop_(stream.loop()) {}

Task<Result<std::size_t>> H2Tunnel::read(Buffer& into, std::size_t bytes_max) {
  return stream_ != nullptr ? stream_->read_tunnel(into, bytes_max) : fail<std::size_t>();
}

Task<Result<>> H2Tunnel::write(Buffer& from) {
  return stream_ != nullptr ? stream_->write_tunnel(from) : fail<void>();
}

Result<> H2Tunnel::try_write(Buffer& from) noexcept {
  if (stream_ == nullptr) return std::unexpected(system_error(ECONNRESET));
  return stream_->try_write_tunnel(from);
}

Task<Result<>> H2Tunnel::shutdown_write() {
  if (stream_ == nullptr) return fail<void>();
  stream_->end_tunnel_output();
  return stream_->flush();
}

void H2Tunnel::close() noexcept {
  if (H2Stream* const stream = std::exchange(stream_, nullptr)) stream->close_tunnel();
}

const tls::Session* H2Tunnel::tls() const noexcept {
  return stream_ != nullptr ? stream_->stream().tls() : nullptr;
}
Result<Endpoint> H2Tunnel::local_endpoint() const {
  if (stream_ == nullptr) return std::unexpected(system_error(EBADF));
  return stream_->stream().local_endpoint();
}
Result<Endpoint> H2Tunnel::peer_endpoint() const {
  if (stream_ == nullptr) return std::unexpected(system_error(EBADF));
  return stream_->stream().peer_endpoint();
}

}  // namespace tambour::http
