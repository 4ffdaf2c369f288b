// WebSockets (RFC 6455): messages in both directions over one connection, for servers and clients.
//
//   Task<> echo(http::WebSocket& socket, http::Request&) {
//     for (;;) {
//       Result<http::WebSocketMessage> message = co_await socket.receive();
//       if (!message) co_return;  // The peer has closed: socket.close_code() has the reason.
//       Result<> sent = co_await socket.send(std::move(*message));
//       if (!sent) co_return;
//     }
//   }
//   router.get("/echo", http::serve_websocket(echo));
// Clients: connect_websocket(). docs/websocket.md describes limits, compression and closing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/client.h>
#include <tambour/http/handler.h>
#include <tambour/http/websocket_error.h>
#include <tambour/net/byte_stream.h>
#include <tambour/task/task.h>

namespace tambour::http::detail::websocket {
class Connection;
struct Access;
}  // namespace tambour::http::detail::websocket

#pragma GCC visibility push(default)

namespace tambour::http {

/// Which side of the connection a WebSocket is. Clients mask what they send.
enum class WebSocketRole : std::uint8_t { client, server };

/// Compression of messages: permessage-deflate, RFC 7692. The defaults take 38 KiB for each
/// connection that compresses and 11 KiB for one that decompresses.
struct WebSocketCompression {
  /// The windows have 2^n bytes, n from 9 to 15: for messages that this end sends, and for those of
  /// the peer. A peer that does not support the parameter uses 15.
  int window_bits = 12;
  int peer_window_bits = 12;
  /// Whether messages refer to earlier ones (context takeover). If not, no memory is needed between
  /// messages, but small messages hardly shrink.
  bool has_context_takeover = true;
  bool has_peer_context_takeover = true;
  int level = 1;         ///< 0 to 9: RFC 1951 leaves the choice to the sender, zlib has levels.
  int memory_level = 5;  ///< 1 to 9, as deflateInit2() of zlib.
  /// Shorter messages are sent uncompressed. In bytes.
  std::size_t message_bytes_min = 64;
  /// How many times as large as received a message may become, after its first 64 KiB. 0: no limit
  /// but that of its size: the same byte again and again decodes to 1,000 times its size.
  std::uint32_t ratio_max = 0;
};

/// The protocols, compression, limits and time limits of a WebSocket. Not an aggregate: GCC 12
/// destroys the members of an aggregate that is written in braces inside a co_await expression
/// twice. Assign the members.
struct WebSocketOptions {
  WebSocketOptions() noexcept;

  // Limits of received messages. The connection is closed with 1009 if a message exceeds one of the
  // first three, and with 1008 if it exceeds the fourth.

  /// In bytes, decompressed.
  std::uint64_t message_bytes_max = std::uint64_t{1} * 1024 * 1024;
  std::uint64_t frame_bytes_max = std::uint64_t{1} * 1024 * 1024;
  /// Frames of one message, empty ones included.
  std::uint32_t fragments_max = 4096;
  /// Pings and pongs without data of a message between them, within 20 s.
  std::uint32_t control_frames_max = 1000;

  /// Bytes that wait to be sent. send() waits until there are fewer; try_send() fails.
  std::size_t unsent_bytes_max = std::size_t{1} * 1024 * 1024;

  // Time limits; zero: none. They are checked while a task receives.

  /// A ping is sent after this time without a byte from the peer.
  Duration ping_interval = std::chrono::seconds(20);
  /// If no byte arrives within this time after a ping, the connection fails with ETIMEDOUT.
  Duration pong_timeout = std::chrono::seconds(20);
  /// How long close() waits for the peer's close frame.
  Duration close_timeout = std::chrono::seconds(10);
  /// If the peer accepts no bytes for this time, the connection fails with ETIMEDOUT.
  Duration write_timeout = std::chrono::seconds(30);

