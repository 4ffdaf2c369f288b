// A value whose changes tasks and threads can await, within a loop and between threads.
#pragma once

#include <cerrno>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/shared_receiver.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Holds one value, and notifies its receivers when it is replaced, for example a configuration:
///
///   Watch<std::shared_ptr<const Config>> config(load());
///   config.set(load());                                              // On any thread.
///   ...
///   auto receiver = config.subscribe();                              // In a task of any loop.
///   use(receiver.get());
///   while (auto changed = co_await receiver.changed()) use(*changed);
/// A receiver gets the latest value, not each value: values that were replaced before it resumed
/// are not kept. Use Broadcast if each one matters. Each receiver gets a copy, which is made while
/// the object is locked: if that is expensive, use a std::shared_ptr<const T>.
/// Thread: all functions, but not the destructor, may be called by several threads at the same
/// time. Copying, moving and destroying a value must not use the object.
/// Lifetime: if the object is destroyed, changed() fails with ECANCELED. Receivers may outlive it.
/// Fork: in a child after fork(2), changed() fails with ECANCELED, and no value may be set.
template <std::copy_constructible T>
  requires std::is_nothrow_swappable_v<T>
class Watch {
 public:
  class Receiver;

  /// Throws std::bad_alloc.
  explicit Watch(T value) : state_(std::make_shared<State>(std::move(value))) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    const auto lock = state_->lock();
    state_->end(ECANCELED);
  }

  /// Replaces the value, and resumes the tasks that await changed(), even if it is equal.
  void set(T value) noexcept {
    const auto lock = state_->lock();
    state_->set(value);
    // The former value is destroyed after `lock`: a parameter outlives the local variables.
  }

  /// A copy of the value.
  [[nodiscard]] T get() const {
    const auto lock = state_->lock();
    return state_->value();
  }

  /// Returns a receiver that has seen the current value.
  [[nodiscard]] Receiver subscribe() noexcept { return Receiver(state_); }

  /// Ends the changes: a receiver gets the latest value if it has not seen it; then changed() fails
  /// with EPIPE. May be called more than once.
  void close() noexcept {
    const auto lock = state_->lock();
    state_->end(EPIPE);
  }

 private:
  class State;
  std::shared_ptr<State> state_;
};

/// The value and the waits. The lock must be held for all functions.
template <std::copy_constructible T>
  requires std::is_nothrow_swappable_v<T>
class Watch<T>::State final : public detail::ObservedState {
 public:
  explicit State(T value) : value_(std::move(value)) {}

  /// Afterwards `value` is the former value.
  void set(T& value) noexcept {
    using std::swap;
    swap(value_, value);
    ++version_;
    wake_all(0);
  }
  [[nodiscard]] const T& value() const noexcept { return value_; }
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

  /// Copies the value if it is not the one that the receiver has seen. Returns 0 or an errno value;
  /// EAGAIN: it is.
  int get_changed(std::uint64_t& seen, std::optional<T>& value) {
    if (is_of_parent()) return ECANCELED;
    if (seen == version_) return end_error() != 0 ? end_error() : EAGAIN;
    value.emplace(value_);
    seen = version_;
    return 0;
  }

 private:
  T value_;
  std::uint64_t version_ = 0;
};

/// A subscription. May be moved between threads, but is used by one thread at a time. Not while a
/// task awaits changed(): then it must be moved or destroyed on the thread of that task.
template <std::copy_constructible T>
  requires std::is_nothrow_swappable_v<T>
class Watch<T>::Receiver
    : private detail::SharedReceiver<typename Watch<T>::Receiver, typename Watch<T>::State, T> {
  using Base = detail::SharedReceiver<Receiver, State, T>;

 public:
  /// The awaitable of changed(). May be moved until it is awaited.
  using Changed = typename Base::Wait;

  Receiver(Receiver&& other) noexcept : Base(static_cast<Base&&>(other)), seen_(other.seen_) {}
  Receiver& operator=(Receiver&& other) noexcept {
    if (this != &other) {
      std::destroy_at(this);
      std::construct_at(this, std::move(other));
    }
    return *this;
  }
  /// If a task waits, its wait fails with ECANCELED.
  ~Receiver() = default;

  /// Waits until there is a value that this receiver has not seen, and returns the latest one.
  /// Fails with EPIPE if the Watch is closed, and with ECANCELED. Cancellation: a changed() that
  /// fails has not consumed the change. One task at a time may wait; a second one aborts with a
  /// message. Throws std::bad_alloc when it has to wait, and what copying a value throws.
  [[nodiscard]] Changed changed() noexcept { return this->wait(); }

  /// For plain threads: blocks until the value has changed, for at most `limit`. Fails with
  /// ETIMEDOUT, and like changed(). On a thread that runs a loop, which would be blocked, it aborts
  /// with a message if it has to wait.
  Result<T> blocking_changed(Duration limit = Duration::max()) {
    return this->block(limit, "Watch::Receiver::blocking_changed()");
  }

  /// A copy of the latest value, which this receiver has then seen.
  [[nodiscard]] T get() {
    const auto lock = this->state().lock();
    T value = this->state().value();
    seen_ = this->state().version();
    return value;
  }
  /// True if changed() would return a value at once.
  [[nodiscard]] bool has_changed() const noexcept {
    const auto lock = this->state().lock();
    return seen_ != this->state().version();
  }

 private:
  friend class Watch;
  friend Base;
  friend Changed;
  static constexpr const char* wait_function = "Watch::Receiver::changed()";

  explicit Receiver(std::shared_ptr<State> state) noexcept : Base(std::move(state)) {
    const auto lock = this->state().lock();
    seen_ = this->state().version();
  }

  int get(std::optional<T>& value) { return this->state().get_changed(seen_, value); }
  /// Returns the latest value, also if get() has returned it meanwhile.
  int get_woken(std::optional<T>& value) {
    value.emplace(this->state().value());
    seen_ = this->state().version();
    return 0;
  }

  std::uint64_t seen_ = 0;
};

}  // namespace tambour

#pragma GCC visibility pop
