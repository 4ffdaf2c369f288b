// Requests that a server has received: the head, and the body as a stream.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/base/uuid.h>
#include <tambour/detail/namespaces.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/http/body.h>  // IWYU pragma: export
#include <tambour/http/message.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/ip_address.h>
#include <tambour/net/proxy_header.h>
#include <tambour/task/task.h>

namespace tambour::http::detail {
class DetachedRequest;
class Exchange;
}  // namespace tambour::http::detail

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
  /// `peer` caches the endpoint of the peer after the first call of peer_endpoint().
  RequestConnection(EventLoop& loop, const SocketStream& stream,
                    tambour::detail::OwnedPointer<Endpoint>& peer) noexcept
      : loop_(&loop), stream_(&stream), peer_(&peer) {}

  /// The loop of the connection, and the endpoint on which the server has accepted it:
  /// getsockname(2).
  [[nodiscard]] EventLoop& loop() const noexcept { return *loop_; }
  [[nodiscard]] Result<Endpoint> local_endpoint() const noexcept;
  /// For a proxied connection, the endpoint that the proxy reported. Asks the kernel once for each
  /// connection.
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
  tambour::detail::OwnedPointer<Endpoint>* peer_;
};

/// The types that Request::parameter_as() returns: integers, non-empty texts and UUIDs.
template <class T>
concept ParameterType =
    (std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && sizeof(T) <= 8) ||
    std::same_as<T, std::string> || std::same_as<T, Uuid>;

/// A request. Exists until its handler has ended and its response has been completed; that of a
/// WebSocket, until the function of serve_websocket() has ended.
///
/// Ownership: owned by the connection. A use after the handler has ended aborts, if the connection
/// still exists: see Response. Views into the head are valid as long as the request, unless
/// the program changes the head.
/// Thread: must be used on the loop's thread of its connection.
class Request {
 public:
  /// For the library.
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

  /// The body, which is received while the handler reads it.
  [[nodiscard]] IncomingBody& body() noexcept { return body_; }
  /// The bytes of the body that were read so far, as they were received: without the framing of
  /// chunks, before decoding.
  [[nodiscard]] std::uint64_t body_bytes() const noexcept;

  /// The pattern of the route that the router has chosen, with the prefixes of Router::mount():
  /// "/users/{id}". For metrics and logs, whose number of names must not depend on clients. Empty
  /// if no route matched or the server has no router. Valid as long as the handler of the server.
  [[nodiscard]] std::string_view route() const noexcept { return route_; }
  /// For programs with a router of their own. `pattern` is not copied.
  void set_route(std::string_view pattern) noexcept { route_ = pattern; }

  /// A parameter of the route, percent-decoded: see Router. Empty if there is none with this name.
  [[nodiscard]] std::string_view parameter(std::string_view name) const noexcept;
  /// A parameter of the route as a number, UUID or text:
  ///
  ///   const auto id = request.parameter_as<std::uint32_t>("id");
  ///   if (!id) return;  // The server answers: 400 with the name of the parameter.
  ///
  /// Numbers are decimal, without spaces and "+". Fails with http::ErrorCode::bad_parameter if
  /// there is no such parameter, or if its value is not of the type; see reject(). Throws
  /// std::bad_alloc.
  template <ParameterType T>
  [[nodiscard]] Result<T> parameter_as(std::string_view name) {
    return convert<T>({"parameter", name, parameter(name)});
  }
  /// Adds a parameter, or replaces the one with the same name: a middleware may pass values to the
  /// handler, for example the name of the user.
  void set_parameter(std::string_view name, std::string value);
  void clear_parameters() noexcept { parameters_.clear(); }

