// accept_websocket() and serve_websocket(): WebSockets of servers.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tambour/http/websocket.h>
#include <tambour/net/ip_address.h>
#include <tambour/net/stream_error.h>

#include "base/failure.h"
#include "http/exchange/detached_request.h"
#include "http/exchange/exchange.h"
#include "http/websocket/access.h"
#include "http/websocket/connection.h"
#include "http/websocket/shared_options.h"
#include "http_message/ws/error.h"
#include "http_message/ws/handshake.h"

namespace tambour::http {
namespace {

using detail::websocket::Connection;
using detail::websocket::OptionsPointer;
using detail::websocket::SharedOptions;
using RequestPointer = std::unique_ptr<detail::DetachedRequest>;

std::vector<std::string_view> views_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

/// What the server answers, besides the key.
struct Choice {
  std::string subprotocol{};
  std::optional<detail::ws::AcceptedDeflate> deflate{};
};

Result<> check_request(const Request& request, const detail::ws::HandshakeRequest& handshake,
                       const WebSocketOptions& options) {
  if (options.compression && !detail::websocket::has_zlib())
    return tambour::detail::base::failure(ENOTSUP);
  if (options.accepts_any_origin) return {};
  return detail::ws::check_origin(handshake, request.head().authority, views_of(options.origins));
}

/// RFC 6455, section 4.2, and RFC 8441 for HTTP/2.
Result<detail::ws::HandshakeRequest> read_handshake(const RequestHead& head) {
  if (head.protocol.empty()) return detail::ws::read_request(head);
  return detail::ws::read_connect_request(head, head.protocol);
}

Result<Choice> answer(const Request& request, Response& response, const WebSocketOptions& options) {
  const auto handshake = read_handshake(request.head());
  if (!handshake) return std::unexpected(handshake.error());
  if (const Result<> checked = check_request(request, *handshake, options); !checked)
    return std::unexpected(checked.error());
  Choice choice;
  choice.subprotocol =
      detail::ws::choose_subprotocol(*handshake, views_of(options.subprotocols)).value_or("");
  if (options.compression)
    choice.deflate = detail::ws::accept_deflate(
        handshake->extensions, detail::websocket::deflate_options(*options.compression));
  const Result<> added =
      detail::ws::add_response_fields(response.headers(), *handshake, choice.subprotocol,
                                      choice.deflate ? choice.deflate->field : "");
  if (!added) return std::unexpected(added.error());
  return choice;
}

void reject(Response& response, const Error& error) {
  detail::ws::add_rejection_fields(response.headers(), error);
  static_cast<void>(response.send_error(detail::ws::handshake_status_for(error), error.message()));
}

Task<Result<WebSocket>> accept(Request& request, Response& response, OptionsPointer options) {
  Result<Choice> choice = answer(request, response, *options);
  if (!choice) {
    reject(response, choice.error());
    co_return std::unexpected(choice.error());
  }
  const std::stop_token shutdown = request.shutdown_token();
  const detail::Exchange* const exchange = detail::Exchange::of(request);
  ShutdownHooks* const hooks = exchange != nullptr ? exchange->shutdown_hooks() : nullptr;
  // Afterwards, the connection of the request is unknown.
  const Result<IpAddress> client = request.client_address();
  if (client) request.set_client_address(*client);
  Result<ByteStream> stream = co_await response.upgrade();
  if (!stream) co_return std::unexpected(stream.error());
  std::optional<detail::ws::DeflateAgreement> agreement;
  if (choice->deflate) agreement = choice->deflate->agreement;
  auto connection =
      std::make_shared<Connection>(std::move(*stream), detail::ws::Role::server, std::move(options),
                                   std::move(choice->subprotocol), agreement);
  if (hooks != nullptr && !shutdown.stop_requested()) {
    connection->close_on(*hooks);
  } else {
    connection->close_on(shutdown);
  }
  co_return detail::websocket::Access::make(std::move(connection));
}

/// Serves a WebSocket after its opening handshake.
///
/// Over HTTP/1.1, the task of run() replaces that of the connection, and gets null, or the request
/// if it needs one. Over HTTP/2, the handler awaits it.
class Service {
 public:
  Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  virtual ~Service() = default;

