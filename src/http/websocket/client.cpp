// WebSocketClient: opens a WebSocket, receives and sends, and opens the next one.
#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <utility>

#include <tambour/http/websocket_client.h>
#include <tambour/net/stream_error.h>
#include <tambour/task/cancellation.h>
#include <tambour/task/sleep.h>

#include "base/clock.h"
#include "base/failure.h"
#include "http/client/temporary.h"
#include "http/websocket/client_state.h"
#include "http/websocket/opening.h"
#include "loop/core.h"

namespace tambour::http::detail::websocket {
namespace {

/// Performs the rest of a closing handshake that the peer has begun.
Task<> finish(WebSocket& socket) {
  try {
    static_cast<void>(co_await socket.close());
  } catch (const std::bad_alloc&) {
    socket.abort();
  }
}

bool can_try_again(const Error& error, const std::optional<Status>& status) noexcept {
  if (error == WebSocketError::unexpected_status) return status && client::is_temporary(*status);
  return client::is_temporary(error);
}

std::uint64_t random_of(EventLoop& loop) noexcept {
  return tambour::detail::loop::core_of(loop).backend().random();
}

}  // namespace

ClientState::ClientState(Client& client, Callback<ClientRequest()> request,
                         WebSocketClientOptions options)
    : client_(client),
      make_request_(std::move(request)),
      options_(std::move(options)),
      websocket_options_(std::make_shared<const SharedOptions>(std::move(options_.websocket))),
      delays_(options_.retry) {}

Task<Result<WebSocketMessage>> ClientState::receive() {
  const TaskContext& context = co_await this_task;
  if (!background_) background_.emplace(*context.loop);
  for (;;) {
    if (is_closed_) co_return tambour::detail::base::failure(EBADF);
    if (!background_->is_connected.is_set()) {
      start_opening();
      const Result<> ended = co_await background_->has_ended.wait();
      if (!ended) co_return std::unexpected(ended.error());
      background_->has_ended.reset();
      if (thrown_ != nullptr) std::rethrow_exception(std::exchange(thrown_, nullptr));
      if (!opened_ && !is_closed_) co_return std::unexpected(opened_.error());
      continue;
    }
    Result<WebSocketMessage> message = co_await socket_.receive();
    if (message) co_return message;
    if (message.error() == system_error(ECANCELED) && socket_.is_open()) co_return message;
    if (!is_closed_ && !end(message.error())) co_return message;
  }
}

void ClientState::start_opening() {
  if (is_opening_ || background_->has_ended.is_set()) return;
  Task<> attempts = open_in_background();
  is_opening_ = true;  // The attempts may end before spawn() returns.
  try {
    background_->scope.spawn(std::move(attempts));
  } catch (...) {
    is_opening_ = false;
    throw;
  }
}

Task<> ClientState::open_in_background() {
  try {
    opened_ = co_await with_stop_token(closed_.get_token(), open());
  } catch (...) {
    thrown_ = std::current_exception();
  }
  is_opening_ = false;
  background_->has_ended.set();
}

Task<Result<>> ClientState::open() {
  for (;;) {
    const Result<> waited = co_await wait_for_attempt();
    if (!waited) co_return waited;
    attempt_at_.reset();
    std::optional<Status> status;
    ClientRequest request = make_request_();
    Result<WebSocket> opened =
        co_await websocket::open(client_, std::move(request), websocket_options_, &status);
    if (opened) {
      if (!is_closed_) begin(std::move(*opened));
      co_return {};
    }
    const Error error = opened.error();
    if (error == system_error(ECANCELED)) co_return std::unexpected(error);
    if (!fail_attempt(error, status)) co_return std::unexpected(error);
  }
}

Task<Result<>> ClientState::wait_for_attempt() {
  const TaskContext& context = co_await this_task;
  if (!attempt_at_) co_return {};
  const Duration left = *attempt_at_ - context.loop->now();
  if (left <= Duration::zero()) co_return {};
  co_return co_await sleep_for(left);
}

void ClientState::begin(WebSocket socket) {
  socket_ = std::move(socket);
  opened_at_ = socket_.loop().now();
  failed_attempts_ = 0;
  ++connections_;
  background_->is_connected.set();
  if (options_.on_open) options_.on_open(socket_);
}

bool ClientState::end(const Error& error) {
  close_code_ = socket_.close_code();
  const bool was_closed = error == StreamError::eof;
  WebSocketFailure failure{.error = error, .close_code = close_code_};
  bool goes_on = client::is_temporary(error);
  if (was_closed)
    goes_on = options_.reconnects_after
                  ? options_.reconnects_after(close_code_, socket_.close_reason())
                  : is_temporary(close_code_);
  if (goes_on) {
    if (background_->loop.now() - opened_at_ >= options_.stable_after) delays_.reset();
    failure.retry_delay = schedule(close_code_ == CloseCode::try_again_later);
  } else {
    delays_.reset();
  }
  background_->is_connected.reset();
  background_->has_ended.reset();
  finish_closing();
  report(failure);
  return goes_on;
}

bool ClientState::fail_attempt(const Error& error, std::optional<Status> status) {
  WebSocketFailure failure{.error = error, .status = status, .attempts = ++failed_attempts_};
  const bool is_last = failed_attempts_ >= std::max(options_.retry.attempts_max, 1U);
  const bool goes_on = !is_last && can_try_again(error, status);
  if (goes_on) {
    failure.retry_delay = schedule(false);
  } else {
    failed_attempts_ = 0;
    delays_.reset();
  }
  report(failure);
  return goes_on;
}

Duration ClientState::schedule(bool is_overloaded) noexcept {
  EventLoop& loop = background_->loop;
  Duration delay = delays_.next(random_of(loop));
  if (is_overloaded) {
    RetryPolicy policy = options_.retry;
    policy.delay = policy.delay_max = options_.overload_delay;
    delay = std::max(delay, tambour::detail::client::RetryDelays(policy).next(random_of(loop)));
  }
  attempt_at_ = tambour::detail::base::saturating_add(loop.now(), delay);
  return delay;
}

void ClientState::report(const WebSocketFailure& failure) {
  if (options_.on_failure) options_.on_failure(failure);
}

/// At most one WebSocket is closing: a server that closes each at once, and keeps the connection
/// open, does not make them grow.
void ClientState::finish_closing() {
  closing_ = std::move(socket_);
  socket_ = WebSocket();
  if (closing_.is_open()) background_->scope.spawn(finish(closing_));
}

Task<Result<>> ClientState::send(WebSocketMessage message) {
  const TaskContext& context = co_await this_task;
  if (!background_) background_.emplace(*context.loop);
  while (!background_->is_connected.is_set()) {
    if (is_closed_) co_return tambour::detail::base::failure(EBADF);
    const Result<> waited =
        co_await with_stop_token(closed_.get_token(), background_->is_connected.wait());
    if (!waited && !is_closed_) co_return waited;
  }
  co_return co_await socket_.send(std::move(message));
}

Result<> ClientState::try_send(WebSocketMessage message) {
  if (is_closed_) return tambour::detail::base::failure(EBADF);
  if (!socket_.is_open()) return tambour::detail::base::failure(ENOTCONN);
  return socket_.try_send(std::move(message));
}

Task<Result<>> ClientState::close(CloseCode code, std::string reason) {
  is_closed_ = true;
  closed_.request_stop();
  if (!socket_.is_open()) co_return {};
  const Result<> closed = co_await socket_.close(code, reason);
  close_code_ = socket_.close_code();
  co_return closed;
}

}  // namespace tambour::http::detail::websocket

