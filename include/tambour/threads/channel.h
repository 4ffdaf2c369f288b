// A bounded queue between threads: between the tasks of any loops, and plain threads.
#pragma once

#include <cerrno>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/shared_wait.h>
#include <tambour/task/channel.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// A bounded FIFO queue with any number of senders and receivers, each of which is a task of any
/// loop or a plain thread. For tasks of one loop, TaskChannel is faster.
///
///   ConcurrentChannel<Job> jobs(64);
///   std::jthread reader([&] {
///     while (auto job = read_job()) jobs.blocking_send(std::move(*job));
///   });
///   ...
///   // In tasks of several loops:
///   while (auto job = co_await jobs.receive()) co_await run(*job);
///
/// Capacity: at least 1, or the constructor aborts with a message. The memory for all items is
/// allocated by the constructor, so sending and receiving allocate nothing, except for the first
/// wait in each loop.
/// Order: items are received in the order of sending. Tasks and threads that wait are served in the
/// order of waiting: an item that is reserved for a task that has not resumed yet cannot be taken
/// by another one.
/// Cancellation: no item is lost. A send() that fails has not sent its item, and destroys it; one
/// whose item was accepted succeeds, even if its task is then asked to stop. A receive() that fails
/// has taken no item: an item reserved for it goes to the next receiver.
/// Thread: all functions, but not the destructor, may be called by several threads at the same
/// time. A task resumes on the thread of its own loop, which keeps running while the task waits.
/// Lifetime: if the channel is destroyed while tasks or threads wait, their waits fail with
/// ECANCELED, and the items in the channel are destroyed. No thread may call a function meanwhile.
/// An item may be destroyed by any of the threads. Its move operations are called while the channel
/// is locked, and must not use the channel.
/// Fork: in a child after fork(2), all functions fail with ECANCELED.
template <class T>
class ConcurrentChannel {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>,
                "an item must be movable without exceptions: put it into a std::unique_ptr");

 public:
  /// Throws std::bad_alloc.
  explicit ConcurrentChannel(std::size_t capacity,
                             std::source_location created_at = std::source_location::current())
      : state_(std::make_shared<State>(capacity, created_at)) {}
  ConcurrentChannel(const ConcurrentChannel&) = delete;
  ConcurrentChannel& operator=(const ConcurrentChannel&) = delete;
  ~ConcurrentChannel() {
    const auto lock = state_->lock();
    state_->end(ECANCELED);
  }

  class Send;
  class Receive;

  /// Waits until the item is in the channel. Fails with EPIPE if the channel is closed, and with
  /// ECANCELED. Throws std::bad_alloc when it has to wait. With GCC 12, an item that is an
  /// aggregate must have a name: `co_await channel.send(std::move(item))`; see docs/tasks.md.
  [[nodiscard]] Send send(T item) { return Send(state_, std::move(item)); }

  /// Waits for an item. Fails with EPIPE if the channel is closed and empty, and with ECANCELED.
  /// Throws std::bad_alloc when it has to wait.
  [[nodiscard]] Receive receive() noexcept { return Receive(state_); }

  /// Sends without waiting. Fails with EAGAIN if the channel is full, and with EPIPE if it is
  /// closed. `item` is moved from only on success.
  Result<> try_send(T&& item) noexcept {
    const auto lock = state_->lock();
    return result_of(state_->put(item));
  }
  Result<> try_send(const T& item)
    requires std::copy_constructible<T>
  {
    return try_send(T(item));
  }
  /// Receives without waiting. Fails with EAGAIN if the channel is empty, and with EPIPE if it is
  /// also closed and keeps no item for a task that has not resumed yet.
  Result<T> try_receive() noexcept {
    const auto lock = state_->lock();
    if (std::optional<T> item = state_->take()) return *std::move(item);
    return std::unexpected(system_error(state_->error_of_receive()));
  }

  /// For plain threads: blocks until the item is in the channel, for at most `limit`. Fails with
  /// ETIMEDOUT, and like send(). `item` is moved from only on success. On a thread that runs a
  /// loop, which would be blocked, it aborts with a message if it has to wait.
  Result<> blocking_send(T&& item, Duration limit = Duration::max()) noexcept;
  Result<> blocking_send(const T& item, Duration limit = Duration::max())
    requires std::copy_constructible<T>
  {
    return blocking_send(T(item), limit);
  }
  /// For plain threads: blocks until there is an item, for at most `limit`. Fails with ETIMEDOUT,
  /// and like receive(). Aborts like blocking_send().
  Result<T> blocking_receive(Duration limit = Duration::max()) noexcept;

  /// Ends the stream of items: further and waiting sends fail with EPIPE. The items in the channel
  /// can still be received; after the last one, receiving fails with EPIPE. While an item is kept
  /// for a task that has not resumed yet, the others wait: the task may leave the item to them. May
  /// be called more than once.
  void close() noexcept {
    const auto lock = state_->lock();
    state_->end(EPIPE);
  }
  /// True after close().
  [[nodiscard]] bool is_closed() const noexcept {
    const auto lock = state_->lock();
    return state_->end_error != 0;
  }

  /// The number of items that the channel holds before senders wait.
  [[nodiscard]] std::size_t capacity() const noexcept { return state_->capacity; }
  /// The number of items that can be received at once. Another thread may change it at any time.
  [[nodiscard]] std::size_t size() const noexcept {
    const auto lock = state_->lock();
    return state_->available();
  }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

 private:
  class State;

  static Result<> result_of(int error) noexcept {
    if (error != 0) return std::unexpected(system_error(error));
    return {};
  }

  std::shared_ptr<State> state_;
};

