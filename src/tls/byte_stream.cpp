// TLS over byte streams that are not sockets, or have received bytes already.
#include <tambour/net/byte_stream.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/task/mutex.h>
#include <tambour/task/scope.h>
#include <tambour/tls/handshake.h>

#include "base/check.h"
#include "base/failure.h"
#include "io/transport.h"
#include "loop/core.h"
#include "net/handshake.h"
#include "net/outcome.h"
#include "tls/context/context.h"
#include "tls/filter.h"
#include "tls/handshake_parts.h"

namespace tambour::tls {

namespace detail {
namespace {

/// Takes the place of the socket below a filter: what was received from the stream below, and what
/// is to be sent to it.
class Bridge final : public io::TransportFilter {
 public:
  /// Bytes were added to `received`, or `has_ended` was set.
  void note_received() noexcept { may_read_now_ = true; }

  std::int32_t handshake(const io::Transport& /*below*/) noexcept override { return 0; }
  std::int32_t read(const io::Transport& /*below*/, std::span<std::byte> into,
                    bool /*may_receive*/) noexcept override {
    std::size_t total = 0;
    while (total < into.size() && !received.empty()) {
      const auto front = received.front();
      const auto part = front.first(std::min(front.size(), into.size() - total));
      std::ranges::copy(part, into.begin() + std::ptrdiff_t(total));
      total += part.size();
      received.consume(part.size());
    }
    may_read_now_ = !received.empty() || has_ended;
    return total > 0 || has_ended ? static_cast<std::int32_t>(total) : -EAGAIN;
  }
  std::int32_t write(const io::Transport& /*below*/,
                     std::span<const iovec> from) noexcept override {
    std::size_t total = 0;
    try {
      for (const iovec& piece : from) {
        to_send.append(std::span(static_cast<const std::byte*>(piece.iov_base), piece.iov_len));
        total += piece.iov_len;
      }
    } catch (const std::exception&) {
      return total > 0 ? static_cast<std::int32_t>(total) : -ENOMEM;
    }
    return static_cast<std::int32_t>(total);
  }
  std::int32_t flush(const io::Transport& /*below*/) noexcept override { return 0; }
  std::int32_t shutdown_write(const io::Transport& /*below*/) noexcept override { return 0; }
  void close(const io::Transport& /*below*/) noexcept override {}
  bool is_truncation(std::int32_t /*outcome*/) const noexcept override { return false; }
  std::int32_t unread_input() const noexcept override { return -EBUSY; }
  const tls::Session& session() const noexcept override {
    base::fail_check("the stream below a TLS session was asked for its TLS session");
  }

  Buffer received;
  Buffer to_send;
  bool has_ended = false;  ///< The stream below.
};

/// Tasks that read and write share it with the stream, which may be destroyed while they wait.
struct Session {
  Session(ByteStream stream, std::unique_ptr<Filter> owned)
      : below(std::move(stream)), filter(std::move(owned)), sending(below.loop()) {
    auto created = std::make_unique<Bridge>();
    bridge = created.get();
    filter->set_below(std::move(created));
  }

  [[nodiscard]] io::Transport transport() const noexcept {
    backend::System& system = loop::core_of(below.loop()).backend().system();
    return {system, -1, io::TransportKind::tls, filter.get()};
  }
  /// That of the bridge.
  [[nodiscard]] io::Transport transport_below() const noexcept {
    backend::System& system = loop::core_of(below.loop()).backend().system();
    return {system, -1, io::TransportKind::tls, bridge};
  }
  void close() noexcept {
    is_open = false;
    below.close();
  }

  ByteStream below;
  std::unique_ptr<Filter> filter;
  Bridge* bridge = nullptr;
  TaskMutex sending;
  Buffer unsent;  ///< Of a write that was cancelled too: it continues with the next one.
  std::uint32_t read_size = 0;
  bool is_open = true;
};

using SharedSession = std::shared_ptr<Session>;

/// Sends what the filter has encoded.
Task<Result<>> send_encoded(SharedSession session) {
  while (!session->unsent.empty() || !session->bridge->to_send.empty()) {
    auto guard = co_await session->sending.lock();
    if (!guard) co_return std::unexpected(guard.error());
    if (!session->is_open) co_return base::failure(ECANCELED);
    session->unsent.append(std::move(session->bridge->to_send));
    auto sent = co_await session->below.write(session->unsent);
    if (!sent) co_return sent;
  }
  co_return Result<>();
}

/// Waits for bytes, or the end, of the stream below.
Task<Result<>> receive_encoded(SharedSession session) {
  const auto got = co_await session->below.read(session->bridge->received);
  if (!session->is_open) co_return base::failure(ECANCELED);
  if (!got) co_return std::unexpected(got.error());
  if (*got == 0) session->bridge->has_ended = true;
  session->bridge->note_received();
  co_return Result<>();
}

/// Sends what a read has encoded, such as an alert or the answer to a change of keys, while the
/// read goes on: a peer that does not read must not keep this end from reading. If it cannot be
/// sent, the next write reports it.
void send_answer(const SharedSession& session) {
  if (session->unsent.empty() && session->bridge->to_send.empty()) return;
  if (session->sending.is_locked()) return;  // That task sends it too.
  spawn(session->below.loop(), [](SharedSession answered) -> Task<> {
    try {
      static_cast<void>(co_await send_encoded(std::move(answered)));
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the next write sends it.
    }
  }(session));
}

Task<Result<std::size_t>> read(SharedSession session, Buffer& into, std::size_t bytes_max) {
  bytes_max = std::max(bytes_max, std::size_t{1});
  for (;;) {
    if (!session->is_open) co_return base::failure(ECANCELED);
    const std::int32_t outcome = session->transport().read(into, session->read_size, bytes_max);
    send_answer(session);
    if (outcome >= 0) co_return static_cast<std::size_t>(outcome);
    if (outcome != -EAGAIN) co_return std::unexpected(net::error_of(outcome));
    const auto received = co_await receive_encoded(session);
    if (!received) co_return std::unexpected(received.error());
  }
}

Task<Result<>> write(SharedSession session, Buffer& from) {
  while (!from.empty()) {
    if (!session->is_open) co_return base::failure(ECANCELED);
    const std::int32_t outcome = session->transport().write(from);
    if (outcome < 0 && outcome != -EAGAIN) co_return std::unexpected(net::error_of(outcome));
    auto sent = co_await send_encoded(session);
    if (!sent) co_return sent;
  }
  auto sent = co_await send_encoded(session);
  co_return sent;
}

Task<Result<>> shutdown_write(SharedSession session) {
  const std::int32_t outcome = session->filter->shutdown_write(session->transport_below());
  if (outcome < 0) co_return std::unexpected(net::error_of(outcome));
  auto sent = co_await send_encoded(session);
  if (!sent) co_return sent;
  if (!session->is_open) co_return base::failure(ECANCELED);
  auto shut_down = co_await session->below.shutdown_write();
  co_return shut_down;
}

Task<Result<>> shake_hands(SharedSession session, net::Handshake& handshake) {
  while (!handshake.has_ended()) {
    const Events awaited = handshake.advance(session->transport());
    // The last messages of this end, or an alert that says why it fails.
    auto done = co_await send_encoded(session);
    if (done && awaited == Events::read) done = co_await receive_encoded(session);
    if (done || handshake.outcome() < 0) continue;
    if (handshake.has_expired()) co_return base::failure(ETIMEDOUT);
    co_return done;
  }
  co_return handshake.result();
}

class TlsBytes final : public ByteStreamImplementation {
 public:
  explicit TlsBytes(SharedSession session) noexcept : session_(std::move(session)) {}
  ~TlsBytes() override { session_->close(); }

