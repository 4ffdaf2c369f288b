// StreamClient: connects, waits with back-off, and connects again until it is stopped.
#include <tambour/net/stream_client.h>

#include <cerrno>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/loop/timer.h>
#include <tambour/task/scope.h>

#include "base/check.h"
#include "base/failure.h"
#include "client/retry_delays.h"
#include "loop/core.h"
#include "net/connection/owner.h"

namespace tambour {

namespace detail::net {
namespace {

std::shared_ptr<const ConnectionCallbacks> share(ConnectionCallbacks callbacks,
                                                 const std::source_location& created_at) {
  callbacks.created_at = created_at;
  return std::make_shared<const ConnectionCallbacks>(std::move(callbacks));
}

}  // namespace

/// A callback may destroy the client, and this with it. Callbacks are invoked by timers, as the
/// last action of a function, never by the task that connects.
class StreamClientState final : private ConnectionOwner {
 public:
  StreamClientState(EventLoop& loop, Callback<Task<ConnectResult>()> connect,
                    ConnectionCallbacks callbacks, StreamClientOptions options,
                    std::source_location created_at)
      : core_(loop::core_of(loop)),
        loop_(loop),
        connect_(std::move(connect)),
        callbacks_(share(std::move(callbacks), created_at)),
        options_(std::move(options)),
        delays_(options_.retry),
        retry_(
            loop, [this] { begin_attempt(); }, created_at),
        attempt_ended_(
            loop, [this] { end_attempt(); }, created_at),
        created_at_(created_at) {
    core_.attach();
  }
  StreamClientState(const StreamClientState&) = delete;
  StreamClientState& operator=(const StreamClientState&) = delete;
  ~StreamClientState() {
    drop_all();
    // It may be the callback that destroys the client.
    core_.defer_delete(options_.on_failure.release());
    core_.detach();
  }

  /// Returns the state. Aborts with a message if the client was moved from, if its loop has been
  /// destroyed, or on another thread than the loop's.
  static StreamClientState& of(const OwnedPointer<StreamClientState>& state,
                               const char* function) noexcept {
    if (state == nullptr) [[unlikely]]
      base::fail_check("StreamClient::%s() was called on a client that was moved from", function);
    if (state->core_.closed()) [[unlikely]]
      state->misused(function, "after its event loop was destroyed",
                     "destroy the client before its EventLoop");
    if (!state->core_.in_group_thread()) [[unlikely]]
      state->misused(function, "on another thread than that of its event loop",
                     "post() a callback that calls it to the loop");
    return *state;
  }

  static void destroy(OwnedPointer<StreamClientState>& state) noexcept {
    if (state == nullptr) return;
    of(state, "~StreamClient");
    state.reset();
  }

  void start() {
    if (started_) return;
    started_ = true;
    attempts_ = 0;
    delays_.reset();
    Connection* const former = front();
    if (former == nullptr) return begin_attempt();
    // An open connection, which stop() has left open, belongs to the client again. A closed one
    // must have ended before the next attempt.
    restarts_ = !former->is_open();
  }

  void stop() noexcept {
    started_ = false;
    restarts_ = false;
    retry_.stop();
    attempt_ended_.stop();
    attempt_.reset();
    outcome_.reset();
    thrown_ = nullptr;
  }

  void close() noexcept {
    stop();
    if (Connection* const open = front()) open->close();
  }

  [[nodiscard]] bool is_started() const noexcept { return started_; }
  [[nodiscard]] Connection* connection() const noexcept {
    Connection* const open = front();
    return open != nullptr && open->is_open() ? open : nullptr;
  }

 private:
  [[noreturn]] void misused(const char* function, const char* mode,
                            const char* fix) const noexcept {
    base::fail_check("StreamClient::%s() was called %s on the client created in %s:%u; %s",
                     function, mode, created_at_.file_name(), unsigned(created_at_.line()), fix);
  }

  void begin_attempt() {
    outcome_.reset();
    try {
      attempt_.emplace(loop_);
      attempt_->spawn(attempt());
    } catch (const std::bad_alloc&) {
      outcome_ = std::unexpected<ConnectError>(system_error(ENOMEM));
      attempt_ended_.start(Duration::zero());
    }
  }

  Task<> attempt() {
    try {
      outcome_ = co_await connect_();
    } catch (const std::bad_alloc&) {
      outcome_ = std::unexpected<ConnectError>(system_error(ENOMEM));
    } catch (...) {
      thrown_ = std::current_exception();
    }
    attempt_ended_.start(Duration::zero());
  }

  void end_attempt() {
    attempt_.reset();
    if (thrown_ != nullptr) {
      started_ = false;
      std::rethrow_exception(std::exchange(thrown_, nullptr));
    }
    ConnectResult outcome = *std::exchange(outcome_, std::nullopt);
    if (outcome && !open(*outcome)) outcome = std::unexpected<ConnectError>(system_error(ENOMEM));
    if (!outcome) return fail(outcome.error());
  }

