// nats.c, the client of NATS, on a loop: requests, publications and subscriptions.
//
//   NatsClient nats(loop);
//   if (const auto connected = co_await nats.connect("nats://127.0.0.1:4222"); !connected) ...
//   const auto reply = co_await timeout(1s, nats.request("time", ""));
//
// Link with -lnats. Requires nats.c 3.4 or later, which ignores SIGPIPE in the whole program.
#pragma once

#include <nats/nats.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/adapters/nats_core.h>
#include <tambour/adapters/nats_events.h>
#include <tambour/adapters/nats_message.h>
#include <tambour/task/event.h>
#include <tambour/task/task.h>
#include <tambour/threads/worker_pool.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// Receives messages. nats.c keeps those that are not received yet, up to the limits of
/// natsSubscription_SetPendingLimits(), by default 65,536 messages and 64 MiB; further ones are
/// dropped, and next() fails once with NATS_SLOW_CONSUMER.
///
/// Lifetime: must not be moved or destroyed while a task waits in next(). Destroying it ends the
/// subscription. Thread: the loop's.
class NatsSubscription {
 public:
  NatsSubscription(NatsSubscription&&) noexcept = default;
  NatsSubscription& operator=(NatsSubscription&&) = delete;
  ~NatsSubscription() {
    if (core_ != nullptr) core_->remove(subscription_);
  }

  /// For functions of nats.c.
  [[nodiscard]] natsSubscription* get() const noexcept { return subscription_; }

  /// The next message. Fails with ECANCELED after NatsClient::close(), and with an error of
  /// nats_category() after nats.c has given up.
  Task<Result<NatsMessage>> next() {
    for (;;) {
      if (core_->is_closed()) co_return std::unexpected(system_error(ECANCELED));
      natsMsg* message = nullptr;
      const natsStatus status = natsSubscription_NextMsg(&message, subscription_, 0);
      if (status == NATS_OK) co_return NatsMessage(message);
      if (status != NATS_TIMEOUT) co_return std::unexpected(nats_error(status));
      arrived_->reset();
      const auto arrived = co_await arrived_->wait();
      if (!arrived) co_return std::unexpected(arrived.error());
    }
  }

 private:
  friend class NatsClient;
  NatsSubscription(std::shared_ptr<detail::NatsCore> core, natsSubscription* subscription)
      : core_(std::move(core)),
        arrived_(std::make_unique<TaskEvent>(core_->loop())),
        subscription_(subscription) {
    core_->add(subscription, *arrived_);
  }

  std::shared_ptr<detail::NatsCore> core_;
  std::unique_ptr<TaskEvent> arrived_;
  natsSubscription* subscription_;
};

/// A connection to NATS servers, and what is in flight on it.
///
/// Ownership: owns the connection. Lifetime: may be destroyed at any time; requests in flight and
/// waits for messages then fail with ECANCELED. Thread: the loop's.
/// Reconnection: by nats.c, as its options say. When the connection is lost, requests in flight
/// fail with ECONNRESET, and further ones and publications with ENOTCONN until there is another
/// one. Subscriptions continue.
/// Cancellation: a wait that is stopped or has timed out fails at once; a late reply is dropped.
class NatsClient {
 public:
  /// Throws std::bad_alloc.
  explicit NatsClient(EventLoop& loop)
      : loop_(loop), options_(std::make_shared<detail::NatsOptions>()) {}
  NatsClient(const NatsClient&) = delete;
  NatsClient& operator=(const NatsClient&) = delete;
  ~NatsClient() { close(); }

  /// For credentials, TLS, time limits and reconnection: natsOptions_SetReconnectWait() and others,
  /// before connect().
  [[nodiscard]] natsOptions* options() const noexcept { return options_->get(); }
  /// Null before connect(). For functions of nats.c that do not wait.
  [[nodiscard]] natsConnection* get() const noexcept {
    return core_ == nullptr ? nullptr : core_->connection();
  }
  [[nodiscard]] bool is_connected() const noexcept {
    return core_ != nullptr && core_->is_connected();
  }

