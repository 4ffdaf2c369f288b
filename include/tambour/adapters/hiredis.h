// hiredis, the client of Redis, on a loop: its asynchronous interface, and commands as awaitables.
//
//   RedisClient redis(loop);
//   if (const auto connected = co_await redis.connect("127.0.0.1", 6379); !connected) ...
//   const auto reply = co_await redis.command("INCR", "counter");
//
// Link with -lhiredis. Requires hiredis 0.14 or later, without its TLS. When a connection is lost,
// call connect() again. <tambour/adapters/hiredis_events.h> keeps hiredis from raising SIGPIPE.
#pragma once

#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#include <array>
#include <cerrno>
#include <concepts>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/adapters/call.h>
#include <tambour/adapters/hiredis_events.h>
#include <tambour/adapters/hiredis_request.h>
#include <tambour/adapters/hiredis_value.h>
#include <tambour/base/callback.h>
#include <tambour/loop/event_loop.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// A connection to a Redis server. Commands may be sent while others are in flight; replies arrive
/// in the order of the commands.
///
/// Ownership: owns the connection. Lifetime: may be destroyed at any time; commands in flight then
/// fail with ECANCELED. Thread: the loop's.
/// Cancellation: hiredis cannot withdraw a command. A wait that is stopped or has timed out fails
/// at once, and the reply is dropped when it arrives.
/// Errors: ENOTCONN without a connection, and ECONNRESET, EIO, EPROTO or ENOMEM for commands in
/// flight when it is lost; error_text() then has hiredis' text. An error that the server replies is
/// a RedisValue with is_error().
class RedisClient {
 public:
  /// What a command returns: a `Result<RedisValue>` when it is awaited.
  using Reply = Call<RedisValue>::Wait;
  /// Callbacks: for messages of a subscription, and for the end of the connection.
  using MessageFunction = Callback<void(const RedisValue&)>;
  using ClosedFunction = Callback<void(const Error&)>;

  /// Not connected.
  explicit RedisClient(EventLoop& loop) noexcept : loop_(loop) {}
  RedisClient(const RedisClient&) = delete;
  RedisClient& operator=(const RedisClient&) = delete;
  ~RedisClient() { close(); }

  /// Connects to a numeric address, because hiredis resolves names with a blocking call: resolve
  /// them with dns::Resolver. Closes a former connection.
  Call<void>::Wait connect(const char* address, int port) {
    close();
    return begin(redisAsyncConnect(address, port));
  }
  Call<void>::Wait connect_unix(const char* path) {
    close();
    return begin(redisAsyncConnectUnix(path));
  }
  /// Ends the connection.
  void close() noexcept {
    if (context_ == nullptr) return;
    redisAsyncContext* const context = std::exchange(context_, nullptr);
    context->data = nullptr;
    is_connected_ = false;
    on_closed_ = nullptr;
    redisAsyncFree(context);
    if (connecting_ != nullptr)
      std::exchange(connecting_, nullptr)->finish_later(std::unexpected(system_error(ECANCELED)));
  }
  [[nodiscard]] bool is_connected() const noexcept { return is_connected_; }
  [[nodiscard]] const std::string& error_text() const noexcept { return error_text_; }

  /// Queues a command, which is sent when the current callback ends, and returns the wait for its
  /// reply. Words may contain any bytes.
  Reply command(std::span<const std::string_view> words) {
    if (!is_connected_) return Call<RedisValue>::failed(system_error(ENOTCONN));
    const std::string_view text = request_.format(words);
    auto [call, reply] = Call<RedisValue>::begin();
    if (!send(text, &replied, call)) call->finish(std::unexpected(system_error(ENOTCONN)));
    return std::move(reply);
  }
  template <std::convertible_to<std::string_view>... Words>
    requires(sizeof...(Words) > 0)
  Reply command(const Words&... words) {
    const std::array<std::string_view, sizeof...(Words)> all{std::string_view(words)...};
    return command(std::span(all));
  }

  /// Sends SUBSCRIBE or PSUBSCRIBE, which is the first word. `on_message` receives the replies and
  /// messages as the server sends them. `on_closed` is invoked once when the connection was lost,
  /// with the error that commands in flight would have, but not after close(); no message follows,
  /// and connect() may be called there. Out of memory for a message, the connection is closed and
  /// the error is ENOMEM. Both may destroy the client, and must not throw. Another call replaces
  /// both. Send other commands through another RedisClient: the server accepts none on this
  /// connection any more. Fails with ENOTCONN; the functions are then dropped.
  [[nodiscard]] Result<> subscribe(std::span<const std::string_view> words,
                                   MessageFunction on_message, ClosedFunction on_closed = {}) {
    if (!is_connected_) return std::unexpected(system_error(ENOTCONN));
    auto function = std::make_shared<MessageFunction>(std::move(on_message));
    const std::string_view text = request_.format(words);
    if (!send(text, &received, nullptr)) return std::unexpected(system_error(ENOTCONN));
    on_message_ = std::move(function);
    on_closed_ = std::move(on_closed);
    return {};
  }

