// A client that keeps one connection to a server, and connects again when it fails or ends: like
// TcpClient and Connector of muduo and evpp.
//
// For a connection that a task uses, call connect(); see <tambour/net/connector.h>.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/net/connection.h>
#include <tambour/net/connector.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/retry_policy.h>
#include <tambour/task/task.h>

namespace tambour::detail::net {
class StreamClientState;
}  // namespace tambour::detail::net

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// A failed attempt of a StreamClient.
struct ConnectFailure {
  ConnectError error;     ///< The error of connect(), and the step that failed.
  unsigned attempts = 0;  ///< The attempts since the last connection, this one included.
  /// The time until the next attempt; empty if the client has stopped because of
  /// RetryPolicy::attempts_max.
  std::optional<Duration> retry_delay{};
};

/// How a StreamClient connects, and connects again.
struct StreamClientOptions {
  /// The options of each attempt: TLS, a proxy and the others. An attempt may try several
  /// addresses, until `connect.timeout`.
  ConnectOptions connect{};

  /// The attempts without a connection, after which the client stops, and the delays: after the
  /// first failed attempt, and before a lost connection is made again. All errors are retried.
  RetryPolicy retry{.attempts_max = RetryPolicy::unlimited,
                    .delay = std::chrono::milliseconds(500),
                    .delay_max = std::chrono::seconds(30)};
  /// A connection that was open for at least this time resets the delay to `retry.delay`.
  /// Therefore the delay keeps growing if a server closes each connection at once.
  Duration stable_after = std::chrono::seconds(10);

  /// Whether the client connects again when its connection has ended, for any reason. If false, it
  /// stops then.
  bool reconnect = true;

  /// An attempt has failed. The callback may stop or destroy the client.
  Callback<void(const ConnectFailure&)> on_failure{};
};

/// Connects, and serves the connection with callbacks.
///
///   StreamClient client(loop, "example.org:80", {.on_connection = greet, .on_message = read});
///   client.start();
///
/// All errors are retried, because a name may be registered and a permission granted later; a
/// client that should give up has a limit, or calls stop() in on_failure. ConnectionCallbacks are
/// those of each connection in turn: on_close reports the end of one, and the client connects again
/// after that if it has not been stopped.
///
/// Ownership: the client owns its connection. Destroying the client cancels an attempt and closes
/// the connection without invoking callbacks. A connection that is moved to another loop leaves the
/// client, which stops then.
/// Lifetime: may be moved. Callbacks may stop, start, move or destroy the client. The loop must
/// outlive it.
/// Thread: must be used on the loop's thread. Other threads use a ConnectionHandle.
/// Checks: a violation of these rules aborts with a message if the client can detect it.
class StreamClient {
 public:
  /// Connects to any text that connect() accepts, such as "example.org:80"; do not pass untrusted
  /// input. Does not connect before start(). Throws std::bad_alloc.
  StreamClient(EventLoop& loop, std::string to, ConnectionCallbacks callbacks,
               StreamClientOptions options = {},
               std::source_location created_at = std::source_location::current());
  /// Connects to a host name or a numeric address, never to a Unix socket.
  template <std::integral Port>
  StreamClient(EventLoop& loop, std::string host, Port port, ConnectionCallbacks callbacks,
               StreamClientOptions options = {},
               std::source_location created_at = std::source_location::current())
      // Braces: the lambda is created before the options are moved.
      : StreamClient{loop,
                     [host = std::move(host), port, option = options.connect] {
                       return tambour::connect(host, port, option);
                     },
                     std::move(callbacks), std::move(options), created_at} {}
  /// Connects to the first of these addresses that answers.
  StreamClient(EventLoop& loop, std::vector<Endpoint> to, ConnectionCallbacks callbacks,
               StreamClientOptions options = {},
               std::source_location created_at = std::source_location::current());
  /// Each attempt awaits the task that `connect` returns, for example one that speaks a protocol
  /// before the connection begins; StreamClientOptions::connect is not used. An exception that it
  /// throws, other than std::bad_alloc, stops the client and propagates out of the loop's run().
  /// `connect` must not stop or destroy the client.
  StreamClient(EventLoop& loop, Callback<Task<ConnectResult>()> connect,
               ConnectionCallbacks callbacks, StreamClientOptions options = {},
               std::source_location created_at = std::source_location::current());
  StreamClient(StreamClient&& other) noexcept;
  StreamClient& operator=(StreamClient&& other) noexcept;
  ~StreamClient();

  /// Starts the first attempt. No effect if the client is started. A started client connects,
  /// waits for the next attempt, or has a connection; it keeps the loop's run() from returning.
  void start();

  /// Cancels an attempt, and does not connect any more. An open connection stays open. start() may
  /// be called again.
  void stop() noexcept;

  /// Stops, and closes the connection if it is open; on_close is then invoked in a later iteration.
  void close() noexcept;

  /// True after start(), until the client stops.
  [[nodiscard]] bool is_started() const noexcept;

  /// The open connection, or null. Valid until its on_close returns.
  [[nodiscard]] Connection* connection() const noexcept;

 private:
  detail::OwnedPointer<detail::net::StreamClientState> state_;
};

}  // namespace tambour

#pragma GCC visibility pop
