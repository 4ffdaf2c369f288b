// Sends messages to every subscriber, within a loop and between threads.
#pragma once

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/shared_receiver.h>
#include <tambour/detail/shared_wait.h>

#pragma GCC visibility push(default)

namespace tambour {

/// A message that a receiver of a Broadcast has got.
template <class T>
struct BroadcastMessage {
  T value;
  /// How many messages between the previous one and this one the receiver has missed, because it
  /// was slower than the sender. 0: none.
  std::uint64_t missed = 0;
};

/// Sends each message to all receivers that have subscribed before:
///
///   Broadcast<std::shared_ptr<const News>> news(64);
///   ...
///   auto receiver = news.subscribe();                                // In a task of any loop.
///   while (auto message = co_await receiver.receive()) {
///     if (message->missed > 0) co_await send_everything(peer);
///     co_await send(peer, *message->value);
///   }
///
/// Capacity: the last `capacity` messages are kept for the receivers. Sending never waits: a
/// receiver that is further behind misses the oldest messages, and `missed` of its next message is
/// their number. So a slow peer does not use more memory. The capacity must be at least 1, or the
/// constructor aborts with a message. A message is kept until `capacity` further ones have been
/// sent. Each receiver gets a copy, which is made while the broadcast is locked: if that is
/// expensive, send a std::shared_ptr<const T>.
/// Thread: all functions, but not the destructor, may be called by several threads at the same
/// time, for example by tasks of all loops of a group, or by plain threads. Copying, moving and
/// destroying a message must not use the broadcast.
/// Lifetime: if the broadcast is destroyed, receive() fails with ECANCELED. Receivers may outlive
/// it.
/// Fork: in a child after fork(2), all functions fail with ECANCELED.
template <std::copy_constructible T>
class Broadcast {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>,
                "a message must be movable without exceptions: put it into a std::shared_ptr");

 public:
  /// What a receiver gets.
  using Message = BroadcastMessage<T>;
  class Receiver;

  /// Throws std::bad_alloc.
  explicit Broadcast(std::size_t capacity,
                     std::source_location created_at = std::source_location::current())
      : state_(std::make_shared<State>(capacity, created_at)) {}
  Broadcast(const Broadcast&) = delete;
  Broadcast& operator=(const Broadcast&) = delete;
  ~Broadcast() {
    const auto lock = state_->lock();
    state_->end(ECANCELED);
  }

  /// Sends to the receivers that exist; without any, the message is destroyed. Fails with EPIPE
  /// after close().
  Result<> send(T value) {
    std::optional<T> replaced;  // Destroyed without the lock.
    const auto lock = state_->lock();
    if (const int error = state_->error_of_use(); error != 0)
      return std::unexpected(system_error(error));
    state_->put(value, replaced);
    return {};
  }

  /// A receiver of the messages that are sent from now on.
  [[nodiscard]] Receiver subscribe() noexcept { return Receiver(state_); }

  /// Receivers still get the messages that they have not received; after the last one, receive()
  /// fails with EPIPE. May be called more than once.
  void close() noexcept {
    const auto lock = state_->lock();
    state_->end(EPIPE);
  }
  /// True after close().
  [[nodiscard]] bool is_closed() const noexcept {
    const auto lock = state_->lock();
    return state_->error_of_use() != 0;
  }

  /// The number of messages that are kept for slow receivers.
  [[nodiscard]] std::size_t capacity() const noexcept { return state_->capacity(); }
  /// The number of receivers that exist.
  [[nodiscard]] std::size_t receivers() const noexcept {
    const auto lock = state_->lock();
    return state_->receivers;
  }

 private:
  class State;
  std::shared_ptr<State> state_;
};

/// The messages and the waits. The lock must be held for all functions but capacity().
template <std::copy_constructible T>
class Broadcast<T>::State final : public detail::ObservedState {
 public:
  State(std::size_t capacity, const std::source_location& created_at) : slots_(capacity) {
    if (capacity == 0) [[unlikely]]
      detail::fail_on_empty_capacity("Broadcast", created_at);
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return slots_.size(); }
  [[nodiscard]] int error_of_use() const noexcept {
    return is_of_parent() ? ECANCELED : end_error();
  }

