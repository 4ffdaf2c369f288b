// The events of a connection of nats.c on a loop, for programs that call its functions themselves;
// <tambour/adapters/nats.h> has requests and subscriptions as awaitables.
#pragma once

#include <fcntl.h>
#include <nats/nats.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/base/unique_fd.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// Watches the socket of one natsConnection, as the files of nats/adapters/ do for other loops.
///
/// nats.c connects, and connects again, on threads of its own, and asks from any of them to watch
/// its socket. What is published inside callbacks is sent together, when the iteration ends.
///
/// Ownership: shared, because threads of nats.c use it. Call close() before the loop is destroyed,
/// and destroy the connection before the last reference. Thread: the loop's, except where noted.
class NatsEvents : public std::enable_shared_from_this<NatsEvents> {
 public:
  /// What has happened, on the loop's thread.
  enum class Change : std::uint8_t {
    received,      ///< Subscriptions may have messages.
    connected,     ///< Also after nats.c has connected again.
    disconnected,  ///< nats.c connects again, unless its options forbid it.
  };
  /// The callback.
  using ChangeFunction = Callback<void(Change)>;

  /// `on_change` may call close(), and must not throw. Throws std::bad_alloc.
  static std::shared_ptr<NatsEvents> open(EventLoop& loop, ChangeFunction on_change = {}) {
    return std::shared_ptr<NatsEvents>(new NatsEvents(loop, std::move(on_change)));
  }
  NatsEvents(const NatsEvents&) = delete;
  NatsEvents& operator=(const NatsEvents&) = delete;
  ~NatsEvents() = default;

  /// Sets the event loop in the options, before natsConnection_Connect().
  natsStatus configure(natsOptions* options) {
    const natsStatus status =
        natsOptions_SetEventLoop(options, this, &attach, &set_read, &set_write, &detach);
    return status == NATS_OK ? natsOptions_SetSendAsap(options, true) : status;
  }

  /// Whether nats.c has a connection. While it has none, most functions of nats.c that send may
  /// block until its thread has connected or failed.
  [[nodiscard]] bool is_connected() const noexcept { return watcher_.has_value(); }

  /// Sends what the connection has buffered as far as the socket accepts it, and ends all events.
  void close() noexcept {
    // Without bytes to send, nats.c would take the connection for lost.
    if (watcher_ && wants_to_write()) natsConnection_ProcessWriteEvent(connection_);
    watcher_.reset();
    socket_.reset();
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
    wanted_ = {};
  }

 private:
  /// What nats.c wants, set on any of its threads.
  struct Wanted {
    natsConnection* connection = nullptr;
    /// A duplicate: a thread of nats.c may close the socket while the loop watches it.
    UniqueFd new_socket;
    bool reads = false;
    bool writes = false;
  };

  NatsEvents(EventLoop& loop, ChangeFunction on_change)
      : on_change_(std::move(on_change)), loop_(&loop) {}

  static NatsEvents& of(void* self) noexcept { return *static_cast<NatsEvents*>(self); }
  // nats.c calls these with its connection locked: they only note what it wants.
  static natsStatus attach(void** data, void* self, natsConnection* connection, natsSock socket) {
    *data = self;
    UniqueFd duplicate(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
    if (!duplicate.is_open()) return NATS_SYS_ERROR;
    return of(self).change([&](Wanted& wanted) {
      wanted.connection = connection;
      wanted.new_socket = std::move(duplicate);
      wanted.reads = true;
      wanted.writes = false;
    });
  }
  static natsStatus set_read(void* self, bool is_wanted) {
    return of(self).change([=](Wanted& wanted) { wanted.reads = is_wanted; });
  }
  static natsStatus set_write(void* self, bool is_wanted) {
    return of(self).change([=](Wanted& wanted) { wanted.writes = is_wanted; });
  }
  static natsStatus detach(void* self) { return set_read(self, false); }

  /// On any thread.
  template <class F>
  natsStatus change(F make) noexcept {
    const std::lock_guard lock(mutex_);
    if (loop_ == nullptr) return NATS_OK;
    make(wanted_);
    if (is_posted_) return NATS_OK;
    try {
      loop_->post([self = shared_from_this()] { self->act(Events::none); });
    } catch (const std::bad_alloc&) {
      return NATS_NO_MEMORY;
    }
    is_posted_ = true;
    return NATS_OK;
  }

  void act(Events events) {
    const auto self = shared_from_this();
    // Meanwhile nothing needs to be posted.
    if (!synchronize(true)) return;
    if (watcher_ && (has(events, Events::read) || has(events, Events::error))) {
      natsConnection_ProcessReadEvent(connection_);
      report(Change::received);
    }
    if (watcher_ && wants_to_write()) natsConnection_ProcessWriteEvent(connection_);
    if (!synchronize(false)) return;
    if ((std::exchange(changes_, changes_ & ~lost) & lost) != 0) report(Change::disconnected);
    if ((std::exchange(changes_, 0) & found) != 0) report(Change::connected);
  }
  bool wants_to_write() {
    const std::lock_guard lock(mutex_);
    return wanted_.writes;
  }
  void report(Change change) {
    if (on_change_) on_change_(change);
  }

  /// Watches what nats.c wants. False after close().
  bool synchronize(bool is_acting) {
    const std::lock_guard lock(mutex_);
    if (loop_ == nullptr) return false;
    is_posted_ = false;
    if (wanted_.new_socket.is_open() || !wanted_.reads) {
      if (watcher_) changes_ |= lost;
      watcher_.reset();
      socket_ = std::move(wanted_.new_socket);
      if (!wanted_.reads) socket_.reset();
      connection_ = wanted_.connection;
    }
    if (socket_.is_open() && !watcher_) {
      watcher_.emplace(*loop_, socket_.get(), Events::read, [this](Events ready) { act(ready); });
      static_cast<void>(watcher_->start());
      changes_ |= found;
    }
    const Events interest = wanted_.writes ? Events::read | Events::write : Events::read;
    if (watcher_ && !is_acting && watcher_->interest() != interest) watcher_->set(interest);
    is_posted_ = is_acting;
    return true;
  }

  static constexpr int lost = 1;
  static constexpr int found = 2;

  ChangeFunction on_change_;
  natsConnection* connection_ = nullptr;
  UniqueFd socket_;
  std::optional<FdWatcher> watcher_;
  int changes_ = 0;  ///< That are not reported yet.

  std::mutex mutex_;
  EventLoop* loop_;         ///< Null after close(). This and the rest are guarded by the mutex.
  bool is_posted_ = false;  ///< act() will run, or is running.
  Wanted wanted_;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