/// The queue and the waits. The lock must be held for all functions.
template <class T>
class ConcurrentChannel<T>::State final : public detail::SharedState {
 public:
  State(std::size_t items_max, const std::source_location& created_at) : capacity(items_max) {
    if (items_max == 0) [[unlikely]]
      detail::fail_on_empty_capacity("ConcurrentChannel", created_at);
    items_.reserve(items_max);
  }

  /// Returns 0 or an errno value; `item` is moved from only on success.
  int put(T& item) noexcept {
    if (is_of_parent()) return ECANCELED;
    if (end_error != 0) return end_error;
    // Senders wait only while the channel is full.
    if (items_.size() == capacity) return EAGAIN;
    items_.push_back(std::move(item));
    wake_receivers();
    return 0;
  }
  /// Returns an item that is not kept for a receiver, if there is one.
  std::optional<T> take() noexcept {
    if (is_of_parent() || available() == 0) return std::nullopt;
    return pop();
  }
  /// Why take() has returned nothing.
  [[nodiscard]] int error_of_receive() const noexcept {
    if (is_of_parent()) return ECANCELED;
    // A kept item may be given back.
    if (end_error == EPIPE && kept_ > 0) return EAGAIN;
    return end_error != 0 ? end_error : EAGAIN;
  }
  /// Returns the item that was kept for a receiver.
  T take_kept() noexcept {
    --kept_;
    return pop();
  }
  /// An item is not kept for a receiver any more.
  void give_back() noexcept {
    --kept_;
    wake_receivers();
  }
  void end(int error) noexcept {
    if (end_error != ECANCELED) end_error = error;
    while (detail::SharedWait* const sender = senders.front()) sender->wake(error);
    end_receivers();
  }
  [[nodiscard]] std::size_t available() const noexcept { return items_.size() - kept_; }

  const std::size_t capacity;
  int end_error = 0;  ///< EPIPE: the channel is closed. ECANCELED: it is destroyed.
  detail::SharedWaits senders;
  detail::SharedWaits receivers;

 private:
  T pop() noexcept {
    T item = items_.pop_front();
    while (items_.size() < capacity && senders.front() != nullptr) {
      detail::SharedWait& sender = *senders.front();
      items_.push_back(std::move(*static_cast<T*>(sender.item())));
      sender.wake(0);
    }
    wake_receivers();
    if (end_error != 0) end_receivers();
    return item;
  }
  /// Ends the waits for which no item can come any more. Receivers wait only while all items are
  /// kept for earlier ones.
  void end_receivers() noexcept {
    if (end_error == EPIPE && kept_ > 0) return;
    while (detail::SharedWait* const receiver = receivers.front()) receiver->wake(end_error);
  }
  void wake_receivers() noexcept {
    while (available() > 0 && receivers.front() != nullptr) {
      ++kept_;
      receivers.front()->wake(0);
    }
  }

