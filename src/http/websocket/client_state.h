// A WebSocketClient: the WebSocket of the moment, and when the next one is opened.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <tambour/base/clock.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/websocket_client.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "client/retry_delays.h"
#include "http/websocket/shared_options.h"

namespace tambour::http::detail::websocket {

class ClientState {
 public:
  ClientState(Client& client, Callback<ClientRequest()> request, WebSocketClientOptions options);

  ClientState(const ClientState&) = delete;
  ClientState& operator=(const ClientState&) = delete;

  // As the functions of WebSocketClient.

  [[nodiscard]] Task<Result<WebSocketMessage>> receive();
  [[nodiscard]] Task<Result<>> send(WebSocketMessage message);
  [[nodiscard]] Result<> try_send(WebSocketMessage message);
  [[nodiscard]] Task<Result<>> close(CloseCode code, std::string reason);
  [[nodiscard]] WebSocket* socket() noexcept { return socket_.is_open() ? &socket_ : nullptr; }
  [[nodiscard]] CloseCode close_code() const noexcept { return close_code_; }
  [[nodiscard]] std::uint64_t connections() const noexcept { return connections_; }

 private:
  /// What needs the loop, which the first task knows.
  struct Background {
    explicit Background(EventLoop& client_loop)
        : loop(client_loop),
          is_connected(client_loop),
          has_ended(client_loop),
          scope(client_loop) {}
    EventLoop& loop;
    TaskEvent is_connected;  ///< Set while there is a WebSocket.
    TaskEvent has_ended;     ///< Set when the attempts have ended, until receive() has seen that.
    TaskScope scope;         ///< The attempts, and the closing handshake of the last WebSocket.
  };

  /// Starts attempts, unless they go on. A receive() that is cancelled does not end them.
  void start_opening();
  [[nodiscard]] Task<> open_in_background();
  /// Makes attempts until there is a WebSocket, or the client gives up.
  [[nodiscard]] Task<Result<>> open();
  [[nodiscard]] Task<Result<>> wait_for_attempt();
  void begin(WebSocket socket);
  /// The WebSocket has ended. Returns whether the client connects again.
  [[nodiscard]] bool end(const Error& error);
  /// An attempt has failed. Returns whether there is another one.
  [[nodiscard]] bool fail_attempt(const Error& error, std::optional<Status> status);
  [[nodiscard]] Duration schedule(bool is_overloaded) noexcept;
  void report(const WebSocketFailure& failure);
  void finish_closing();

  Client& client_;
  Callback<ClientRequest()> make_request_;
  WebSocketClientOptions options_;
  OptionsPointer websocket_options_;
  tambour::detail::client::RetryDelays delays_;
  unsigned failed_attempts_ = 0;  ///< Since the last connection.
  std::uint64_t connections_ = 0;
  TimePoint opened_at_{};
  std::optional<TimePoint> attempt_at_;  ///< Of the next attempt; no value: at once.
  CloseCode close_code_ = CloseCode::abnormal;
  bool is_opening_ = false;    ///< Attempts go on.
  Result<> opened_{};          ///< The result of the attempts, for receive().
  std::exception_ptr thrown_;  ///< By the attempts, for receive().
  bool is_closed_ = false;
  std::stop_source closed_;  ///< Ends attempts and waits when the program closes the client.
  WebSocket socket_;
  WebSocket closing_;  ///< The last WebSocket, during the rest of its closing handshake.
  std::optional<Background> background_;
};

}  // namespace tambour::http::detail::websocket
