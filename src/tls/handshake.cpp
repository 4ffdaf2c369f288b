// Handshakes on connected streams.
#include "tls/handshake.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cerrno>
#include <chrono>
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

std::string seconds_text(Duration time) {
  return std::to_string(std::chrono::duration<double>(time).count()) + " s";
}

/// Reports a failed handshake.
void report(const SocketStream& stream, const TlsOptions& options, const Error& error,
            std::string text) {
  if (!options.on_failure || error == system_error(ECANCELED)) return;
  TlsFailure failure{.error = error};
  const auto peer = stream.peer_endpoint();
  failure.message = "TLS handshake with " + (peer ? peer->to_string() : std::string("the peer"));
  if (error == system_error(ETIMEDOUT))
    text = "not complete within " + seconds_text(options.handshake_timeout);
  failure.message += ": " + error.message();
  if (!text.empty()) failure.message += ": " + text;
  options.on_failure(failure);
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
    report(stream, options, done.error(), filter->failure());
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

bool is_address(const std::string& host) noexcept {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

/// Sets what the client expects. Returns false if memory runs out or OpenSSL refuses the name.
bool expect_host(Filter& filter, const std::string& host) noexcept {
  X509_VERIFY_PARAM* const expected = SSL_get0_param(filter.ssl());
  if (is_address(host)) return X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return X509_VERIFY_PARAM_set1_host(expected, host.data(), host.size()) == 1 &&
         SSL_set_tlsext_host_name(filter.ssl(), host.c_str()) == 1;
}

void offer_session(ClientGeneration& generation, Filter& filter, const SocketStream& stream) {
  const auto peer = stream.peer_endpoint();
  const std::string port = peer && peer->is_ip() ? std::to_string(peer->port()) : std::string();
  filter.set_session_key(filter.host() + " " + port);
  SessionPointer session = generation.sessions().take(filter.session_key());
  if (session == nullptr) return;
  static_cast<void>(SSL_set_session(filter.ssl(), session.get()));
  // A server of TLS 1.3 sends new tickets with each connection; one of TLS 1.2 does not.
  if (SSL_SESSION_get_protocol_version(session.get()) == TLS1_2_VERSION)
    generation.sessions().put(filter.session_key(), std::move(session));
}

}  // namespace

Task<Result<>> accept(SocketStream& stream, TlsServerContext context) {
  auto generation = ContextAccess::generation(context);
  if (const auto error = misuse(stream, generation != nullptr)) co_return std::unexpected(*error);
  SSL_CTX* const shared = generation->context();
  std::unique_ptr<Filter> filter;
  if (shared != nullptr) filter = Filter::create(shared, true, generation);
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
  if (host.ends_with('.')) host.pop_back();
  if (host.empty() || host.size() > 255 || host.find('\0') != std::string::npos) {
    stream.close();
    co_return base::failure(EINVAL);
  }
  SSL_CTX* const shared = generation->context();
  std::unique_ptr<tls::Filter> filter;
  if (shared != nullptr) filter = tls::Filter::create(shared, false, generation);
  if (filter == nullptr || !tls::expect_host(*filter, host)) {
    stream.close();
    co_return base::failure(ENOMEM);
  }
  filter->set_host(std::move(host));
  tls::offer_session(*generation, *filter, stream);
  const Result<> done = co_await tls::shake_hands(stream, std::move(generation), std::move(filter));
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