  [[nodiscard]] virtual bool needs_request() const noexcept = 0;
  /// `self` is this object. `request` is null or refers to `detached`, if that is not null.
  [[nodiscard]] virtual Task<> run(std::shared_ptr<const Service> self, WebSocket socket,
                                   Request* request, RequestPointer detached) const = 0;
};
using ServicePointer = std::shared_ptr<const Service>;

/// Closes the WebSocket, and throws what the program has thrown.
Task<> end(WebSocket& socket, std::exception_ptr thrown, RequestPointer request = nullptr) {
  const CloseCode code = thrown == nullptr ? CloseCode::normal : CloseCode::internal_error;
  if (socket.is_open()) static_cast<void>(co_await socket.close(code));
  if (thrown == nullptr || (request != nullptr && request->report(thrown))) co_return;
  std::rethrow_exception(std::move(thrown));
}

Task<> end_failed(WebSocket socket, std::exception_ptr thrown, RequestPointer request) {
  co_await end(socket, std::move(thrown), std::move(request));
}

class FunctionService final : public Service {
 public:
  explicit FunctionService(WebSocketFunction function) : function_(std::move(function)) {}
  bool needs_request() const noexcept override { return true; }
  Task<> run(ServicePointer self, WebSocket socket, Request* request,
             RequestPointer detached) const override {
    return serve(std::move(self), function_, std::move(socket), request, std::move(detached));
  }

 private:
  static Task<> serve(ServicePointer /*owner*/, const WebSocketFunction& function, WebSocket socket,
                      Request* request, RequestPointer detached) {
    std::exception_ptr thrown;
    try {
      co_await function(socket, *request);
    } catch (...) {
      thrown = std::current_exception();
    }
    co_await end(socket, std::move(thrown), std::move(detached));
  }

  WebSocketFunction function_;
};

class SmallFunctionService final : public Service {
 public:
  explicit SmallFunctionService(SmallWebSocketFunction function) : function_(std::move(function)) {}
  bool needs_request() const noexcept override { return false; }
  Task<> run(ServicePointer self, WebSocket socket, Request* /*request*/,
             RequestPointer /*detached*/) const override {
    return serve(std::move(self), function_, std::move(socket));
  }

 private:
  static Task<> serve(ServicePointer /*owner*/, const SmallWebSocketFunction& function,
                      WebSocket socket) {
    std::exception_ptr thrown;
    try {
      co_await function(socket);
    } catch (...) {
      thrown = std::current_exception();
    }
    co_await end(socket, std::move(thrown));
  }

  SmallWebSocketFunction function_;
};

class CallbackService final : public Service {
 public:
  explicit CallbackService(WebSocketCallbacks callbacks) : callbacks_(std::move(callbacks)) {}
  bool needs_request() const noexcept override { return static_cast<bool>(callbacks_.on_open); }
  Task<> run(ServicePointer self, WebSocket socket, Request* request,
             RequestPointer detached) const override {
    try {
      if (callbacks_.on_open) callbacks_.on_open(socket, *request);
    } catch (...) {
      return end_failed(std::move(socket), std::current_exception(), std::move(detached));
    }
    auto service = std::static_pointer_cast<const CallbackService>(std::move(self));
    return detail::websocket::Access::connection_of(socket)->stream().is_socket()
               ? serve<true>(std::move(service), std::move(socket))
               : serve<false>(std::move(service), std::move(socket));
  }

 private:
  enum class Next : std::uint8_t { read, pause, end };