  /// The subprotocols that this end supports; a client lists the preferred one first. A server
  /// chooses the first one of the client that it supports, or none.
  std::vector<std::string> subprotocols{};
  /// No value: messages are not compressed. The library must have been built with zlib; otherwise
  /// opening fails with ENOTSUP.
  std::optional<WebSocketCompression> compression{};

  // For servers.

  /// The code with which open WebSockets are closed when the server begins to shut down:
  /// CloseCode::service_restart if another process takes over.
  CloseCode shutdown_code = CloseCode::going_away;

  /// A browser lets pages of any site open WebSockets with the user's cookies. By default, only
  /// requests without the field Origin are accepted, and requests whose Origin is the host of the
  /// request. `origins` lists further ones, for example "https://example.org".
  std::vector<std::string> origins{};
  /// Accepts every origin, for servers that identify clients by something other than cookies.
  bool accepts_any_origin = false;
};

/// A message of a WebSocket: text in UTF-8, or bytes.
struct WebSocketMessage {
  WebSocketMessage() = default;
  /// A copy of a text, which must be UTF-8.
  explicit WebSocketMessage(std::string_view text) : data(text), is_text(true) {}
  /// A binary message, or a text that is in a buffer.
  explicit WebSocketMessage(Buffer bytes, bool text = false)
      : data(std::move(bytes)), is_text(text) {}

  Buffer data{};
  bool is_text = false;

  /// A copy of the data.
  [[nodiscard]] std::string to_string() const { return data.to_string(); }
};

/// A part of a message that receive_part() has appended to the caller's buffer.
struct WebSocketPart {
  std::size_t bytes = 0;
  bool is_text = false;
  bool is_last = false;  ///< The message ends with this part.
};

/// Counts of one WebSocket.
struct WebSocketStats {
  std::uint64_t messages_received = 0;
  std::uint64_t messages_sent = 0;  ///< Accepted by send() and try_send(), and of topics.
  /// Messages of topics that were not sent because the peer reads too slowly:
  /// WhenSubscriberSlow::drop_oldest.
  std::uint64_t messages_dropped = 0;
  std::uint64_t bytes_received = 0;  ///< Of messages, decompressed.
  std::uint64_t bytes_sent = 0;      ///< Of messages, before compression.
  std::uint64_t pings_received = 0;
  std::uint64_t pongs_received = 0;
};

/// An open WebSocket.
///
/// Reading: one task at a time receives. Pings of the peer are answered, and pings are sent, while
/// a task receives; a program that only sends must also receive, to detect the end of the
/// connection.
/// Writing: tasks may send concurrently; messages are sent in the order of the calls.
/// Ownership: a handle. Destroying it closes the connection at once, without the closing handshake
/// (the peer sees CloseCode::abnormal); close() performs it.
/// Lifetime: may be moved while tasks use it. When it is destroyed, their operations fail with
/// ECANCELED.
/// Errors: after the connection has failed, every operation fails with the same error.
/// Thread: must be used on the loop's thread.
class WebSocket {
 public:
  /// A closed WebSocket without a loop.
  WebSocket() noexcept = default;
  /// A WebSocket over a stream on which the opening handshake has been performed by the caller,
  /// without extensions. For tests, and for other protocols that carry WebSockets. Throws
  /// std::bad_alloc.
  WebSocket(ByteStream stream, WebSocketRole role, const WebSocketOptions& options = {});
  WebSocket(WebSocket&& other) noexcept;
  WebSocket& operator=(WebSocket&& other) noexcept;
  ~WebSocket();

  /// True until the connection has ended. Messages can be sent until close() or the peer's close
  /// frame.
  [[nodiscard]] bool is_open() const noexcept;
  /// Must not be called on a default-constructed object.
  [[nodiscard]] EventLoop& loop() const noexcept;
  /// The subprotocol that both ends have agreed on; empty: none.
  [[nodiscard]] const std::string& subprotocol() const noexcept;
  /// True if both ends have agreed on permessage-deflate.
  [[nodiscard]] bool has_compression() const noexcept;

