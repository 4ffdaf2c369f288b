// H2Tunnel: reads and writes DATA of its stream.
#include "http/client/h2_tunnel.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "http/h2/client_connection.h"

namespace tambour::http::detail::client {
namespace {

/// So many bytes of the caller are taken at a time.
constexpr std::size_t tunnel_bytes = std::size_t{64} * 1024;

}  // namespace

H2Tunnel::H2Tunnel(Lease lease, std::unique_ptr<H2ClientStream> stream)
    : loop_(lease.multiplexed()->loop()),
      lease_(std::move(lease)),
      stream_(std::move(stream)),
      alive_(std::make_shared<const bool>(true)) {}

Task<Result<std::size_t>> H2Tunnel::read(Buffer& into, std::size_t bytes_max) {
  const std::weak_ptr<const bool> alive = alive_;
  if (alive_ == nullptr) co_return std::unexpected(system_error(EBADF));
  while (stream_->buffered() == 0 && !stream_->is_response_complete() && !stream_->error()) {
    stream_->arrived().reset();
    const Result<> waited = co_await stream_->arrived().wait();
    if (!waited) co_return std::unexpected(waited.error());
    if (alive.expired()) co_return std::unexpected(system_error(ECANCELED));
  }
  if (stream_->buffered() == 0 && stream_->error()) co_return std::unexpected(stream_->error());
  Buffer piece = stream_->take(std::max<std::size_t>(bytes_max, 1));
  const std::size_t size = piece.size();
  into.append(std::move(piece));
  co_return size;
}

Task<Result<>> H2Tunnel::write(Buffer& from) {
  const std::weak_ptr<const bool> alive = alive_;
  if (alive_ == nullptr) co_return std::unexpected(system_error(EBADF));
  if (stream_->outgoing().ends || stream_->is_sent())
    co_return std::unexpected(system_error(EPIPE));
  if (stream_->send_error()) co_return std::unexpected(stream_->send_error());
  do {
    stream_->write(from.take(std::min(from.size(), tunnel_bytes)));
    const Result<> flushed = co_await flush();
    if (!flushed) co_return flushed;
    if (alive.expired()) co_return std::unexpected(system_error(ECANCELED));
  } while (!from.empty());
  co_return {};
}

Result<> H2Tunnel::try_write(Buffer& from) noexcept {
  if (stream_ == nullptr) return std::unexpected(system_error(EBADF));
  return stream_->try_write(from);
}

Task<Result<>> H2Tunnel::shutdown_write() {
  if (alive_ == nullptr) co_return std::unexpected(system_error(EBADF));
  const Result<> ended = stream_->end({});
  if (!ended) co_return ended;
  co_return co_await flush();
}

Task<Result<>> H2Tunnel::flush() {
  const std::weak_ptr<const bool> alive = alive_;
  while (!stream_->is_flushed()) {
    const Result<> waited = co_await stream_->sent().wait();
    if (!waited) co_return waited;
    if (alive.expired()) co_return std::unexpected(system_error(ECANCELED));
  }
  if (stream_->send_error()) co_return std::unexpected(stream_->send_error());
  co_return {};
}

void H2Tunnel::close() noexcept {
  alive_.reset();
  stream_.reset();
  lease_.close();
}

const tls::Session* H2Tunnel::tls() const noexcept {
  return stream_ != nullptr ? lease_.multiplexed()->socket().tls() : nullptr;
}
Result<Endpoint> H2Tunnel::local_endpoint() const {
  if (stream_ == nullptr) return std::unexpected(system_error(EBADF));
  return lease_.multiplexed()->socket().local_endpoint();
}
Result<Endpoint> H2Tunnel::peer_endpoint() const {
  if (stream_ == nullptr) return std::unexpected(system_error(EBADF));
  return lease_.multiplexed()->socket().peer_endpoint();
}

}  // namespace tambour::http::detail::client
