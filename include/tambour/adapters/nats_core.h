// What NatsClient shares with its subscriptions and with the tasks that wait for replies.
#pragma once

#include <nats/nats.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <tambour/adapters/call.h>
#include <tambour/adapters/nats_events.h>
#include <tambour/adapters/nats_message.h>
#include <tambour/task/event.h>
#include <tambour/threads/worker_pool.h>

#pragma GCC visibility push(default)

namespace tambour::adapters::detail {

/// The objects of nats.c. They may be destroyed on a worker thread.
struct NatsHandles {
  NatsHandles() = default;
  NatsHandles(const NatsHandles&) = delete;
  NatsHandles& operator=(const NatsHandles&) = delete;
  ~NatsHandles() {
    natsConnection_Destroy(connection);  // Before the inbox, which would send something.
    natsSubscription_Destroy(inbox);
  }

  std::shared_ptr<NatsEvents> events;
  natsConnection* connection = nullptr;
  natsSubscription* inbox = nullptr;  ///< Of all replies.
};

/// The options of a client, which connections in the making share.
class NatsOptions {
 public:
  NatsOptions() {
    if (natsOptions_Create(&options_) != NATS_OK) throw std::bad_alloc();
  }
  NatsOptions(const NatsOptions&) = delete;
  NatsOptions& operator=(const NatsOptions&) = delete;
  ~NatsOptions() { natsOptions_Destroy(options_); }

  [[nodiscard]] natsOptions* get() const noexcept { return options_; }
  /// Blocks, on a worker thread: nats.c copies the options only when it begins to connect.
  natsStatus connect(NatsHandles& handles, const std::string& url) {
    const std::lock_guard lock(mutex_);
    natsStatus status = natsOptions_SetURL(options_, url.c_str());
    // The report that a request has no responder does not name the request.
    if (status == NATS_OK) status = natsOptions_DisableNoResponders(options_, true);
    if (status == NATS_OK) status = handles.events->configure(options_);
    return status == NATS_OK ? natsConnection_Connect(&handles.connection, options_) : status;
  }

 private:
  std::mutex mutex_;
  natsOptions* options_ = nullptr;
};

/// Destroys an object, which may block, on a worker thread, or here if there is none.
template <class T>
void destroy_elsewhere(std::shared_ptr<T> object) noexcept {
  try {
    WorkerPool::shared().submit([object = std::move(object)]() mutable { object.reset(); });
  } catch (const std::exception&) {
    // The closure has been destroyed.
  }
}

/// One connection of a NatsClient. Thread: the loop's.
class NatsCore {
 public:
  explicit NatsCore(EventLoop& loop) : loop_(loop), attached_(loop) {}
  NatsCore(const NatsCore&) = delete;
  NatsCore& operator=(const NatsCore&) = delete;
  ~NatsCore() { close(); }

  [[nodiscard]] EventLoop& loop() const noexcept { return loop_; }
  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }
  [[nodiscard]] bool is_connected() const noexcept {
    return handles_ != nullptr && handles_->events->is_connected();
  }
  [[nodiscard]] TaskEvent& attached() noexcept { return attached_; }
  [[nodiscard]] natsConnection* connection() const noexcept {
    return handles_ == nullptr ? nullptr : handles_->connection;
  }

  void use(std::shared_ptr<NatsHandles> handles) { handles_ = std::move(handles); }
  natsStatus open_inbox() {
    natsInbox* name = nullptr;
    const natsStatus status = natsInbox_Create(&name);
    if (status != NATS_OK) return status;
    prefix_ = std::string(name) + ".";
    natsInbox_Destroy(name);
    is_open_ = true;
    return natsConnection_SubscribeSync(&handles_->inbox, connection(), (prefix_ + "*").c_str());
  }
  [[nodiscard]] std::string inbox_of(std::uint64_t id) const {
    return prefix_ + std::to_string(id);
  }

