// Requests that a server has received: the head, and the body as a stream.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/body.h>  // IWYU pragma: export
#include <tambour/http/message.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/proxy_header.h>
#include <tambour/task/task.h>

namespace tambour::http::detail {
class Exchange;
}

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;
class SocketStream;
namespace tls {
class Session;
}  // namespace tls

}  // namespace tambour

namespace tambour::http {

/// The connection on which a request has arrived. Several requests may share it.
///
/// Lifetime: that of the Request. After Response::upgrade(), the handler has the stream, and the
/// endpoints are unknown here (EBADF). Thread: the loop's.
class RequestConnection {
 public:
  RequestConnection(EventLoop& loop, const SocketStream& stream) noexcept
      : loop_(&loop), stream_(&stream) {}

  [[nodiscard]] EventLoop& loop() const noexcept { return *loop_; }
  [[nodiscard]] Result<Endpoint> local_endpoint() const noexcept;
  /// For a proxied connection, the endpoint that the proxy reported.
  [[nodiscard]] Result<Endpoint> peer_endpoint() const noexcept;
  /// Null if there was none: see net/proxy_protocol.h.
  [[nodiscard]] const ProxyHeader* proxy_header() const noexcept;
  /// Null if the connection is not encrypted.
  [[nodiscard]] const tls::Session* tls() const noexcept;
  /// The protocol that TLS has negotiated; empty: none.
  [[nodiscard]] std::string_view alpn() const noexcept;

 private:
  EventLoop* loop_;
  const SocketStream* stream_;
};

/// A request. Exists until its handler has ended and its response has been completed.
///
/// Ownership: owned by the connection. A use after the handler has ended aborts, if the connection
/// still exists: see Response. Views into the head are valid as long as the request, unless
/// the program changes the head.
/// Thread: must be used on the loop's thread of its connection.
class Request {
 public:
  explicit Request(detail::Exchange* exchange) noexcept : exchange_(exchange), body_(nullptr) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() = default;

  /// May be changed, for example by a handler that rewrites the target for another one.
  [[nodiscard]] RequestHead& head() noexcept;
  [[nodiscard]] const RequestHead& head() const noexcept;
  [[nodiscard]] const Method& method() const noexcept { return head().method; }
  /// Percent-encoded, without the query.
  [[nodiscard]] std::string_view path() const noexcept { return head().path(); }
  [[nodiscard]] std::optional<std::string_view> query() const noexcept { return head().query(); }
  [[nodiscard]] const Fields& headers() const noexcept { return head().fields; }

  [[nodiscard]] IncomingBody& body() noexcept { return body_; }

  /// A parameter of the route, percent-decoded: see Router. Empty if there is none with this name.
  [[nodiscard]] std::string_view parameter(std::string_view name) const noexcept;
  /// Adds a parameter, or replaces the one with the same name: a middleware may pass values to the
  /// handler, for example the name of the user.
  void set_parameter(std::string_view name, std::string value);
  void clear_parameters() noexcept { parameters_.clear(); }

  /// The connection: its endpoints, its PROXY header and its TLS session.
  [[nodiscard]] RequestConnection connection() const noexcept;
  /// EventLoop::now() when the head was complete. With ServerOptions::on_response, the server calls
  /// EventLoop::update_now() before.
  [[nodiscard]] TimePoint received_at() const noexcept;

  /// A stop is requested when the client has closed or half-closed the connection, or the
  /// connection has failed. A client that has half-closed it still receives the response. The first
  /// call begins to watch the connection, as soon as the whole body has been read; up to 128 KiB of
  /// requests that follow are read ahead. With the select backend, a client that has sent more of
  /// them is not watched. A client that vanishes without closing is not noticed. No stop is
  /// requested after the handler has ended or has opened a tunnel. Throws std::bad_alloc.
  [[nodiscard]] std::stop_token disconnect_token() const;
  /// A stop is requested when the server begins to shut down: see StreamServer::shutdown_token().
  /// Handlers of long responses end them then.
  [[nodiscard]] std::stop_token shutdown_token() const noexcept;

  /// Runs `work`, and asks it to stop when a stop of disconnect_token() is requested: its waits
  /// then fail with ECANCELED. Returns when it has ended. For handlers that wait long without
  /// writing:
  ///
  ///   co_await request.while_connected(wait_for_news(response));
  [[nodiscard]] Task<> while_connected(Task<> work) const;

 private:
  friend class detail::Exchange;

  detail::Exchange* exchange_;  ///< Null after the end of the handler.
  IncomingBody body_;
  std::vector<std::pair<std::string, std::string>> parameters_;
};

}  // namespace tambour::http

#pragma GCC visibility pop