  EventLoop& loop() const noexcept override { return session_->below.loop(); }
  bool is_open() const noexcept override { return session_->is_open; }
  Task<Result<std::size_t>> read(Buffer& into, std::size_t bytes_max) override {
    return detail::read(session_, into, bytes_max);
  }
  using ByteStreamImplementation::write;
  Task<Result<>> write(Buffer& from) override { return detail::write(session_, from); }
  Task<Result<>> shutdown_write() override { return detail::shutdown_write(session_); }
  void close() noexcept override { session_->close(); }

  const tls::Session* tls() const noexcept override {
    return is_open() ? &session_->filter->session() : nullptr;
  }
  Result<Endpoint> local_endpoint() const override { return session_->below.local_endpoint(); }
  Result<Endpoint> peer_endpoint() const override { return session_->below.peer_endpoint(); }

 private:
  SharedSession session_;
};

/// Keeps `generation` and with it its options alive.
Task<Result<ByteStream>> secure(ByteStream stream, std::shared_ptr<const Generation> generation,
                                std::unique_ptr<Filter> filter) {
  if (filter == nullptr) co_return base::failure(ENOMEM);
  auto session = std::make_shared<Session>(std::move(stream), std::move(filter));
  Result<Endpoint> peer = base::failure(ENOTCONN);
  const auto close = [&peer, &session] {
    peer = session->below.peer_endpoint();
    session->close();
  };
  // Closing ends the waits of the handshake.
  net::Handshake handshake(session->below.loop(), generation->common().handshake_timeout,
                           [&close] { close(); });
  const Result<> done = co_await shake_hands(session, handshake);
  if (!done) {
    if (session->is_open) close();
    report(peer, *generation, done.error(), *session->filter);
    co_return std::unexpected(done.error());
  }
  co_return ByteStream(std::make_unique<TlsBytes>(std::move(session)));
}

/// Takes the socket out of the stream if the handshake can be that of a socket.
bool take_socket(ByteStream& stream, SocketStream& socket) {
  Buffer received;
  auto released = stream.release_socket(received);
  if (!released) return false;
  if (received.empty()) {
    socket = std::move(*released);
    return true;
  }
  stream = ByteStream(std::move(*released), std::move(received));
  return false;
}

}  // namespace
}  // namespace detail

Task<Result<ByteStream>> accept(ByteStream stream, ServerContext context) {
  detail::check_context(bool(context));
  if (!stream.is_open()) co_return detail::base::failure(EBADF);
  SocketStream socket;
  if (detail::take_socket(stream, socket)) {
    const auto done = co_await accept(socket, std::move(context));
    if (!done) co_return std::unexpected(done.error());
    co_return ByteStream(std::move(socket));
  }
  auto generation = detail::generation_for_handshake(context, stream.loop());
  auto filter = detail::make_server_filter(generation);
  auto secured = detail::secure(std::move(stream), std::move(generation), std::move(filter));
  co_return co_await std::move(secured);
}

Task<Result<ByteStream>> connect(ByteStream stream, ClientContext context, Host host) {
  detail::check_context(bool(context));
  if (!stream.is_open()) co_return detail::base::failure(EBADF);
  SocketStream socket;
  if (detail::take_socket(stream, socket)) {
    const auto done = co_await connect(socket, std::move(context), std::move(host));
    if (!done) co_return std::unexpected(done.error());
    co_return ByteStream(std::move(socket));
  }
  auto generation = detail::generation_for_handshake(context, stream.loop());
  // The peer of such a stream is often a proxy.
  auto filter = detail::make_client_filter(context, generation, std::move(host),
                                           detail::base::failure(ENOTCONN));
  auto secured = detail::secure(std::move(stream), std::move(generation), std::move(filter));
  co_return co_await std::move(secured);
}

}  // namespace tambour::tls
