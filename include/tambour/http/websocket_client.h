// A client that keeps a WebSocket to one server, and connects again when it ends.
//
//   std::string last_id;
//   http::WebSocketClient news(client, [&] {
//     return http::ClientRequest("wss://example.org/news?after=" + last_id);
//   });
//   for (;;) {
//     Result<http::WebSocketMessage> message = co_await news.receive();
//     if (!message) co_return;  // The client has given up.
//     last_id = show(*message);
//   }
// The most common mistake: expecting that no message is lost between two connections. The protocol
// has no ids of messages; the program sends the id of its last message with each request, as above,
// or in WebSocketClientOptions::on_open, and the server continues after it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/http/client.h>
#include <tambour/http/status.h>
#include <tambour/http/websocket.h>
#include <tambour/http/websocket_error.h>
#include <tambour/net/retry_policy.h>
#include <tambour/task/select.h>
#include <tambour/task/task.h>

namespace tambour::http::detail::websocket {
class ClientState;
}  // namespace tambour::http::detail::websocket

#pragma GCC visibility push(default)

namespace tambour::http {

/// Why a WebSocketClient has no connection.
struct WebSocketFailure {
  Error error;  ///< Of receive() or connect_websocket(); StreamError::eof if the peer has closed.
  /// Of the peer's close frame; CloseCode::abnormal if none has arrived.
  CloseCode close_code = CloseCode::abnormal;
  /// Of the response to a failed opening handshake, if one has arrived.
  std::optional<Status> status{};
  unsigned attempts = 0;  ///< Failed ones since the last connection.
  /// The time until the next attempt; no value if the client gives up.
  std::optional<Duration> retry_delay{};
};

/// How a WebSocketClient connects, and connects again. Not an aggregate, for the reason that
/// WebSocketOptions names. Assign the members.
struct WebSocketClientOptions {
  WebSocketClientOptions() noexcept;

  WebSocketOptions websocket{};
  /// The delays before the client connects again. `attempts_max` counts failed attempts without a
  /// connection in between.
  RetryPolicy retry{.attempts_max = RetryPolicy::unlimited,
                    .delay = std::chrono::milliseconds(500),
                    .delay_max = std::chrono::seconds(30)};
  /// A connection that was open for at least this time resets the delay to `retry.delay`.
  /// Therefore the delay keeps growing if a server closes each connection at once.
  Duration stable_after = std::chrono::seconds(10);
  /// The least delay after CloseCode::try_again_later, with which an overloaded server closes.
  /// The jitter of `retry` applies.
  Duration overload_delay = std::chrono::seconds(10);

  /// Whether the client connects again after a close frame of the peer. Empty: is_temporary(code).
  /// A server may use its own codes, 3000 to 4999, or the reason.
  Callback<bool(CloseCode code, std::string_view reason)> reconnects_after{};
  /// Invoked with each new WebSocket, before receive() and send() use it: may send what the server
  /// expects first, with WebSocket::try_send().
  Callback<void(WebSocket& socket)> on_open{};
  /// Invoked when a connection has ended or an attempt has failed, for logs and metrics. Not for
  /// cancellation and WebSocketClient::close().
  Callback<void(const WebSocketFailure& failure)> on_failure{};
};

/// True for the codes after which another connection may succeed: going_away, no_status, abnormal,
/// internal_error, service_restart, try_again_later and bad_gateway. Not for normal, for the errors
/// of the protocol, policy_violation, and the codes of programs.
[[nodiscard]] bool is_temporary(CloseCode code) noexcept;

/// Receives and sends messages over one WebSocket at a time. Connects again when it ends without a
/// close frame, with one that is_temporary(), or by a time limit; when connecting fails with a
/// temporary error; and when the server answers 429, 500, 502, 503 or 504. Gives up after: other
/// codes and statuses, violations of the protocol and of limits, an invalid certificate, and a
/// malformed response.
///
/// Ownership: owns the WebSocket. The connection counts for
/// ClientOptions::connections_per_origin_max.
/// Lifetime: the http::Client must exist longer. May be moved while no task waits; tasks that wait
/// must be destroyed or cancelled before it is destroyed. Callbacks must not destroy or move it.
/// Thread: must be used on the client's thread. One task at a time receives; others may send.
class WebSocketClient {
 public:
  /// Does not connect before receive() is called. Throws std::bad_alloc.
  WebSocketClient(Client& client, std::string url, WebSocketClientOptions options = {});
  /// `request` makes the request of each attempt: with the id of the last message, or with a new
  /// token. An exception that it throws is thrown by receive().
  WebSocketClient(Client& client, Callback<ClientRequest()> request,
                  WebSocketClientOptions options = {});
  WebSocketClient(WebSocketClient&& other) noexcept;
  WebSocketClient& operator=(WebSocketClient&& other) noexcept;
  /// Closes the connection without the closing handshake.
  ~WebSocketClient();

  /// Waits for the next message, and connects when that is necessary: a program that only sends
  /// must also receive, in another task. Fails when the client gives up: with StreamError::eof if
  /// the peer has closed (see close_code()), and otherwise like connect_websocket() and
  /// WebSocket::receive(), with the last error after RetryPolicy::attempts_max; a further call
  /// connects again then. Fails with EBADF after close(). Throws std::bad_alloc.
  ///
  /// Cancellation: fails with ECANCELED if the task was asked to stop. An open connection stays
  /// open, attempts go on, and no message is lost. Cancel safe: may be an argument of select().
  [[nodiscard]] CancelSafeTask<Result<WebSocketMessage>> receive();

  /// Waits for a connection, and sends like WebSocket::send(). A message that was sent before the
  /// connection ended may not have arrived: only an answer of the peer tells.
  [[nodiscard]] Task<Result<>> send(WebSocketMessage message);
  [[nodiscard]] Task<Result<>> send_text(std::string_view text) {
    return send(WebSocketMessage(text));
  }
  /// Like WebSocket::try_send(). Fails with ENOTCONN if there is no connection.
  [[nodiscard]] Result<> try_send(WebSocketMessage message);

  /// Closes like WebSocket::close(), if there is a connection, and does not connect any more.
  /// receive() and send() that wait fail.
  [[nodiscard]] Task<Result<>> close(CloseCode code = CloseCode::normal,
                                     std::string_view reason = {});

  /// The open WebSocket, or null. Valid until receive() has noticed its end.
  [[nodiscard]] WebSocket* socket() noexcept;
  /// Of the last WebSocket that has ended; CloseCode::abnormal before the first end.
  [[nodiscard]] CloseCode close_code() const noexcept;
  /// How many WebSockets have been opened.
  [[nodiscard]] std::uint64_t connections() const noexcept;

 private:
  tambour::detail::OwnedPointer<detail::websocket::ClientState> state_;
};

}  // namespace tambour::http

#pragma GCC visibility pop