  /// Waits for the next message. Fails with StreamError::eof when the peer has closed the
  /// connection with a close frame, which has been answered, or this end has; with
  /// StreamError::truncated if the connection ended without one; with WebSocketError if the peer
  /// breaks the protocol or a limit; with ETIMEDOUT after WebSocketOptions::pong_timeout; with
  /// ECANCELED if the task was asked to stop, after which receive() may be called again and no
  /// message is lost; and with the errors of the stream. Throws std::bad_alloc.
  [[nodiscard]] Task<Result<WebSocketMessage>> receive();
  /// Waits for data of a message and appends at most `bytes_max` bytes to `into`, so that a message
  /// need not be in memory at once. WebSocketOptions::message_bytes_max applies. A last part may be
  /// empty. Fails like receive(), also within a message. Do not call receive() within a message.
  [[nodiscard]] Task<Result<WebSocketPart>> receive_part(Buffer& into,
                                                         std::size_t bytes_max = std::size_t{64} *
                                                                                 1024);

  /// Sends a message, and waits until the stream has accepted it: a peer that reads slowly slows
  /// down the sender. Fails with WebSocketError::invalid_utf8 for text that is not UTF-8; with
  /// StreamError::eof after close() or the peer's close frame; with ETIMEDOUT after
  /// WebSocketOptions::write_timeout; with the errors of the stream; and with ECANCELED if the task
  /// was asked to stop: the message is sent nevertheless, unless that was before there was room for
  /// it. If further messages have been received, it does not wait: the answers to them are written
  /// together, in the next iteration of the loop at the latest. Throws std::bad_alloc; nothing is
  /// sent then.
  [[nodiscard]] Task<Result<>> send(WebSocketMessage message);
  [[nodiscard]] Task<Result<>> send_text(std::string_view text) {
    return send(WebSocketMessage(text));
  }
  [[nodiscard]] Task<Result<>> send_binary(Buffer bytes) {
    return send(WebSocketMessage(std::move(bytes)));
  }
  /// Sends a part of a message. The first part after the end of another message begins one; other
  /// messages must not be sent before its last part. Text is not checked. Fails like send().
  [[nodiscard]] Task<Result<>> send_part(Buffer part, bool is_last, bool is_text = false);

  /// Queues a message without waiting. Fails like send(), and with EAGAIN if
  /// WebSocketOptions::unsent_bytes_max or more bytes wait to be sent. Throws std::bad_alloc.
  [[nodiscard]] Result<> try_send(WebSocketMessage message);
  /// Bytes that the stream has not accepted yet.
  [[nodiscard]] std::size_t unsent_bytes() const noexcept;
  /// Waits until unsent_bytes() is 0. Fails like send().
  [[nodiscard]] Task<Result<>> flush();

  /// Sends a ping now. Fails like try_send(), and with WebSocketError::control_frame_too_large for
  /// more than 125 bytes.
  [[nodiscard]] Result<> ping(std::string_view payload = {});
  /// Measured with the last ping that was answered; no value before.
  [[nodiscard]] std::optional<Duration> round_trip_time() const noexcept;

  /// Performs the closing handshake: sends a close frame, unless that was done, waits for the
  /// peer's, discarding messages, and closes the connection. If another task receives, its
  /// receive() ends. Has no effect on a closed WebSocket, apart from the error. Fails with
  /// WebSocketError::bad_close_code and others for arguments that a close frame cannot have; with
  /// ETIMEDOUT after WebSocketOptions::close_timeout; with EBADF if it is closed; like receive()
  /// otherwise. After an error, and if the task was asked to stop, the connection is closed.
  [[nodiscard]] Task<Result<>> close(CloseCode code = CloseCode::normal,
                                     std::string_view reason = {});
  /// Closes the connection at once.
  void abort() noexcept;

  /// The code of the peer's close frame; CloseCode::abnormal if none has arrived.
  [[nodiscard]] CloseCode close_code() const noexcept;
  [[nodiscard]] const std::string& close_reason() const noexcept;