  /// The first parameter of the query with this name, decoded as in forms: http::parse_query(). No
  /// value if there is none; an empty text for "?x=" and "?x". Throws std::bad_alloc.
  [[nodiscard]] std::optional<std::string> query_parameter(std::string_view name) const;
  /// All of them, in their order: "?tag=a&tag=b".
  [[nodiscard]] std::vector<std::string> query_parameters(std::string_view name) const;
  /// Like parameter_as(), but no value if there is none with this name.
  template <ParameterType T>
  [[nodiscard]] Result<std::optional<T>> query_parameter_as(std::string_view name) {
    const std::optional<std::string> text = query_parameter(name);
    if (!text) return std::optional<T>();
    Result<T> value = convert<T>({"query parameter", name, *text});
    if (!value) return std::unexpected(value.error());
    return std::optional<T>(std::move(*value));
  }

  /// Records that the request is not what the program expects: unless the handler sends a response,
  /// the server answers with status_for(error), and shows the client `detail`. The first call
  /// counts. Returns `error`, for functions that read parameters or bodies:
  ///
  ///   co_return request.reject(http::ErrorCode::bad_parameter, "\"since\" is after \"until\"");
  ///
  /// Throws std::bad_alloc.
  std::unexpected<Error> reject(const Error& error, std::string detail);

  /// The connection: its endpoints, its PROXY header and its TLS session.
  [[nodiscard]] RequestConnection connection() const noexcept;
  /// The address of the client, for logs, limits and permissions: the address that the middleware
  /// client_address() has found behind trusted proxies, or else the address of the peer, which may
  /// come from the PROXY protocol. An address that the client itself claims is never returned.
  /// Fails with EAFNOSUPPORT if the peer has no IP address, for example on a Unix socket, and like
  /// RequestConnection::peer_endpoint().
  [[nodiscard]] Result<IpAddress> client_address() const noexcept;
  /// For programs that determine the address in another way.
  void set_client_address(const IpAddress& address) noexcept { client_address_ = address; }
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
  /// The same for work with a result, which is returned.
  template <class T>
    requires(!std::is_void_v<T>)
  [[nodiscard]] Task<T> while_connected(Task<T> work) const {
    std::optional<T> result;
    auto storing = [](Task<T> task, std::optional<T>& into) -> Task<> {
      into.emplace(co_await std::move(task));
    };
    Task<> stored = storing(std::move(work), result);
    co_await while_connected(std::move(stored));
    co_return std::move(*result);
  }

 private:
  friend class detail::DetachedRequest;
  friend class detail::Exchange;

  /// Aborts with a message that names the function, unless the request was detached.
  [[nodiscard]] const detail::DetachedRequest& detached(const char* function) const noexcept;

  /// A text of the client that is to be converted.
  struct Sent {
    std::string_view kind;
    std::string_view name;
    std::string_view text;
  };
  template <ParameterType T>
  [[nodiscard]] Result<T> convert(const Sent& sent) {
    if constexpr (std::same_as<T, std::string>) {
      if (sent.text.empty()) return reject_parameter(sent, "must not be empty");
      return std::string(sent.text);
    } else if constexpr (std::same_as<T, Uuid>) {
      const auto uuid = Uuid::parse(sent.text);
      return uuid ? Result<T>(*uuid) : reject_parameter(sent, "must be a UUID");
    } else if constexpr (std::signed_integral<T>) {
      const auto number =
          convert_signed(sent, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
      return number ? Result<T>(static_cast<T>(*number)) : std::unexpected(number.error());
    } else {
      const auto number = convert_unsigned(sent, std::numeric_limits<T>::max());
      return number ? Result<T>(static_cast<T>(*number)) : std::unexpected(number.error());
    }
  }
  [[nodiscard]] Result<std::int64_t> convert_signed(const Sent& sent, std::int64_t min,
                                                    std::int64_t max);
  [[nodiscard]] Result<std::uint64_t> convert_unsigned(const Sent& sent, std::uint64_t max);
  [[nodiscard]] std::unexpected<Error> reject_parameter(const Sent& sent, std::string_view rule);

  detail::Exchange* exchange_;  ///< Null after the end of the handler.
  bool is_detached_ = false;    ///< It is a detail::DetachedRequest.
  IncomingBody body_;
  std::string_view route_;
  std::optional<IpAddress> client_address_;
  std::vector<std::pair<std::string, std::string>> parameters_;
};

}  // namespace tambour::http

#pragma GCC visibility pop