  /// Invokes the callbacks for what has been received. In no coroutine, so that an idle task has no
  /// memory for a message.
  static Next deliver(const WebSocketCallbacks& callbacks, Connection& connection,
                      WebSocket& socket) {
    while (detail::websocket::Access::connection_of(socket) == &connection) {
      if (connection.is_budget_exhausted()) return Next::pause;
      Result<WebSocketMessage> message;
      if (!connection.next_message(message)) {
        connection.begin_wait();
        return Next::read;
      }
      if (!message) {
        if (callbacks.on_close) callbacks.on_close(socket, message.error());
        return Next::end;
      }
      if (callbacks.on_message) callbacks.on_message(socket, std::move(*message));
    }
    return Next::end;
  }
  /// Its frame is a third of the memory of an idle WebSocket, so it has few variables, and one
  /// coroutine for each kind of stream.
  template <bool is_socket>
  static Task<> serve(std::shared_ptr<const CallbackService> service, WebSocket socket) {
    const std::shared_ptr<Connection> connection =
        detail::websocket::Access::shared_connection_of(socket);
    std::exception_ptr thrown;
    try {
      const Connection::Receiving receiving(*connection);
      Next next = deliver(service->callbacks_, *connection, socket);
      while (next != Next::end) {
        if (next == Next::pause) {
          co_await connection->pause();
        } else if constexpr (is_socket) {
          connection->note_received(co_await connection->stream().socket().read(
              connection->input(), Connection::read_bytes_max));
        } else {
          connection->note_received(co_await connection->stream().stream().read(
              connection->input(), Connection::read_bytes_max));
        }
        next = deliver(service->callbacks_, *connection, socket);
      }
    } catch (...) {
      thrown = std::current_exception();
    }
    co_await end(socket, std::move(thrown));
  }

  WebSocketCallbacks callbacks_;
};

/// Leaves the connection to the task of the service.
void leave(detail::Exchange& exchange, ServicePointer service, WebSocket socket) {
  const bool needs_request = service->needs_request();
  auto start = [service = std::move(service),
                socket = std::move(socket)](RequestPointer detached) mutable -> Task<> {
    Request* const request = detached.get();
    const Service& running = *service;
    return running.run(std::move(service), std::move(socket), request, std::move(detached));
  };
  exchange.continue_with({.needs_request = needs_request, .start = std::move(start)});
}

Task<> serve(Request& request, Response& response, ServicePointer service, OptionsPointer options) {
  Result<WebSocket> accepted = co_await accept(request, response, std::move(options));
  if (!accepted) co_return;
  detail::Exchange* const exchange = detail::Exchange::of(request);
  if (exchange == nullptr || !exchange->can_continue()) {
    Task<> task = service->run(service, std::move(*accepted), &request, nullptr);
    co_await std::move(task);
    co_return;
  }
  leave(*exchange, std::move(service), std::move(*accepted));
}

Handler handler_of(ServicePointer service, WebSocketOptions options) {
  return [service = std::move(service),
          shared = std::make_shared<const SharedOptions>(std::move(options))](Request& request,
                                                                              Response& response) {
    return serve(request, response, service, shared);
  };
}

}  // namespace

Task<Result<WebSocket>> accept_websocket(Request& request, Response& response,
                                         WebSocketOptions options) {
  return accept(request, response, std::make_shared<const SharedOptions>(std::move(options)));
}

Handler serve_websocket(WebSocketFunction function, WebSocketOptions options) {
  return handler_of(std::make_shared<const FunctionService>(std::move(function)),
                    std::move(options));
}

Handler serve_websocket(SmallWebSocketFunction function, WebSocketOptions options) {
  return handler_of(std::make_shared<const SmallFunctionService>(std::move(function)),
                    std::move(options));
}

Handler serve_websocket(WebSocketCallbacks callbacks, WebSocketOptions options) {
  return handler_of(std::make_shared<const CallbackService>(std::move(callbacks)),
                    std::move(options));
}

}  // namespace tambour::http
