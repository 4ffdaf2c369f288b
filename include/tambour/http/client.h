// A client for HTTP/1.1 and HTTP/2: a pool of connections for each origin, redirects, TLS, and
// bodies that are streamed in both directions.
//
//   http::Client client(loop);
//   auto response = co_await client.get("https://example.org/");
//   if (!response) co_return std::unexpected(response.error());
//   auto text = co_await response->read_text();
//
// The most likely mistake: a response that is neither read to its end nor destroyed holds its
// connection, and counts for `connections_per_origin_max`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/http/auth.h>
#include <tambour/http/body.h>  // IWYU pragma: export
#include <tambour/http/cookie.h>
#include <tambour/http/fields.h>
#include <tambour/http/hsts.h>
#include <tambour/http/http2.h>
#include <tambour/http/message.h>
#include <tambour/http/url.h>
#include <tambour/net/byte_stream.h>
#include <tambour/net/connector.h>
#include <tambour/net/retry_policy.h>
#include <tambour/task/task.h>

namespace tambour::http::detail::client {
class Exchange;
struct Shared;
}  // namespace tambour::http::detail::client

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

}  // namespace tambour

namespace tambour::http {

/// How a Client connects, and its limits. See docs/http-client.md.
struct ClientOptions {
  /// How connections are opened. `connect.tls` is for URLs with the scheme "https"; if it is empty,
  /// a context with the certificates of the system is created for the first of them, which reads
  /// files. `connect.proxy` chooses a proxy for each request: its URL, a function, or
  /// ProxyChoice::from_environment(). Proxies of HTTP forward requests for "http", and open tunnels
  /// for "https". Connections through different proxies are not exchanged.
  ConnectOptions connect{};
  /// The address to connect to, instead of the host and the port of the URL, as a text that
  /// connect() accepts: "unix:/run/docker.sock", "127.0.0.1:8080". No proxy is used then. The
  /// request, and the name that TLS verifies, are still those of the URL. Empty: the host of the
  /// URL. If connect() does not accept the text, requests fail with EINVAL.
  std::string address{};
  /// The same for some origins, by scheme, host in lower case, and port unless it is the default:
  /// {{"http://docker", "unix:/run/docker.sock"}}. Others use `address`.
  std::map<std::string, std::string, std::less<>> origin_addresses{};

  /// The limits of responses. The body of a response is streamed, so its size has no limit by
  /// default.
  MessageLimits limits{.body_bytes_max = std::numeric_limits<std::uint64_t>::max()};

  /// The versions of HTTP that the client speaks. With VersionChoice::negotiated, a context of the
  /// program in `connect.tls` decides: it must name "h2" in tls::Options::alpn for HTTP/2. Requests
  /// with the field Upgrade, and those that a proxy forwards, always use HTTP/1.1, whatever the
  /// context names. docs/http2.md is a guide.
  VersionChoice version = VersionChoice::negotiated;
  Http2ClientOptions http_2{};

  /// Open connections to one scheme, host and port; at least one. Further requests wait for a
  /// connection.
  std::size_t connections_per_origin_max = 16;
  /// Requests that may wait for a connection to one origin. Further requests fail with EAGAIN.
  std::size_t waiting_per_origin_max = 10'000;
  /// The maximum number of open connections to all origins; at least one. The oldest unused
  /// connection is closed to make room for another origin; if all are in use, further requests wait
  /// in order, except that a connection that becomes free is first given to a request for its own
  /// origin.
  std::size_t connections_max = 1'000;
  /// The maximum number of requests, to all origins, that wait for a connection. Further ones fail
  /// with EAGAIN.
  std::size_t waiting_max = 100'000;
  /// Unused connections of all origins that are kept open. The oldest is closed first.
  std::size_t idle_connections_max = 64;
  // Time limits; zero: none.

  /// How long an unused connection is kept open. Should be less than the server's limit.
  Duration idle_timeout = std::chrono::seconds(30);

  /// From the call until the head of the response has arrived, redirects included.
  Duration timeout = std::chrono::seconds(30);
  /// From the call until the whole body has been read. No value: none.
  std::optional<Duration> total_timeout{};
  /// How long to wait for the next bytes of the body of a response.
  Duration read_timeout = std::chrono::seconds(30);
  /// The minimum rate of a body, in bytes per second; a slower body fails with ETIMEDOUT. 0: no
  /// minimum. Only the time for which the client waits for bytes counts, so a program may read
  /// slowly: a body has `body_rate_period`, which each received byte extends by 1/body_rate_min
  /// seconds, up to a remaining time of `body_rate_period`.
  std::size_t body_rate_min = 0;
  Duration body_rate_period = std::chrono::seconds(30);

  /// How many redirects are followed. Zero: they are returned as responses.
  unsigned redirects_max = 10;

