// Handshakes on connected streams.
#include "tls/handshake.h"

#include <cerrno>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <tambour/tls.h>
#include <tambour/when.h>

#include "base/check.h"
#include "base/failure.h"
#include "io/transport.h"
#include "loop/core.h"
#include "net/outcome.h"
#include "net/stream_filter.h"
#include "tls/context.h"
#include "tls/filter.h"
#include "tls/handshake_parts.h"

namespace tambour {
namespace tls {
namespace {

/// One part of a handshake: until it is complete, or has to wait for the other direction.
class HandshakeWait final : public IoWait {
 public:
  HandshakeWait(SocketStream& stream, Filter& filter, bool to_write) noexcept
      : IoWait(stream, to_write ? Events::write : Events::read, detail::FirstCall::at_once),
        filter_(filter) {}
  [[nodiscard]] std::int32_t await_resume() const noexcept { return outcome; }

 private:
  [[nodiscard]] bool step(loop::Core& core) noexcept override {
    const io::Transport below(core.backend().system(), fd(), io::TransportKind::socket);
    const std::int32_t answer = filter_.handshake(below);
    if (answer == (readiness() == Events::write ? -EINPROGRESS : -EAGAIN)) return false;
    outcome = answer;
    return true;
  }

  Filter& filter_;
};

Task<Result<>> run(SocketStream& stream, Filter& filter) {
  bool to_write = false;
  for (;;) {
    const std::int32_t outcome = co_await HandshakeWait(stream, filter, to_write);
    if (outcome != -EAGAIN && outcome != -EINPROGRESS) co_return net::result_of(outcome);
    to_write = outcome == -EINPROGRESS;
  }
}

/// Keeps `generation` and with it `options` alive.
template <class Generation>
Task<Result<>> shake_hands(SocketStream& stream, std::shared_ptr<Generation> generation,
                           std::unique_ptr<Filter> filter) {
  const TlsOptions& options = generation->options();
  Result<> done;
  if (options.handshake_timeout > Duration::zero()) {
    done = co_await timeout(options.handshake_timeout, run(stream, *filter));
  } else {
    done = co_await run(stream, *filter);
  }
  if (done) {
    net::StreamFilter::attach(stream, std::move(filter));
  } else {
    report(stream.peer_endpoint(), options, done.error(), filter->failure());
  }
  co_return done;
}

/// Returns why `stream` cannot begin TLS.
std::optional<Error> misuse(const SocketStream& stream, bool has_context) noexcept {
  base::check(has_context,
              "tls_accept() or tls_connect() was called with an empty context; create one with "
              "TlsServerContext::create() or TlsClientContext::create()");
  if (!stream.is_open()) return system_error(EBADF);
  if (stream.tls() != nullptr) return system_error(EALREADY);
  return std::nullopt;
}

}  // namespace

Task<Result<>> accept(SocketStream& stream, TlsServerContext context) {
  auto generation = ContextAccess::generation(context);
  if (const auto error = misuse(stream, generation != nullptr)) co_return std::unexpected(*error);
  std::unique_ptr<Filter> filter = make_server_filter(generation);
  if (filter == nullptr) co_return base::failure(ENOMEM);
  co_return co_await shake_hands(stream, std::move(generation), std::move(filter));
}

}  // namespace tls

Task<Result<>> tls_accept(SocketStream& stream, TlsServerContext context) {
  const Result<> done = co_await tls::accept(stream, std::move(context));
  if (!done) stream.close();
  co_return done;
}

Task<Result<>> tls_connect(SocketStream& stream, TlsClientContext context, std::string host) {
  auto generation = tls::ContextAccess::generation(context);
  if (const auto error = tls::misuse(stream, generation != nullptr))
    co_return std::unexpected(*error);
  auto filter = tls::make_client_filter(generation, std::move(host), stream.peer_endpoint());
  if (!filter) {
    stream.close();
    co_return std::unexpected(filter.error());
  }
  const Result<> done =
      co_await tls::shake_hands(stream, std::move(generation), std::move(*filter));
  if (!done) stream.close();
  co_return done;
}

Task<Result<>> tls_accept(SocketStream& stream, const Buffer& plaintext, TlsServerContext context) {
  if (!plaintext.empty()) {
    stream.close();
    co_return std::unexpected<Error>(TlsError::unread_plaintext);
  }
  co_return co_await tls_accept(stream, std::move(context));
}

Task<Result<>> tls_connect(SocketStream& stream, const Buffer& plaintext, TlsClientContext context,
                           std::string host) {
  if (!plaintext.empty()) {
    stream.close();
    co_return std::unexpected<Error>(TlsError::unread_plaintext);
  }
  co_return co_await tls_connect(stream, std::move(context), std::move(host));
}

}  // namespace tambour
