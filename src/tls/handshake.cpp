// Handshakes on connected streams.
#include <tambour/tls/handshake.h>

#include <cerrno>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/tls/early_data.h>

#include "base/failure.h"
#include "io/transport.h"
#include "loop/core.h"
#include "net/handshake.h"
#include "net/stream_filter.h"
#include "tls/call.h"
#include "tls/context/context.h"
#include "tls/filter.h"
#include "tls/handshake_parts.h"

namespace tambour::tls {

namespace detail {
namespace {

/// One part of a handshake: until it has ended, or has to wait for the other direction.
class HandshakeWait final : public IoWait {
 public:
  HandshakeWait(SocketStream& stream, Filter& filter, net::Handshake& handshake,
                detail::FirstCall first) noexcept
      : IoWait(stream, handshake.awaited(), first), filter_(filter), handshake_(handshake) {}

  /// Ends the wait.
  using IoWait::cancel;

  /// Returns 0, or a negated errno value if waiting has failed.
  [[nodiscard]] std::int32_t await_resume() const noexcept { return outcome; }

 private:
  /// Leaves `outcome` at 0: that of the handshake is in `handshake_`.
  [[nodiscard]] bool step(loop::Core& core) noexcept override {
    const io::Transport all(core.backend().system(), fd(), io::TransportKind::tls, &filter_);
    return handshake_.advance(all) != readiness();
  }

  Filter& filter_;
  net::Handshake& handshake_;
};

Task<Result<>> run(SocketStream& stream, Filter& filter, Duration limit) {
  HandshakeWait* current = nullptr;
  net::Handshake handshake(stream.loop(), limit, [&current] {
    if (current != nullptr) current->cancel();
  });
  // A server begins with receiving, for which it usually has to wait. A filter below may hold
  // bytes.
  const bool waits_first = SSL_is_server(filter.ssl()) == 1 && filter.below() == nullptr;
  auto first = waits_first ? detail::FirstCall::when_ready : detail::FirstCall::at_once;
  while (!handshake.has_ended()) {
    HandshakeWait wait(stream, filter, handshake, first);
    current = &wait;
    const std::int32_t outcome = co_await wait;
    current = nullptr;
    if (outcome < 0) handshake.fail(outcome);
    first = detail::FirstCall::at_once;
  }
  co_return handshake.result();
}

/// During a handshake inside another TLS session, the new filter owns the one of the stream, which
/// gets it back if the handshake fails or the task is destroyed: it never becomes plaintext.
class Nesting {
 public:
  Nesting(SocketStream& stream, Filter& filter) noexcept : stream_(stream), filter_(&filter) {
    filter.set_below(net::StreamFilter::detach(stream));
  }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  ~Nesting() {
    if (filter_ == nullptr || filter_->below() == nullptr) return;
    auto below = filter_->take_below();
    if (stream_.is_open()) net::StreamFilter::attach(stream_, std::move(below));
  }

  void complete() noexcept { filter_ = nullptr; }