  detail::RingQueue<T> items_;
  std::size_t kept_ = 0;  ///< Items for receivers that were woken and have not resumed yet.
};

template <class T>
Result<> ConcurrentChannel<T>::blocking_send(T&& item, Duration limit) noexcept {
  const std::shared_ptr<State> state = state_;  // The channel may be destroyed.
  auto lock = state->lock();
  const int error = state->put(item);
  if (error != EAGAIN) return result_of(error);
  detail::ThreadWait wait("ConcurrentChannel::blocking_send()");
  wait.set_item(&item);
  state->senders.push_back(wait);
  if (!wait.wait(lock, limit)) return result_of(ETIMEDOUT);
  return result_of(wait.error());
}

template <class T>
Result<T> ConcurrentChannel<T>::blocking_receive(Duration limit) noexcept {
  const std::shared_ptr<State> state = state_;  // The channel may be destroyed.
  auto lock = state->lock();
  if (std::optional<T> item = state->take()) return *std::move(item);
  int error = state->error_of_receive();
  if (error == EAGAIN) {
    detail::ThreadWait wait("ConcurrentChannel::blocking_receive()");
    state->receivers.push_back(wait);
    error = wait.wait(lock, limit) ? wait.error() : ETIMEDOUT;
    if (error == 0) return state->take_kept();
  }
  return std::unexpected(system_error(error));
}

/// The awaitable of send(). May be moved until it is awaited.
template <class T>
class [[nodiscard]] ConcurrentChannel<T>::Send final : private detail::SharedTaskWait {
 public:
  Send(Send&& other) noexcept
      : SharedTaskWait(static_cast<SharedTaskWait&&>(other), "ConcurrentChannel::send()"),
        item_(std::move(other.item_)) {}
  Send& operator=(Send&&) = delete;
  ~Send() { leave(); }

  [[nodiscard]] bool await_ready() noexcept {
    const auto lock = state().lock();
    return put();
  }
  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    note_wait(awaiting, WaitNote(WaitKind::send, &state()), at);
    set_item(&item_);
    return wait_in(channel().senders, awaiting, [this] { return put(); });
  }
  Result<> await_resume() const noexcept { return result_of(error()); }

 private:
  friend class ConcurrentChannel;
  Send(std::shared_ptr<State> state, T item) noexcept
      : SharedTaskWait(std::move(state)), item_(std::move(item)) {}

  [[nodiscard]] State& channel() const noexcept { return static_cast<State&>(state()); }
  bool put() noexcept {
    const int error = channel().put(item_);
    if (error == EAGAIN) return false;
    set_error(error);
    return true;
  }
  bool give_back() noexcept override { return false; }

  T item_;
};

/// The awaitable of receive(). May be moved until it is awaited.
template <class T>
class [[nodiscard]] ConcurrentChannel<T>::Receive final : private detail::SharedTaskWait {
 public:
  static constexpr bool is_cancel_safe = true;

  Receive(Receive&& other) noexcept
      : SharedTaskWait(static_cast<SharedTaskWait&&>(other), "ConcurrentChannel::receive()") {}
  Receive& operator=(Receive&&) = delete;
  ~Receive() { leave(); }

  [[nodiscard]] bool await_ready() noexcept {
    const auto lock = state().lock();
    return take();
  }
  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    note_wait(awaiting, WaitNote(WaitKind::receive, &state()), at);
    return wait_in(channel().receivers, awaiting, [this] { return take(); });
  }
  Result<T> await_resume() noexcept {
    if (item_) return *std::move(item_);
    if (error() != 0) return std::unexpected(system_error(error()));
    const auto lock = state().lock();
    return channel().take_kept();
  }

 private:
  friend class ConcurrentChannel;
  explicit Receive(std::shared_ptr<State> state) noexcept : SharedTaskWait(std::move(state)) {}

  [[nodiscard]] State& channel() const noexcept { return static_cast<State&>(state()); }
  bool take() noexcept {
    if (std::optional<T> item = channel().take()) item_.emplace(*std::move(item));
    if (item_) return true;
    const int error = channel().error_of_receive();
    if (error == EAGAIN) return false;
    set_error(error);
    return true;
  }
  bool give_back() noexcept override {
    channel().give_back();
    return true;
  }

  std::optional<T> item_;
};

}  // namespace tambour

#pragma GCC visibility pop