  /// Returns false if memory runs out before there is a connection. Otherwise on_connection may
  /// have destroyed this.
  [[nodiscard]] bool open(SocketStream& stream) {
    const unsigned attempts = std::exchange(attempts_, 0);
    connected_ns_ = core_.now_ns();
    try {
      ConnectionOwner::start(std::move(stream), callbacks_);
    } catch (const std::bad_alloc&) {
      // If the connection has taken the stream, on_connection has thrown.
      if (!stream.is_open()) throw;
      attempts_ = attempts;
      return false;
    }
    return true;
  }

  void fail(const ConnectError& error) {
    ConnectFailure failure{.error = error, .attempts = ++attempts_};
    if (attempts_ < options_.retry.attempts_max ||
        options_.retry.attempts_max == RetryPolicy::unlimited) {
      failure.retry_delay = retry_later();
    } else {
      started_ = false;
    }
    if (options_.on_failure) options_.on_failure(failure);
  }

  Duration retry_later() noexcept {
    const Duration delay = delays_.next(core_.backend().random());
    retry_.start(delay);
    return delay;
  }

  // Connections that the client makes are like those of Connection::start().
  [[nodiscard]] bool accepts() const noexcept override { return false; }

  void connection_removed() noexcept override {
    const bool moved = std::exchange(moves_away_, false);
    if (!started_) return;
    if (std::exchange(restarts_, false)) return retry_.start(Duration::zero());
    if (moved || !options_.reconnect) {
      started_ = false;
      return;
    }
    if (core_.clock_ns() - connected_ns_ >= options_.stable_after.count()) delays_.reset();
    retry_later();
  }

  ConnectionOwner* for_loop(EventLoop& loop) noexcept override {
    if (&loop == &loop_) return this;
    moves_away_ = true;
    return nullptr;
  }

  loop::Core& core_;  ///< Outlives the loop, unlike `loop_`.
  EventLoop& loop_;
  Callback<Task<ConnectResult>()> connect_;
  std::shared_ptr<const ConnectionCallbacks> callbacks_;
  StreamClientOptions options_;
  client::RetryDelays delays_;
  bool started_ = false;
  bool restarts_ = false;    ///< start() was called before on_close of a closed connection.
  bool moves_away_ = false;  ///< The connection is moving to another loop.
  unsigned attempts_ = 0;
  std::int64_t connected_ns_ = 0;
  std::optional<ConnectResult> outcome_;  ///< The result of an attempt that has ended.
  std::exception_ptr thrown_;
  Timer retry_;
  Timer attempt_ended_;
  std::source_location created_at_;
  /// Last member, because its task uses the others.
  std::optional<TaskScope> attempt_;
};

}  // namespace detail::net

StreamClient::StreamClient(EventLoop& loop, std::string to, ConnectionCallbacks callbacks,
                           StreamClientOptions options, std::source_location created_at)
    // Braces: the lambda is created before the options are moved.
    : StreamClient{
          loop,
          [to = std::move(to), option = options.connect] { return tambour::connect(to, option); },
          std::move(callbacks), std::move(options), created_at} {}

StreamClient::StreamClient(EventLoop& loop, std::vector<Endpoint> to, ConnectionCallbacks callbacks,
                           StreamClientOptions options, std::source_location created_at)
    // Braces: the lambda is created before the options are moved.
    : StreamClient{
          loop,
          [to = std::move(to), option = options.connect] { return tambour::connect(to, option); },
          std::move(callbacks), std::move(options), created_at} {}

StreamClient::StreamClient(EventLoop& loop, Callback<Task<ConnectResult>()> connect,
                           ConnectionCallbacks callbacks, StreamClientOptions options,
                           std::source_location created_at) {
  detail::loop::core_of(loop).check_thread();
  state_ = std::make_unique<detail::net::StreamClientState>(
      loop, std::move(connect), std::move(callbacks), std::move(options), created_at);
}

StreamClient::StreamClient(StreamClient&& other) noexcept = default;

StreamClient& StreamClient::operator=(StreamClient&& other) noexcept {
  if (this != &other) detail::net::StreamClientState::destroy(state_);
  state_ = std::move(other.state_);
  return *this;
}

StreamClient::~StreamClient() { detail::net::StreamClientState::destroy(state_); }

void StreamClient::start() { detail::net::StreamClientState::of(state_, "start").start(); }
void StreamClient::stop() noexcept { detail::net::StreamClientState::of(state_, "stop").stop(); }
void StreamClient::close() noexcept { detail::net::StreamClientState::of(state_, "close").close(); }
bool StreamClient::is_started() const noexcept {
  return detail::net::StreamClientState::of(state_, "is_started").is_started();
}
Connection* StreamClient::connection() const noexcept {
  return detail::net::StreamClientState::of(state_, "connection").connection();
}

}  // namespace tambour