  /// Which requests are sent again, and when. By default, only those whose kept connection was lost
  /// are. A request is retried only if it did not reach the server, because the connection could
  /// not be made, or if its method is idempotent (RFC 9110, section 9.2.2) and its body is in
  /// memory. The delays count for `timeout`.
  RetryPolicy retry{};
  /// Also repeats idempotent requests that are answered with 503 or 429 and Retry-After, when the
  /// server asks for it, but not if that is later than `retry_after_max`.
  bool retry_unavailable = false;
  Duration retry_after_max = std::chrono::seconds(30);

  /// Offers the codings gzip, br and zstd (Accept-Encoding), and decodes the bodies of responses,
  /// whose fields then lack Content-Encoding and Content-Length. Not for requests that set
  /// Accept-Encoding or Range themselves. `limits.body_bytes_max` counts decoded bytes, too. A
  /// response with another coding is returned as it was sent.
  bool decompress = true;

  /// How the user and the password in the URL of a request are sent. With `digest`, a request whose
  /// body comes from a BodySource is not repeated: the response 401 is returned, and the next
  /// request answers its challenge. A server that offers only Basic gets no password; 401 is
  /// returned. For proxies: ConnectOptions::proxy_authentication.
  Authentication authentication = Authentication::basic;

  /// Stores the cookies of responses, also of redirects, and sends them. Null: no cookies. Those of
  /// a Cookie field that a request has are sent in addition, before them. Clients on one loop may
  /// share a jar.
  std::shared_ptr<CookieJar> cookies{};

  /// The hosts to which requests are sent only over TLS (RFC 6797): the client changes "http" to
  /// "https" in URLs of the program and of redirects, and processes the field
  /// Strict-Transport-Security of responses.
  /// Null: none. Clients on one loop may share a store.
  std::shared_ptr<HstsStore> hsts{};

  /// The User-Agent field of requests that do not have one. Empty: none.
  std::string user_agent{};
  /// Fields that are added to every request that has none with the same name. Like the fields of a
  /// request, an Authorization or Cookie field is not sent to another origin after a redirect; but
  /// it is sent to every origin to which the program sends a request.
  Fields default_fields{};
};

/// Produces the body of a request piece by piece, so that it need not be in memory at once.
class BodySource {
 public:
  BodySource() = default;
  BodySource(const BodySource&) = delete;
  BodySource& operator=(const BodySource&) = delete;
  virtual ~BodySource() = default;

  /// Appends the next bytes to `into`, and none at the end of the body. The next piece is requested
  /// when the peer has made room for it. If it fails, the connection is closed, and the request
  /// fails with the error if no response has arrived.
  [[nodiscard]] virtual Task<Result<>> read(Buffer& into) = 0;

  /// The fields after a body that is sent in chunks, once read() has returned its end. By default
  /// there are none. The request fails with http::ErrorCode::trailer_not_allowed if one
  /// frames or routes a message.
  [[nodiscard]] virtual const Fields& trailers() const noexcept;
};

/// A request that a Client sends. Not an aggregate: GCC 12 destroys the members of an aggregate
/// that is written in braces inside a co_await expression twice.
struct ClientRequest {
  ClientRequest() = default;
  /// A GET of the URL `to`, or a request with another method and a body.
  explicit ClientRequest(std::string to) : url(std::move(to)) {}
  ClientRequest(Method chosen, std::string to, Buffer content = {})
      : method(chosen), url(std::move(to)), body(std::move(content)) {}

  Method method{};
  /// With the scheme "http" or "https". Characters that a URL must not contain, such as spaces and
  /// letters outside ASCII, are percent-encoded, except in the host. A fragment is not sent. A
  /// userinfo ("user:password@") is sent as ClientOptions::authentication says, unless the request
  /// has the field Authorization, and only to this origin.
  std::string url{};
  /// Content-Length, Transfer-Encoding and Connection are set by the client, and ignored here, as
  /// is Proxy-Authorization: credentials of a proxy are part of its URL. A request with the field
  /// Upgrade gets "Connection: upgrade". A Host field replaces the host of the URL in what is sent
  /// to its origin, also after redirects within this origin; the name that TLS verifies, and
  /// cookies, are those of the URL. It is ignored if a proxy forwards the request, because the
  /// proxy would connect to that host. More than one Host field fails with
  /// http::ErrorCode::several_hosts.
  Fields fields{};

  Buffer body{};
  /// If set, the body is read from it, and `body` is ignored. A request with a source is neither
  /// repeated nor redirected with its body. An exception of the source is thrown by send(), or by
  /// the response's read().
  std::unique_ptr<BodySource> source{};
  /// The size of the body that the source produces. Without a value, it is sent in chunks, which
  /// servers of HTTP/1.0 do not understand.
  std::optional<std::uint64_t> source_bytes{};
  /// Sends a body that is being received, with its length, if it is known, or in chunks with its
  /// trailers: that of a request to a server, or that of another response. Sets `source`, unless
  /// the body is empty. Nothing of the body must have been read. It must exist until the response
  /// has been destroyed.
  void forward(IncomingBody& body);