  /// Counts since the WebSocket was opened.
  [[nodiscard]] WebSocketStats stats() const noexcept;

 private:
  friend struct detail::websocket::Access;
  explicit WebSocket(std::shared_ptr<detail::websocket::Connection> connection) noexcept;

  std::shared_ptr<detail::websocket::Connection> connection_;
};

/// Accepts the WebSocket that a request asks for; the response is 101. Set further fields of the
/// response, for example cookies, before. If the opening handshake is malformed, the Origin is not
/// accepted, or the options cannot be satisfied, the response is an error (400, 403, 405, 426 or
/// 500), and the function fails with WebSocketError or ENOTSUP. Otherwise it fails like
/// Response::upgrade().
///
/// The WebSocket must not outlive the handler's server. The connection counts as served until the
/// handler ends. Request::client_address() stays known. When the server begins to shut down, the
/// WebSocket is closed with WebSocketOptions::shutdown_code, and receive() fails with
/// StreamError::eof: see Request::shutdown_token().
[[nodiscard]] Task<Result<WebSocket>> accept_websocket(Request& request, Response& response,
                                                       WebSocketOptions options = {});

/// Serves a WebSocket until it returns. Its WebSocket is then closed: with CloseCode::normal, or
/// with CloseCode::internal_error if it throws. The request is that of the opening handshake.
using WebSocketFunction = std::function<Task<>(WebSocket&, Request&)>;

/// Serves a WebSocket like WebSocketFunction, without the request, whose memory is freed before.
using SmallWebSocketFunction = std::function<Task<>(WebSocket&)>;

/// Returns a handler that accepts WebSockets and serves each with `function`.
///
/// Over HTTP/1.1, the handler ends after the opening handshake, and the connection goes on with the
/// function alone, without the memory that HTTP needs: middleware, for example a time limit, sees
/// the handshake only. The request still has its head and its parameters, and an empty body. What
/// the function throws goes to ServerOptions::on_exception, or else to ListenOptions::on_error, as
/// over HTTP/2, where the handler ends with the function.
[[nodiscard]] Handler serve_websocket(WebSocketFunction function, WebSocketOptions options = {});
[[nodiscard]] Handler serve_websocket(SmallWebSocketFunction function,
                                      WebSocketOptions options = {});

/// Callbacks that serve a WebSocket, which are invoked on the thread of the connection's loop. They
/// may call the functions of the WebSocket that do not wait. The request exists during on_open.
/// Exceptions close it with CloseCode::internal_error; over HTTP/1.1, those of on_message and
/// on_close are reported by ListenOptions::on_error, since the request has ended. An idle WebSocket
/// needs less memory with callbacks than with a function.
struct WebSocketCallbacks {
  std::function<void(WebSocket&, Request&)> on_open{};
  std::function<void(WebSocket&, WebSocketMessage)> on_message{};
  /// The WebSocket has ended. The error is StreamError::eof after a closing handshake.
  std::function<void(WebSocket&, const Error&)> on_close{};
};
[[nodiscard]] Handler serve_websocket(WebSocketCallbacks callbacks, WebSocketOptions options = {});

/// Opens a WebSocket of a client. The URL has the scheme "ws" or "wss" ("http" and "https" are
/// accepted, too); proxies, TLS and time limits are those of the client. Redirects are followed
/// like by Client::send(). `request` may have further fields, for example Authorization or Origin.
/// Fails like Client::send(), with WebSocketError if the server does not accept the WebSocket
/// (unexpected_status for any status but 101), and with ENOTSUP. Throws std::bad_alloc.
[[nodiscard]] Task<Result<WebSocket>> connect_websocket(Client& client, ClientRequest request,
                                                        WebSocketOptions options = {});
[[nodiscard]] Task<Result<WebSocket>> connect_websocket(Client& client, std::string url,
                                                        WebSocketOptions options = {});

}  // namespace tambour::http

#pragma GCC visibility pop
