// Receivers of values that threads share: what those of a Broadcast and of a Watch have in common.
// Not part of the public interface: it is visible only because these receivers derive from it.
#pragma once

#include <cerrno>
#include <coroutine>
#include <memory>
#include <optional>
#include <utility>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/shared_wait.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::detail {

/// A state that receivers observe until it ends. The lock must be held for all functions.
class ObservedState : public SharedState {
 public:
  /// After this, receivers fail with `error` when they have received everything: EPIPE, or
  /// ECANCELED, which a later call does not replace.
  void end(int error) noexcept {
    if (end_error_ != ECANCELED) end_error_ = error;
    wake_all(error);
  }

  SharedWaits waiting;

 protected:
  ~ObservedState() = default;

  void wake_all(int error) noexcept {
    while (SharedWait* const wait = waiting.front()) wait->wake(error);
  }
  /// 0: it has not ended.
  [[nodiscard]] int end_error() const noexcept { return end_error_; }

 private:
  int end_error_ = 0;
};

template <class Receiver, class State, class Value>
class SharedReceiver;

/// The awaitable of a receiver, which makes two functions its friends; the lock is held for both,
/// and they return 0 or an errno value. `get(value)` returns EAGAIN if there is no value to wait
/// for; get_woken(value) is called when there was one. `wait_function` is the name of the function
/// that returns the awaitable. May be moved until it is awaited.
template <class Receiver, class State, class Value>
class [[nodiscard]] SharedReceiverWait final : private SharedTaskWait {
 public:
  static constexpr bool is_cancel_safe = true;

  SharedReceiverWait(SharedReceiverWait&& other) noexcept
      : SharedTaskWait(static_cast<SharedTaskWait&&>(other), Receiver::wait_function),
        receiver_(std::exchange(other.receiver_, nullptr)) {}
  SharedReceiverWait& operator=(SharedReceiverWait&&) = delete;
  ~SharedReceiverWait() {
    leave();
    forget_receiver();
  }

  [[nodiscard]] bool await_ready() {
    const auto lock = state().lock();
    return get();
  }
  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    note_wait(awaiting, WaitNote(WaitKind::receive, &state()), at);
    if (receiver_->waiting_ != nullptr) [[unlikely]]
      fail_on_second_wait(Receiver::wait_function);
    if (!wait_in(receiver_->state_->waiting, awaiting, [this] { return get(); })) return false;
    receiver_->waiting_ = this;
    return true;
  }
  Result<Value> await_resume() {
    if (is_woken() && error() == 0 && receiver_ != nullptr) {
      const auto lock = state().lock();
      set_error(static_cast<Receiver*>(receiver_)->get_woken(value_));
    }
    forget_receiver();
    if (value_) return *std::move(value_);
    return std::unexpected(system_error(error()));
  }

 private:
  using Base = SharedReceiver<Receiver, State, Value>;
  friend Base;
  explicit SharedReceiverWait(Base& receiver) noexcept
      : SharedTaskWait(receiver.state_), receiver_(&receiver) {}

  /// Returns false if there is no value. The lock is held.
  bool get() {
    const int error = static_cast<Receiver*>(receiver_)->get(value_);
    if (error == EAGAIN) return false;
    if (error != 0) set_error(error);
    return true;
  }
  /// The receiver is destroyed.
  void end() noexcept {
    receiver_ = nullptr;
    cancel();
  }
  void forget_receiver() noexcept {
    if (receiver_ != nullptr && receiver_->waiting_ == this) receiver_->waiting_ = nullptr;
  }
  /// A value is consumed when the task resumes.
  bool give_back() noexcept override { return true; }

  Base* receiver_;  ///< Null: it was destroyed during the wait.
  std::optional<Value> value_;
};

/// The base of a receiver, for which one task at a time may wait.
template <class Receiver, class State, class Value>
class SharedReceiver {
 public:
  SharedReceiver& operator=(SharedReceiver&&) = delete;

 private:
  friend Receiver;
  using Wait = SharedReceiverWait<Receiver, State, Value>;

  explicit SharedReceiver(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
  SharedReceiver(SharedReceiver&& other) noexcept
      : state_(std::move(other.state_)), waiting_(std::exchange(other.waiting_, nullptr)) {
    if (waiting_ != nullptr) waiting_->receiver_ = this;
  }
  /// If a task waits, its wait fails with ECANCELED.
  ~SharedReceiver() {
    if (waiting_ != nullptr) waiting_->end();
  }

  [[nodiscard]] Wait wait() noexcept { return Wait(*this); }

  /// Blocks for at most `limit`. Fails with ETIMEDOUT, and like wait(). On a thread that runs a
  /// loop, aborts with a message that names `function` if it has to wait.
  Result<Value> block(Duration limit, const char* function) {
    auto& receiver = static_cast<Receiver&>(*this);
    std::optional<Value> value;
    auto lock = state_->lock();
    int error = receiver.get(value);
    if (error == EAGAIN) {
      ThreadWait wait(function);
      state_->waiting.push_back(wait);
      error = wait.wait(lock, limit) ? wait.error() : ETIMEDOUT;
      if (error == 0) error = receiver.get(value);
    }
    if (error != 0) return std::unexpected(system_error(error));
    return *std::move(value);
  }

  [[nodiscard]] State& state() const noexcept { return *state_; }
  [[nodiscard]] bool has_state() const noexcept { return state_ != nullptr; }

 private:
  friend Wait;

  std::shared_ptr<State> state_;  ///< Null: moved from.
  Wait* waiting_ = nullptr;
};

}  // namespace tambour::detail

#pragma GCC visibility pop