  /// Asks the server whether it will read the body before sending it (Expect: 100-continue). If the
  /// server does not answer within a second, the body is sent.
  bool expect_continue = false;

  /// Instead of ClientOptions::timeout.
  std::optional<Duration> timeout{};
  /// Instead of ClientOptions::total_timeout.
  std::optional<Duration> total_timeout{};
  /// Instead of ClientOptions::read_timeout.
  std::optional<Duration> read_timeout{};
  /// Instead of ClientOptions::body_rate_min.
  std::optional<std::size_t> body_rate_min{};

  /// Invoked with each interim response, except 101, for example 100 (Continue), 103 (Early Hints):
  /// RFC 9110, section 15.2. The head is valid until the callback returns. An exception that it
  /// throws is thrown by send(). The callback must not destroy the task that awaits send().
  Callback<void(const ResponseHead& head)> on_interim{};
};

/// The response to a request. Its head has arrived; its body is read from the connection.
///
/// Ownership: owns the connection until the body has been read, and then returns it to the pool.
/// Destroying a response whose body has not been read closes the connection. May outlive the
/// Client, but not its loop.
/// Thread: must be used on the loop's thread, by one task at a time.
class ClientResponse {
 public:
  ClientResponse(ClientResponse&& other) noexcept;
  ClientResponse& operator=(ClientResponse&& other) noexcept;
  ~ClientResponse();

  /// The head of the last response, after redirects.
  [[nodiscard]] const ResponseHead& head() const noexcept;
  [[nodiscard]] Status status() const noexcept { return head().status; }
  [[nodiscard]] const Fields& headers() const noexcept { return head().fields; }
  /// The URL of the request, or of the last redirect.
  [[nodiscard]] const Url& url() const noexcept { return url_; }

  /// The body: to read it piece by piece, or to pass it on with Response::forward(). It must not be
  /// used after the response has been destroyed.
  [[nodiscard]] IncomingBody& body() noexcept;

  // The same body, for programs that read it to its end.

  /// Appends the next bytes of the body to `into`, at most `bytes_max`, and returns their number; 0
  /// means the end of the body. Fails with StreamError::truncated if the connection ended within
  /// the body, or the compressed data is incomplete, with ETIMEDOUT after
  /// ClientOptions::read_timeout, with http::ErrorCode::bad_content_coding, decoded_too_large
  /// and coded_too_large (ClientOptions::decompress), with the errors of received messages
  /// (http::ErrorCode), and with those of reading from a stream. A response that has failed fails
  /// again. A response with the status 101 has no body.
  [[nodiscard]] Task<Result<std::size_t>> read(Buffer& into,
                                               std::size_t bytes_max = std::size_t{256} * 1024);

  /// Reads the rest of the body. Fails like read(), and with http::ErrorCode::body_too_large if it
  /// has more than `bytes_max` bytes.
  [[nodiscard]] Task<Result<Buffer>> read_all(std::size_t bytes_max = std::size_t{16} * 1024 *
                                                                      1024);
  [[nodiscard]] Task<Result<std::string>> read_text(std::size_t bytes_max = std::size_t{16} * 1024 *
                                                                            1024);

  /// The fields after a chunked body. Empty before its end.
  [[nodiscard]] const Fields& trailers() const noexcept;

  /// True if the whole response has arrived and was read.
  [[nodiscard]] bool is_complete() const noexcept;

  /// Returns the connection of a response with the status 101: it no longer carries HTTP, and no
  /// time limit of the client applies to it. Fails with EINVAL for other responses. Throws
  /// std::bad_alloc.
  [[nodiscard]] Result<ByteStream> upgrade();

 private:
  friend struct detail::client::Shared;
  ClientResponse(Url url,
                 tambour::detail::OwnedPointer<detail::client::Exchange> exchange) noexcept;

  Url url_;
  tambour::detail::OwnedPointer<detail::client::Exchange> exchange_;
};

/// The response to a request for another protocol, and the connection, which carries that protocol.
/// Not an aggregate, because of GCC 12: see ClientRequest.
struct UpgradedResponse {
  /// For the library.
  UpgradedResponse(ClientResponse received, ByteStream connection) noexcept
      : response(std::move(received)), stream(std::move(connection)) {}

