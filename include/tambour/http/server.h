// HTTP servers.
//
// A server parses requests, runs a handler for each, and sends the responses in the order of the
// requests. It serves HTTP/1.1 and HTTP/1.0: persistent connections, pipelining, "100 Continue",
// chunked bodies; and HTTP/2, whose requests do not wait for each other. docs/http.md is a guide,
// also docs/http2.md; docs/limits.md lists the limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/error_renderer.h>  // IWYU pragma: export
#include <tambour/http/handler.h>         // IWYU pragma: export
#include <tambour/http/http2.h>           // IWYU pragma: export
#include <tambour/http/message.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/listen_options.h>
#include <tambour/net/server_group.h>
#include <tambour/net/stream_server.h>

namespace tambour::http::detail {
class H2Counters;
}  // namespace tambour::http::detail

#pragma GCC visibility push(default)

namespace tambour::http {

/// The limits, hooks and protocols of an HTTP server. A duration of zero disables a time limit.
struct ServerOptions {
  /// The listener: TLS, the PROXY protocol, the maximum number of connections, on_error for
  /// exceptions of handlers. tls::ServerOptions::alpn may name "h2", "http/1.1" and "http/1.0":
  /// "h2" should be the first, because the server chooses the first one that the client supports.
  /// If reload() adds another protocol, connections that negotiate it are closed, and passed to
  /// on_rejected with http::ErrorCode::negotiated_other_protocol.
  ListenOptions listen{};
  /// A request that exceeds one is answered with 413, 414 or 431, and the connection is closed.
  MessageLimits limits{};
  /// Whether the server speaks HTTP/2, and its limits.
  Http2Options http_2{};

  /// The time for a whole head, from its first byte on; for the first request, from the beginning
  /// of the connection. Then the server answers 408 and closes the connection; one that has
  /// sent nothing is closed without an answer.
  Duration header_timeout = std::chrono::seconds(10);
  /// The time for which a handler waits for the body in total. Each received byte extends it by
  /// 1/body_rate_min seconds, but what is left never exceeds `body_timeout`. The time in which no
  /// task reads the body does not count. Then read() fails with ETIMEDOUT.
  Duration body_timeout = std::chrono::seconds(30);
  std::size_t body_rate_min = 500;  ///< In bytes per second; 0: received bytes extend nothing.
  /// The time without a request on a persistent connection; then it is closed.
  Duration idle_timeout = std::chrono::seconds(60);
  /// The longest time in which the kernel accepts no byte of a response. Then write() fails with
  /// ETIMEDOUT and the connection is reset; if the handler has ended, the connection is closed.
  /// Detected after at most twice this time.
  Duration write_timeout = std::chrono::seconds(60);
  /// The time for which a connection still reads, and discards, what the client sends after a
  /// response that ends the connection, for example 413. Without it, the kernel would reset the
  /// connection, and the client could lose the response.
  Duration linger = std::chrono::seconds(10);
  /// After shut_down() begins: the time for which connections without a request stay open for
  /// one that the client may have sent already. Its response says that the connection closes. Also
  /// the longest `linger` then.
  Duration drain_timeout = std::chrono::seconds(1);
  /// If a handler has not read the whole body of a request, the server reads at most this many
  /// bytes of it, so that the connection can be used again. If more is left, it is closed.
  std::size_t discarded_bytes_max = std::size_t{256} * 1024;

  /// Invoked when each response is complete, also those to rejected requests and on failed
  /// connections: for access logs. The response may not have been sent yet. An exception is treated
  /// like one of the handler. A group of loops invokes it on several threads.
  std::function<void(const Request&, const Response&)> on_response{};

  /// Renders error responses: of the parser, the router and middleware, after exceptions, and for
  /// Response::send_error(). Empty: render_plain(). If a handler fails, the response keeps the
  /// fields that were set before the innermost handler was started: those of middleware, for
  /// example those of CORS, without which a page could not read the status.
  ErrorRenderer error_renderer{};
  /// If set, invoked with the exceptions of handlers and the request that failed, instead of
  /// ListenOptions::on_error. The response has been created, and on_response invoked, before. Must
  /// not destroy the server. An exception that it throws is passed to ListenOptions::on_error. A
  /// group of loops invokes it on several threads.
  std::function<void(const Request&, const std::exception_ptr&)> on_exception{};
};

/// A server on one loop.
///
///   auto server = or_throw(http::Server::listen(loop, at, [](http::Request& request,
///                                                            http::Response& response) {
///     response.send("hello\n");
///   }));
///
/// Rejected requests never reach the handler: the server answers with status_for(error) and closes
/// the connection. An exception of a handler ends its request, which is answered with 500 unless
/// the response has begun, and its connection: see ListenOptions::on_error.
///
/// Lifetime: destroying the server closes all connections and destroys the tasks of handlers. A
/// handler must not destroy it. The loop must outlive the server.
/// Thread: must be used on the loop's thread.
class Server final : public StreamServerBase {
 public:
  /// Listens on an IP address or a Unix path. Fails like StreamServer::listen(), and with
  /// http::ErrorCode::offered_http_2 or offered_other_protocol if the TLS context offers a protocol
  /// that the server does not speak.
  [[nodiscard]] static Result<Server> listen(EventLoop& loop, const Endpoint& at, Handler handler,
                                             ServerOptions options = {});
  /// Serves on a listener that is already open: see StreamServer::adopt() and InheritedListeners.
  /// Also fails with the errors of http::ErrorCode of listen().
  [[nodiscard]] static Result<Server> adopt(EventLoop& loop, UniqueFd listener, Handler handler,
                                            ServerOptions options = {});

  // Of StreamServerBase: endpoint(), connections(), accepted(), stop(), shutdown_token(), and
  // shut_down(grace). After its call, connections end after their current request, and those
  // without one after ServerOptions::drain_timeout; after `grace`, handlers are asked to stop.

  /// What the connections of HTTP/2 have counted. Callable from any thread.
  [[nodiscard]] Http2Stats http_2_stats() const noexcept;

 private:
  explicit Server(StreamServerBase&& base);
  [[nodiscard]] static Result<Server> start(Result<StreamServerBase> base, Handler handler,
                                            ServerOptions options);

  std::shared_ptr<detail::H2Counters> h2_counters_;
};

/// A server whose connections are distributed over the loops of a group. Several threads run the
/// handler concurrently. See StreamServerGroup for its threads and lifetime.
class ServerGroup final : public StreamServerGroupBase {
 public:
  /// Fails like StreamServerGroup::listen(), and with the errors of http::ErrorCode of
  /// Server::listen().
  [[nodiscard]] static Result<ServerGroup> listen(LoopGroup& group, const Endpoint& at,
                                                  Handler handler, ServerOptions options = {});
  /// See StreamServerGroup::adopt(). Also fails with the errors of http::ErrorCode of
  /// Server::listen().
  [[nodiscard]] static Result<ServerGroup> adopt(LoopGroup& group, std::vector<UniqueFd> listeners,
                                                 Handler handler, ServerOptions options = {});

  /// What the connections of HTTP/2 on all loops have counted. Callable from any thread.
  [[nodiscard]] Http2Stats http_2_stats() const noexcept;

 private:
  explicit ServerGroup(StreamServerGroupBase&& base);
  [[nodiscard]] static Result<ServerGroup> start(LoopGroup& group,
                                                 Result<StreamServerGroupBase> base,
                                                 Handler handler, ServerOptions options);

  std::shared_ptr<detail::H2Counters> h2_counters_;
};

}  // namespace tambour::http

#pragma GCC visibility pop
