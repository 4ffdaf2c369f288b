// Makes a callback API awaitable and cancellable.
//
//   Task<Result<Row>> query(Database& database, std::string text) {
//     auto initiate = [&](Completion<Row> done) {
//       database.query(text, [done](Row row) { done.complete(std::move(row)); });
//     };
//     co_return co_await from_callback<Row>(initiate);
//   }
//
// The most common mistake is a callback that writes to an object of the awaiting task: the task may
// be destroyed while it waits. Pass the result to complete() instead.
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/detail/completion_state.h>
#include <tambour/detail/stop_hook.h>
#include <tambour/task/awaitable.h>
#include <tambour/task/combinators.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

template <class T>
class Completion;

namespace detail {

template <class T>
class CompletionStateOf final : public CompletionState {
 public:
  /// Stores the value, or the exception that moving it throws. After claim().
  template <class... Value>
  void set_value(Value&&... value) noexcept {
    try {
      value_.emplace(std::forward<Value>(value)...);
    } catch (...) {
      set_exception(std::current_exception());
    }
  }

  ResultOf<T> take() {
    if (const Error error = take_error()) return std::unexpected(error);
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return *std::move(value_);
    }
  }

 private:
  std::optional<WhenValue<T>> value_;
};

}  // namespace detail

/// The right to complete one wait of from_callback(), exactly once: the first complete() or fail()
/// counts, later ones return false. Copies refer to the same wait.
///
/// Thread: copied, destroyed, completed and failed on any thread, also when the awaiting task or
/// its loop has been destroyed; the result is then discarded on the calling thread.
/// Lifetime: when the last copy is destroyed without a result, the wait fails with ECANCELED.
template <class T = void>
class Completion {
 public:
  Completion(const Completion& other) noexcept : state_(other.state_) {
    if (state_ != nullptr) state_->add_completion();
  }
  Completion(Completion&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Completion& operator=(Completion other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Completion() {
    if (state_ != nullptr) state_->drop_completion();
  }

  /// The awaiting task resumes with `value` in a later iteration of its loop. Returns false, and
  /// discards the value, if the wait has ended or was completed already. Allocates nothing.
  template <class U = std::conditional_t<std::is_void_v<T>, std::monostate, T>>
    requires(!std::is_void_v<T> && std::constructible_from<T, U>)
  bool complete(U&& value) const noexcept {
    if (state_ == nullptr || !state_->claim()) return false;
    state_->set_value(std::forward<U>(value));
    state_->send();
    return true;
  }
  bool complete() const noexcept
    requires std::is_void_v<T>
  {
    if (state_ == nullptr || !state_->claim()) return false;
    state_->send();
    return true;
  }

  /// The wait fails with `error`, or throws the exception. Otherwise like complete().
  bool fail(Error error) const noexcept {
    if (state_ == nullptr || !state_->claim()) return false;
    state_->set_error(error);
    state_->send();
    return true;
  }
  bool fail(std::exception_ptr thrown) const noexcept {
    if (state_ == nullptr || !state_->claim()) return false;
    state_->set_exception(std::move(thrown));
    state_->send();
    return true;
  }

  /// True if the wait was completed or has ended, so that its result is not needed any more.
  [[nodiscard]] bool is_completed() const noexcept {
    return state_ == nullptr || state_->is_claimed();
  }

  /// Sets the function that cancels the operation: `handler` is invoked at most once, on the loop's
  /// thread, when the awaiting task is asked to stop or is destroyed before the wait was completed.
  /// After a stop request, the wait goes on until complete() or fail() is called, by the handler or
  /// later by the callback of the operation: so an operation that uses memory of the task can end
  /// first. If the task is destroyed after the handler was invoked, the handler is not invoked
  /// again: if that can happen, let the operation own its memory. Without a handler, a stop request
  /// ends the wait at once. May be called once, and only by the function that from_callback()
  /// invokes: anything else aborts with a message. Call it before the operation is started, because
  /// it may throw std::bad_alloc.
  ///
  ///   done.on_stop([&database, id](const Completion<Row>& stopped) {
  ///     database.cancel(id);
  ///     stopped.fail(system_error(ECANCELED));
  ///   });
  template <class Handler>
    requires std::invocable<Handler&, const Completion&>
  void on_stop(Handler handler) const {
    state_->set_stop_handler([state = state_, handler = std::move(handler)]() mutable {
      state->add_completion();
      handler(Completion(*state));
    });
  }

  /// For C functions with a `void*` argument: release() converts the Completion to a pointer, and
  /// adopt() converts the pointer back to a Completion; call it exactly once.
  [[nodiscard]] void* release() && noexcept { return std::exchange(state_, nullptr); }
  [[nodiscard]] static Completion adopt(void* released) noexcept {
    return Completion(*static_cast<detail::CompletionStateOf<T>*>(released));
  }

 private:
  template <class, class>
  friend class FromCallback;
  /// Takes over one completion of the state.
  explicit Completion(detail::CompletionStateOf<T>& state) noexcept : state_(&state) {}

  detail::CompletionStateOf<T>* state_;
};

/// The awaitable of from_callback(), which may be moved until it is awaited.
template <class T, class F>
class [[nodiscard("nothing happens until this is awaited")]] FromCallback final
    : private detail::StopHook {
 public:
  /// What from_callback() returns.
  explicit FromCallback(F initiate) : StopHook(&cancel), initiate_(std::move(initiate)) {}
  FromCallback(FromCallback&& other) noexcept(std::is_nothrow_move_constructible_v<F>)
      : StopHook(&cancel), initiate_(std::move(other.initiate_)) {
    detail::check_not_awaited(other.awaiting_, "from_callback()");
  }
  FromCallback& operator=(FromCallback&&) = delete;
  ~FromCallback() {
    ignore_stop();
    if (state_ != nullptr) state_->abandon();
  }

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    const TaskContext& context = awaiting.promise().context();
    note_wait(awaiting, WaitNote(WaitKind::callback), at);
    awaiting_ = awaiting;
    state_ = new detail::CompletionStateOf<T>;
    Completion<T> completion(*state_);
    if (context.stop.stop_requested()) {
      state_->refuse();
      return false;
    }
    state_->begin(*context.loop, awaiting);
    std::invoke(initiate_, std::move(completion));
    state_->end_initiation();
    context.waits.add(*this, context.stop);
    return true;
  }

  detail::ResultOf<T> await_resume() {
    ignore_stop();
    return state_->take();
  }

 private:
  static void cancel(StopHook& hook) noexcept {
    static_cast<FromCallback&>(hook).state_->request_stop();
  }

  F initiate_;
  std::coroutine_handle<> awaiting_;
  detail::CompletionStateOf<T>* state_ = nullptr;
};

/// Invokes `initiate(Completion<T>)` when it is awaited, on the loop's thread, and waits until that
/// Completion is completed, on any thread: within the call or at any later time. Returns the value,
/// as it is if T is a Result and otherwise in a Result. Throws the exception of Completion::fail(),
/// and what `initiate` throws. Corresponds to asio's async_initiate() and Kotlin's
/// suspendCancellableCoroutine().
///
/// Cancellation: fails with ECANCELED if the task is asked to stop, see Completion::on_stop(); if
/// it was asked before, `initiate` is not invoked. If the task is destroyed, later results are
/// discarded. In a child after fork(2), the wait fails with ECANCELED when the loop is reopened.
/// Loop: the wait keeps the loop running. Memory: allocates once; throws std::bad_alloc before
/// `initiate` is invoked.
///
/// With GCC 12, name a lambda that captures more than references and numbers before the co_await
/// expression, and std::move() it.
template <class T, class F>
  requires std::move_constructible<F> && std::invocable<F&, Completion<T>> &&
           (std::is_void_v<T> || std::move_constructible<T>)
FromCallback<T, F> from_callback(F initiate) {
  return FromCallback<T, F>(std::move(initiate));
}

}  // namespace tambour

#pragma GCC visibility pop