  ClientResponse response;
  ByteStream stream;  ///< Closed if the server has refused; see the status of the response.
};

/// Sends requests and keeps connections open for the next ones.
///
/// A request is sent at most once, with one exception: an idempotent request (RFC 9110, section
/// 9.2.2) is repeated on a new connection if the server closed a connection that was kept open, and
/// sent nothing in answer, or 408 (Request Timeout). A connection that its server has closed, or on
/// which bytes arrived without a request, is not used again: the client looks at the socket before
/// each request.
///
/// Responses are read as curl and browsers read them: docs/http-client.md lists what is accepted
/// beyond RFC 9112. A response with the status 101 fails with http::ErrorCode::not_an_upgrade
/// unless the request has offered its protocol in the field Upgrade. CONNECT fails with
/// http::ErrorCode::bad_target: use ConnectOptions::proxy, open_tunnel() or extended_connect().
///
/// Redirects: 301, 302 and 303 change the method to GET, unless it is HEAD, or it is not POST and
/// the status is not 303; 307 and 308 keep the method and the body. Authorization and Cookie fields
/// are not sent to another origin. Location may have characters that a URL must not contain, like
/// ClientRequest::url; if it is no URL at all, the request fails with
/// http::ErrorCode::bad_location. A redirect from "https" to "http", and one without a Location, is
/// returned as the response.
///
/// Thread: must be used on the loop's thread. Destroy it before its loop. Tasks that it has
/// returned may outlive it.
class Client {
 public:
  /// Opens no connection yet. Throws std::bad_alloc.
  explicit Client(EventLoop& loop, ClientOptions options = {});
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;
  /// Closes the connections that are not in use.
  ~Client();

  /// Sends a request and returns the response when its head has arrived, whatever its status.
  /// Fails with http::ErrorCode (an invalid URL, a scheme other than http and https, too many
  /// redirects, a malformed response), with the errors of connect(), TLS and streams, with
  /// StreamError::eof if the server closed the connection without an answer, with ProxyError, with
  /// ETIMEDOUT, with EAGAIN if too many requests wait, and with ECANCELED if the task was asked to
  /// stop. Throws std::bad_alloc.
  [[nodiscard]] Task<Result<ClientResponse>> send(ClientRequest request);

  /// send() with the method and the body of their name.
  [[nodiscard]] Task<Result<ClientResponse>> get(std::string url);
  [[nodiscard]] Task<Result<ClientResponse>> post(std::string url, std::string_view content_type,
                                                  Buffer body);

  /// Asks the server to continue with another protocol on the same connection, for example
  /// "websocket": RFC 9110, section 7.8. Sets the field Upgrade, and returns the response and,
  /// after a 101, the connection. Another status is not an error: the stream is then closed.
  /// Redirects are followed before that. The stream has no time limits of the client. Fails like
  /// send(), and with http::ErrorCode::bad_field_value if `protocol` is no field value.
  [[nodiscard]] Task<Result<UpgradedResponse>> upgrade(ClientRequest request, std::string protocol);
  /// The same over HTTP/2, where one stream of a connection carries the protocol, beside other
  /// requests: extended CONNECT, RFC 8441. The method and the body of the request are ignored.
  /// Returns the stream after a status from 200 to 299, and otherwise the response and a closed
  /// stream. ByteStream::shutdown_write() ends the sending side of the stream; closing it resets
  /// the stream unless both sides have ended. Redirects are followed before that.
  /// Fails with http::ErrorCode::no_extended_connect if the connection to the origin does not speak
  /// HTTP/2, or the server does not offer extended CONNECT. The request was not sent then:
  /// upgrade() may succeed, and uses the connection if it speaks HTTP/1.1. Fails like send(), and
  /// with http::ErrorCode::bad_field_value if `protocol` is empty or no field value.
  [[nodiscard]] Task<Result<UpgradedResponse>> extended_connect(ClientRequest request,
                                                                std::string protocol);
  /// Asks the proxy at `url`, whose path is not sent, for a tunnel to `authority`, a host and a
  /// port: CONNECT, RFC 9110, section 9.3.6. For protocols of the program; for requests through a
  /// proxy, use ConnectOptions::proxy. `fields` are sent to the proxy, Proxy-Authorization
  /// included. Returns the stream after a status from 200 to 299, and otherwise the response and a
  /// closed stream. Fails like send(), and with http::ErrorCode::bad_target or bad_host if
  /// `authority` is malformed.
  [[nodiscard]] Task<Result<UpgradedResponse>> open_tunnel(std::string url, std::string authority,
                                                           Fields fields = {});

  /// Open connections, including those that are being opened.
  [[nodiscard]] std::size_t connections() const noexcept;
  [[nodiscard]] std::size_t idle_connections() const noexcept;
  /// Requests that wait for a connection.
  [[nodiscard]] std::size_t waiting_requests() const noexcept;
  void close_idle_connections() noexcept;
  /// All connections of HTTP/2, since the client was created.
  [[nodiscard]] const Http2ClientStats& http_2_stats() const noexcept;

 private:
  std::shared_ptr<detail::client::Shared> shared_;
};

}  // namespace tambour::http

#pragma GCC visibility pop