  /// Connects to a server. nats.c connects with a blocking call, which runs on a worker thread.
  /// Closes a former connection. If the task is stopped, the connection is closed when that call
  /// returns.
  Task<Result<>> connect(std::string url) {
    close();
    auto core = std::make_shared<detail::NatsCore>(loop_);
    auto handles = std::make_shared<detail::NatsHandles>();
    auto handle = [weak = std::weak_ptr(core)](NatsEvents::Change change) {
      if (const auto changed = weak.lock()) changed->handle(change);
    };
    handles->events = NatsEvents::open(loop_, std::move(handle));
    core->use(handles);
    auto work = [handles, options = options_, url = std::move(url)] {
      return options->connect(*handles, url);
    };
    auto call = WorkerPool::shared().run(std::move(work), WhenStopped::abandon);
    const auto connected = co_await std::move(call);
    if (!connected) co_return std::unexpected(connected.error());
    natsStatus status = *connected;
    if (status == NATS_OK) status = core->open_inbox();
    if (status != NATS_OK) co_return std::unexpected(nats_error(status));
    const auto attached = co_await core->attached().wait();
    if (!attached) co_return std::unexpected(attached.error());
    core_ = std::move(core);
    co_return {};
  }
  /// Ends the connection after sending what the socket accepts.
  void close() noexcept {
    if (core_ != nullptr) std::exchange(core_, nullptr)->close();
  }

  /// Queues a message, which is sent when the iteration ends. Fails with ENOTCONN, or as
  /// natsConnection_Publish().
  Result<> publish(const std::string& subject, std::string_view data) {
    if (!is_connected()) return std::unexpected(system_error(ENOTCONN));
    return checked(
        natsConnection_Publish(get(), subject.c_str(), data.data(), static_cast<int>(data.size())));
  }
  /// Sends a request and waits for the first reply. Nothing reports that no service answers: give
  /// it a time limit.
  Task<Result<NatsMessage>> request(std::string subject, std::string data) {
    if (!is_connected()) co_return std::unexpected(system_error(ENOTCONN));
    detail::NatsRequest request(core_);
    auto reply = request.begin();
    const auto sent =
        checked(natsConnection_PublishRequest(get(), subject.c_str(), request.inbox().c_str(),
                                              data.data(), static_cast<int>(data.size())));
    if (!sent) co_return std::unexpected(sent.error());
    auto message = co_await std::move(reply);
    co_return std::move(message);
  }
  /// Waits until the server has processed what was published before.
  Task<Result<>> flush() {
    if (!is_connected()) co_return std::unexpected(system_error(ENOTCONN));
    detail::NatsRequest request(core_);
    auto reply = request.begin();
    const auto sent = publish(request.inbox(), {});
    if (!sent) co_return std::unexpected(sent.error());
    const auto echo = co_await std::move(reply);
    if (!echo) co_return std::unexpected(echo.error());
    co_return {};
  }
  /// Subscribes to a subject, which may have wildcards, as a member of the queue group `queue`
  /// unless that is empty.
  Result<NatsSubscription> subscribe(const std::string& subject, const std::string& queue = {}) {
    if (!is_connected()) return std::unexpected(system_error(ENOTCONN));
    natsSubscription* subscription = nullptr;
    const auto subscribed =
        checked(queue.empty() ? natsConnection_SubscribeSync(&subscription, get(), subject.c_str())
                              : natsConnection_QueueSubscribeSync(&subscription, get(),
                                                                  subject.c_str(), queue.c_str()));
    if (!subscribed) return std::unexpected(subscribed.error());
    return NatsSubscription(core_, subscription);
  }

 private:
  static Result<> checked(natsStatus status) {
    if (status != NATS_OK) return std::unexpected(nats_error(status));
    return {};
  }

  EventLoop& loop_;
  std::shared_ptr<detail::NatsOptions> options_;
  std::shared_ptr<detail::NatsCore> core_;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