  /// The event is set when messages have arrived.
  void add(natsSubscription* subscription, TaskEvent& arrived) {
    arrivals_.emplace(subscription, &arrived);
  }
  void remove(natsSubscription* subscription) {
    arrivals_.erase(subscription);
    std::shared_ptr<natsSubscription> last(subscription, &natsSubscription_Destroy);
    // nats.c may be connecting, and blocks other calls meanwhile.
    if (!is_connected()) destroy_elsewhere(std::move(last));
  }

  void handle(NatsEvents::Change change) {
    if (change == NatsEvents::Change::received) {
      for (const auto& [subscription, arrived] : arrivals_) {
        if (queued(subscription) > 0) arrived->set();
      }
      return receive_replies();
    }
    if (change == NatsEvents::Change::connected) return attached_.set();
    fail_all(ECONNRESET);
    wake_all();  // nats.c may have given up.
  }
  void close() noexcept {
    if (std::exchange(is_closed_, true)) return;
    attached_.set();
    fail_all(ECANCELED);
    wake_all();
    if (handles_ == nullptr) return;
    const bool is_quick = is_open_ && is_connected();
    handles_->events->close();
    auto last = std::move(handles_);
    // With bytes to send or without a connection, nats.c may block.
    if (!is_quick || natsConnection_Buffered(last->connection) > 0)
      destroy_elsewhere(std::move(last));
  }

 private:
  friend class NatsRequest;

  static std::uint64_t queued(natsSubscription* subscription) {
    std::uint64_t count = 0;
    return natsSubscription_QueuedMsgs(subscription, &count) == NATS_OK ? count : 0;
  }
  void wake_all() noexcept {
    for (const auto& [subscription, arrived] : arrivals_) arrived->set();
  }
  void receive_replies() {
    // A task that is resumed here may close the connection.
    while (!is_closed_ && queued(handles_->inbox) > 0) {
      natsMsg* next = nullptr;
      if (natsSubscription_NextMsg(&next, handles_->inbox, 0) != NATS_OK) return;
      NatsMessage message(next);
      const std::string_view digits = message.subject().substr(prefix_.size());
      std::uint64_t id = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), id);
      if (auto request = requests_.extract(id)) request.mapped()->finish(std::move(message));
    }
  }
  void fail_all(int error) {
    for (const auto& [id, call] : std::exchange(requests_, {}))
      call->finish_later(std::unexpected(system_error(error)));
  }

  EventLoop& loop_;
  TaskEvent attached_;
  std::shared_ptr<NatsHandles> handles_;
  bool is_open_ = false;  ///< No worker thread uses the handles.
  bool is_closed_ = false;
  std::string prefix_;  ///< Of the subjects of replies.
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, Call<NatsMessage>*> requests_;
  std::map<natsSubscription*, TaskEvent*> arrivals_;
};

/// A request in flight, as long as its task waits.
class NatsRequest {
 public:
  explicit NatsRequest(std::shared_ptr<NatsCore> core)
      : core_(std::move(core)), id_(++core_->last_id_) {}
  NatsRequest(const NatsRequest&) = delete;
  NatsRequest& operator=(const NatsRequest&) = delete;
  ~NatsRequest() {
    const auto request = core_->requests_.extract(id_);
    if (request && request.mapped() != nullptr)
      request.mapped()->finish_later(std::unexpected(system_error(ECANCELED)));
  }

  [[nodiscard]] std::string inbox() const { return core_->inbox_of(id_); }
  Call<NatsMessage>::Wait begin() {
    Call<NatsMessage>*& request = core_->requests_[id_];  // Before the call: it may throw.
    auto [call, wait] = Call<NatsMessage>::begin();
    request = call;
    return std::move(wait);
  }

 private:
  std::shared_ptr<NatsCore> core_;
  std::uint64_t id_;
};

}  // namespace tambour::adapters::detail

#pragma GCC visibility pop