 private:
  static RedisClient* of(const redisAsyncContext* context) {
    return static_cast<RedisClient*>(context->data);
  }
  static Error error_of(const redisAsyncContext* context) noexcept {
    if (context->data == nullptr) return system_error(ECANCELED);
    switch (context->err) {
      case REDIS_ERR_IO:
        return system_error(EIO);
      case REDIS_ERR_PROTOCOL:
        return system_error(EPROTO);
      case REDIS_ERR_OOM:
        return system_error(ENOMEM);
      default:
        return system_error(ECONNRESET);
    }
  }

  /// Exceptions must not leave functions that hiredis calls.
  static Result<RedisValue> copy_of(const void* reply) noexcept {
    try {
      return RedisValue(*static_cast<const redisReply*>(reply));
    } catch (const std::bad_alloc&) {
      return std::unexpected(system_error(ENOMEM));
    }
  }
  void note_error(const redisAsyncContext* context) noexcept {
    try {
      error_text_ = context->errstr;
    } catch (const std::bad_alloc&) {
      error_text_.clear();
    }
  }

  Call<void>::Wait begin(redisAsyncContext* opened) {
    if (opened == nullptr) return Call<void>::failed(system_error(ENOMEM));
    std::unique_ptr<redisAsyncContext, decltype(&redisAsyncFree)> context(opened, &redisAsyncFree);
    if (context->err != 0) {
      note_error(context.get());
      const bool is_memory = context->err == REDIS_ERR_OOM;
      return Call<void>::failed(system_error(is_memory ? ENOMEM : ECONNREFUSED));
    }
    RedisEvents::attach(loop_, *context);
    auto [call, wait] = Call<void>::begin();
    context_ = context.release();  // From here on nothing throws.
    context_->data = this;
    redisAsyncSetConnectCallback(context_, &connected);
    redisAsyncSetDisconnectCallback(context_, &disconnected);
    connecting_ = call;
    return std::move(wait);
  }

  bool send(std::string_view text, redisCallbackFn* function, void* data) {
    const int queued =
        redisAsyncFormattedCommand(context_, function, data, text.data(), text.size());
    request_.shrink();
    return queued == REDIS_OK;
  }

  static void connected(const redisAsyncContext* context, int status) {
    RedisClient* const self = of(context);
    if (self == nullptr) return;
    Call<void>* const call = std::exchange(self->connecting_, nullptr);
    self->is_connected_ = status == REDIS_OK;
    // hiredis 0.14 uses the context after this callback, so the task must not free it here.
    if (status == REDIS_OK) return call->finish_later({});
    self->note_error(context);
    self->context_ = nullptr;  // hiredis frees it.
    call->finish_later(std::unexpected(system_error(ECONNREFUSED)));
  }
  static void disconnected(const redisAsyncContext* context, int /*status*/) {
    RedisClient* const self = of(context);
    if (self == nullptr) return;
    self->note_error(context);
    self->context_ = nullptr;
    self->is_connected_ = false;
    // The function may connect again and destroy the client. The context is not used any more.
    ClosedFunction on_closed = std::exchange(self->on_closed_, nullptr);
    if (on_closed) on_closed(error_of(context));
  }
  static void replied(redisAsyncContext* context, void* reply, void* data) {
    auto* const call = static_cast<Call<RedisValue>*>(data);
    if (reply != nullptr) return call->finish(copy_of(reply));
    if (RedisClient* const self = of(context)) {
      // The first command that fails: its task may connect again.
      self->is_connected_ = false;
      self->note_error(context);
    }
    call->finish_later(std::unexpected(error_of(context)));
  }
  static void received(redisAsyncContext* context, void* reply, void* /*data*/) {
    RedisClient* const self = of(context);
    // Without a reply, the connection was lost: disconnected() follows.
    if (self == nullptr || reply == nullptr) return;
    const Result<RedisValue> message = copy_of(reply);
    if (!message) {
      ClosedFunction on_closed = std::exchange(self->on_closed_, nullptr);
      self->close();
      if (on_closed) on_closed(message.error());
      return;
    }
    // The function may replace itself and destroy the client.
    const std::shared_ptr<MessageFunction> function = self->on_message_;
    if (*function) (*function)(*message);
  }

  EventLoop& loop_;
  redisAsyncContext* context_ = nullptr;
  Call<void>* connecting_ = nullptr;
  bool is_connected_ = false;
  std::string error_text_;
  std::shared_ptr<MessageFunction> on_message_;
  ClosedFunction on_closed_;
  detail::RedisRequest request_;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