namespace tambour::http {

using detail::websocket::ClientState;

WebSocketClientOptions::WebSocketClientOptions() noexcept = default;

bool is_temporary(CloseCode code) noexcept {
  switch (code) {
    case CloseCode::going_away:
    case CloseCode::no_status:
    case CloseCode::abnormal:
    case CloseCode::internal_error:
    case CloseCode::service_restart:
    case CloseCode::try_again_later:
    case CloseCode::bad_gateway:
      return true;
    default:
      return false;
  }
}

WebSocketClient::WebSocketClient(Client& client, std::string url, WebSocketClientOptions options)
    : WebSocketClient(
          client, [url = std::move(url)] { return ClientRequest(url); }, std::move(options)) {}
WebSocketClient::WebSocketClient(Client& client, Callback<ClientRequest()> request,
                                 WebSocketClientOptions options)
    : state_(std::make_unique<ClientState>(client, std::move(request), std::move(options))) {}
WebSocketClient::WebSocketClient(WebSocketClient&& other) noexcept = default;
WebSocketClient& WebSocketClient::operator=(WebSocketClient&& other) noexcept = default;
WebSocketClient::~WebSocketClient() = default;

CancelSafeTask<Result<WebSocketMessage>> WebSocketClient::receive() {
  return cancel_safe(state_->receive());
}
Task<Result<>> WebSocketClient::send(WebSocketMessage message) {
  return state_->send(std::move(message));
}
Result<> WebSocketClient::try_send(WebSocketMessage message) {
  return state_->try_send(std::move(message));
}
Task<Result<>> WebSocketClient::close(CloseCode code, std::string_view reason) {
  return state_->close(code, std::string(reason));
}
WebSocket* WebSocketClient::socket() noexcept { return state_->socket(); }
CloseCode WebSocketClient::close_code() const noexcept { return state_->close_code(); }
std::uint64_t WebSocketClient::connections() const noexcept { return state_->connections(); }

}  // namespace tambour::http