  void put(T& value, std::optional<T>& replaced) noexcept {
    if (receivers == 0) return;
    std::optional<T>& slot = slots_[next % capacity()];
    replaced.swap(slot);
    slot.emplace(std::move(value));
    ++next;
    wake_all(0);
  }

  /// Copies the next message of a receiver that has seen all messages before `cursor`. Returns 0 or
  /// an errno value; EAGAIN: there is no message.
  int get(std::uint64_t& cursor, std::optional<Message>& message) {
    if (is_of_parent()) return ECANCELED;
    if (cursor == next) return end_error() != 0 ? end_error() : EAGAIN;
    const std::uint64_t oldest = next > capacity() ? next - capacity() : 0;
    const std::uint64_t missed = cursor < oldest ? oldest - cursor : 0;
    message.emplace(*slots_[(cursor + missed) % capacity()], missed);
    cursor += missed + 1;
    return 0;
  }

  std::uint64_t next = 0;  ///< The number of the next message.
  std::size_t receivers = 0;

 private:
  std::vector<std::optional<T>> slots_;
};

/// A subscription. May be moved between threads, but is used by one thread at a time. Not while a
/// task awaits receive(): then it must be moved or destroyed on the thread of that task.
template <std::copy_constructible T>
class Broadcast<T>::Receiver
    : private detail::SharedReceiver<typename Broadcast<T>::Receiver, typename Broadcast<T>::State,
                                     typename Broadcast<T>::Message> {
  using Base = detail::SharedReceiver<Receiver, State, Message>;

 public:
  /// The awaitable of receive(). May be moved until it is awaited.
  using Receive = typename Base::Wait;

  Receiver(Receiver&& other) noexcept
      : Base(static_cast<Base&&>(other)), cursor_(other.cursor_), missed_(other.missed_) {}
  Receiver& operator=(Receiver&& other) noexcept {
    if (this != &other) {
      std::destroy_at(this);
      std::construct_at(this, std::move(other));
    }
    return *this;
  }
  /// If a task waits, its wait fails with ECANCELED.
  ~Receiver() {
    if (!this->has_state()) return;
    const auto lock = this->state().lock();
    --this->state().receivers;
  }

  /// Waits for the next message. Fails with EPIPE if the broadcast is closed and there is none, and
  /// with ECANCELED. Cancellation: a receive() that fails has not consumed a message. One task at a
  /// time may wait; a second one aborts with a message. Fails with EAGAIN if try_receive() has
  /// taken the message before the task resumed. Throws std::bad_alloc when it has to wait, and what
  /// copying a message throws, which is then not consumed.
  [[nodiscard]] Receive receive() noexcept { return this->wait(); }

  /// Receives without waiting. Fails with EAGAIN if there is no message, and like receive().
  Result<Message> try_receive() {
    std::optional<Message> message;
    const auto lock = this->state().lock();
    if (const int error = get(message); error != 0) return std::unexpected(system_error(error));
    return *std::move(message);
  }

  /// For plain threads: blocks until there is a message, for at most `limit`. Fails with ETIMEDOUT,
  /// and like receive(). On a thread that runs a loop, which would be blocked, it aborts with a
  /// message if it has to wait.
  Result<Message> blocking_receive(Duration limit = Duration::max()) {
    return this->block(limit, "Broadcast::Receiver::blocking_receive()");
  }

  /// How many messages this receiver has missed, in total.
  [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }

 private:
  friend class Broadcast;
  friend Base;
  friend Receive;
  static constexpr const char* wait_function = "Broadcast::Receiver::receive()";

  explicit Receiver(std::shared_ptr<State> state) noexcept : Base(std::move(state)) {
    const auto lock = this->state().lock();
    cursor_ = this->state().next;
    ++this->state().receivers;
  }

  int get(std::optional<Message>& message) {
    const int error = this->state().get(cursor_, message);
    if (error == 0) missed_ += message->missed;
    return error;
  }
  /// Fails with EAGAIN if try_receive() has taken the message.
  int get_woken(std::optional<Message>& message) { return get(message); }

  std::uint64_t cursor_ = 0;
  std::uint64_t missed_ = 0;
};

}  // namespace tambour

#pragma GCC visibility pop