 private:
  SocketStream& stream_;
  Filter* filter_;
};

/// Keeps `generation` and with it its options alive.
Task<Result<>> shake_hands(SocketStream& stream, std::shared_ptr<const Generation> generation,
                           std::unique_ptr<Filter> filter) {
  Nesting nesting(stream, *filter);
  const Result<> done = co_await run(stream, *filter, generation->common().handshake_timeout);
  if (done) {
    nesting.complete();
    net::StreamFilter::attach(stream, std::move(filter));
  } else {
    report(stream.peer_endpoint(), *generation, done.error(), *filter);
  }
  co_return done;
}

/// Continues the handshake of a stream that has started with early data.
Task<Result<>> finish(SocketStream& stream, Filter& filter) {
  if (filter.is_handshake_complete()) co_return Result<>();
  const Generation& generation = Generation::of(filter.ssl());
  const Result<> done = co_await run(stream, filter, generation.common().handshake_timeout);
  if (!done && filter.begin_report())
    report(stream.peer_endpoint(), generation, done.error(), filter);
  co_return done;
}

/// Returns why `stream` cannot begin TLS.
std::optional<Error> misuse(const SocketStream& stream, bool has_context) noexcept {
  check_context(has_context);
  if (!stream.is_open()) return system_error(EBADF);
  if (net::StreamFilter::depth(stream) >= filters_max) return system_error(EALREADY);
  return std::nullopt;
}

/// Like tls::accept(), but if it fails, `stream` stays open.
Task<Result<>> accept_open(SocketStream& stream, tls::ServerContext context, Start start) {
  if (const auto error = misuse(stream, bool(context))) co_return std::unexpected(*error);
  auto generation = generation_for_handshake(context, stream.loop());
  std::unique_ptr<Filter> filter = make_server_filter(generation);
  if (filter == nullptr) co_return base::failure(ENOMEM);
  filter->start_early(start == Start::with_early_data);
  co_return co_await shake_hands(stream, std::move(generation), std::move(filter));
}

}  // namespace

Task<Result<>> LoadedServerState::accept(SocketStream& stream, tls::ServerContext context,
                                         Start start) {
  return accept_open(stream, std::move(context), start);
}

}  // namespace detail

Task<Result<>> accept(SocketStream& stream, ServerContext context) {
  const Result<> done =
      co_await detail::accept_open(stream, std::move(context), detail::Start::when_complete);
  if (!done) stream.close();
  co_return done;
}

Task<Result<>> accept_early(SocketStream& stream, ServerContext context) {
  const Result<> done =
      co_await detail::accept_open(stream, std::move(context), detail::Start::with_early_data);
  if (!done) stream.close();
  co_return done;
}

Task<Result<std::size_t>> read_early(SocketStream& stream, Buffer& into) {
  if (stream.tls() == nullptr) co_return 0;
  auto& filter = static_cast<detail::Filter&>(detail::net::StreamFilter::of(stream));
  if (const std::size_t size = filter.take_early(into); size > 0) co_return size;
  filter.start_early(true);
  const Result<> done = co_await detail::finish(stream, filter);
  if (!done) co_return std::unexpected(done.error());
  co_return filter.take_early(into);
}

Task<Result<>> complete_handshake(SocketStream& stream) {
  if (stream.tls() == nullptr) co_return Result<>();
  auto& filter = static_cast<detail::Filter&>(detail::net::StreamFilter::of(stream));
  filter.start_early(false);
  co_return co_await detail::finish(stream, filter);
}

Task<Result<>> connect(SocketStream& stream, ClientContext context, Host host, Replayable data) {
  if (const auto error = detail::misuse(stream, bool(context))) co_return std::unexpected(*error);
  auto generation = detail::generation_for_handshake(context, stream.loop());
  // Inside another session, the peer is a proxy.
  Result<Endpoint> peer = detail::base::failure(ENOTCONN);
  if (host.port == 0 && stream.tls() == nullptr) peer = stream.peer_endpoint();
  auto filter =
      detail::make_client_filter(context, generation, std::move(host), peer, std::move(data.bytes));
  if (filter == nullptr) {
    stream.close();
    co_return detail::base::failure(ENOMEM);
  }
  const Result<> done =
      co_await detail::shake_hands(stream, std::move(generation), std::move(filter));
  if (!done) stream.close();
  co_return done;
}

Task<Result<>> connect(SocketStream& stream, ClientContext context, Host host) {
  return connect(stream, std::move(context), std::move(host), Replayable());
}

Task<Result<>> accept(SocketStream& stream, const Buffer& plaintext, ServerContext context) {
  if (!plaintext.empty()) {
    stream.close();
    co_return std::unexpected<Error>(ErrorCode::unread_plaintext);
  }
  co_return co_await accept(stream, std::move(context));
}

Task<Result<>> connect(SocketStream& stream, const Buffer& plaintext, ClientContext context,
                       Host host) {
  if (!plaintext.empty()) {
    stream.close();
    co_return std::unexpected<Error>(ErrorCode::unread_plaintext);
  }
  co_return co_await connect(stream, std::move(context), std::move(host));
}

}  // namespace tambour::tls
