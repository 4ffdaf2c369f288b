// Combinators for concurrent tasks: wait for all, for the first, or with a time limit.
//
// The tasks run concurrently on the thread of the awaiting task. No task outlives the wait: if the
// wait is decided early, the other tasks are asked to stop, and the wait ends when they have ended.
#pragma once

#include <array>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <source_location>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <tambour/clock.h>
#include <tambour/result.h>
#include <tambour/task.h>
#include <tambour/wait.h>

namespace tambour {

/// The element of tuples and variants for the result of a task: std::monostate for void.
template <class T>
using WhenValue = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// The common base class of when_all() and when_any().
template <class... Ts>
class TaskGroup : protected TaskObserver {
 public:
  /// No task may be empty.
  explicit TaskGroup(Task<Ts>... tasks) : tasks_(std::move(tasks)...) {}
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  [[nodiscard]] bool await_ready(
      std::source_location at = std::source_location::current()) const noexcept {
    const bool any_empty = std::apply([](const auto&... task) { return (!task || ...); }, tasks_);
    if (any_empty) [[unlikely]]
      fail_on_empty_task("when_all(), when_any() or timeout()", at);
    return false;
  }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    const TaskContext& outer = awaiting.promise().context();
    awaiting_ = awaiting;
    context_ = {.loop = outer.loop, .stop = stop_.get_token(), .outer = &outer};
    outer_.emplace(outer.stop, Forward{stop_});
    if constexpr (std::derived_from<Promise, TaskPromiseBase>) parent_ = &awaiting.promise();
    // One more than the number of tasks, so that no task that ends immediately counts as the last.
    left_ = sizeof...(Ts) + 1;
    std::apply([this](auto&... task) { (start(task.promise()), ...); }, tasks_);
    return !is_last();
  }

 protected:
  struct Forward {
    std::stop_source& stop;
    void operator()() const noexcept { stop.request_stop(); }
  };

  void start(TaskPromiseBase& promise) {
    // The result is already known: do not start this task.
    if (decided_) return void(--left_);
    promise.observe_from(*this, context_);
    if (first_started_ == nullptr) {
      first_started_ = &promise;
      if (parent_ != nullptr) parent_->set_awaited(&first_started_);
    }
    Resumption::run(promise.handle());
  }

  /// The result is known: asks the other tasks to stop.
  void decide() noexcept {
    decided_ = true;
    stop_.request_stop();
  }

  std::coroutine_handle<> ended() noexcept { return is_last() ? awaiting_ : nullptr; }

  [[nodiscard]] bool observes(const void* frame) const noexcept final {
    return std::apply(
        [frame](const auto&... task) { return (task.promise().is_or_awaits(frame) || ...); },
        tasks_);
  }

  template <class T>
  static WhenValue<T> take(Task<T>& task) {
    if constexpr (std::is_void_v<T>) {
      task.promise().take();
      return {};
    } else {
      return task.promise().take();
    }
  }

  std::tuple<Task<Ts>...> tasks_;

 private:
  [[nodiscard]] bool is_last() noexcept {
    if (--left_ != 0) return false;
    if (parent_ != nullptr) parent_->set_awaited(nullptr);
    return true;
  }

  std::stop_source stop_;
  bool decided_ = false;
  std::size_t left_ = 0;
  TaskPromiseBase* parent_ = nullptr;  ///< The promise of the awaiting task.
  TaskPromiseBase* first_started_ = nullptr;
  std::coroutine_handle<> awaiting_;
  TaskContext context_;
  std::optional<std::stop_callback<Forward>> outer_;
};

template <class... Ts>
class [[nodiscard]] WhenAll final : public TaskGroup<Ts...> {
 public:
  using TaskGroup<Ts...>::TaskGroup;

  std::tuple<WhenValue<Ts>...> await_resume() {
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
    return std::apply(
        [](auto&... task) { return std::tuple<WhenValue<Ts>...>(TaskGroup<Ts...>::take(task)...); },
        this->tasks_);
  }

 private:
  std::coroutine_handle<> task_ended(TaskPromiseBase& task) noexcept override {
    if (std::exception_ptr thrown = static_cast<TaskPromiseBase&>(task).exception();
        thrown != nullptr && thrown_ == nullptr) {
      thrown_ = std::move(thrown);
      this->decide();
    }
    return this->ended();
  }

  std::exception_ptr thrown_;
};

/// Runs all tasks and returns their results in order. If a task throws, the others are asked to
/// stop or not started at all, and the first exception is thrown when all have ended. Like
/// when_any() and timeout(), it throws std::bad_alloc before any task starts if memory is
/// exhausted.
///
///   auto [user, friends] = co_await when_all(load_user(id), load_friends(id));
template <class... Ts>
WhenAll<Ts...> when_all(Task<Ts>... tasks) {
  return WhenAll<Ts...>(std::move(tasks)...);
}

/// Tasks of which the first to end determines the result.
template <class... Ts>
class TaskRace : public TaskGroup<Ts...> {
 public:
  using TaskGroup<Ts...>::TaskGroup;

 protected:
  template <class T>
  [[nodiscard]] bool is_first(Task<T>& task) const noexcept {
    return &task.promise() == first_;
  }

 private:
  std::coroutine_handle<> task_ended(TaskPromiseBase& task) noexcept override {
    if (first_ == nullptr) {
      first_ = &task;
      this->decide();
    }
    return this->ended();
  }

  const TaskPromiseBase* first_ = nullptr;
};

template <class... Ts>
class [[nodiscard]] WhenAny final : public TaskRace<Ts...> {
 public:
  using TaskRace<Ts...>::TaskRace;
  using Value = std::variant<WhenValue<Ts>...>;

  Value await_resume() { return take_first(std::index_sequence_for<Ts...>()); }

 private:
  template <std::size_t... indices>
  Value take_first(std::index_sequence<indices...>) {
    std::optional<Value> value;
    static_cast<void>((take_if_first<indices>(value) || ...));
    return std::move(*value);
  }

  template <std::size_t index>
  bool take_if_first(std::optional<Value>& value) {
    auto& task = std::get<index>(this->tasks_);
    if (!this->is_first(task)) return false;
    value.emplace(std::in_place_index<index>, TaskGroup<Ts...>::take(task));
    return true;
  }
};

/// Runs all tasks until the first one ends, asks the others to stop, and returns the result of the
/// first one when all have ended; the index of the variant identifies it. If the first one threw,
/// its exception is rethrown. Results and exceptions of the other tasks are discarded. If a task
/// ends without suspending, the tasks after it are not started.
template <class... Ts>
  requires(sizeof...(Ts) > 0)
WhenAny<Ts...> when_any(Task<Ts>... tasks) {
  return WhenAny<Ts...>(std::move(tasks)...);
}

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<Result<T>> = true;

/// A Result<T> is unchanged; any other type T becomes Result<T>.
template <class T>
using ResultOf = std::conditional_t<is_result<T>, T, Result<T>>;

/// A task and the sleep that limits it.
template <class T>
class [[nodiscard]] Timeout final : public TaskRace<T, Result<>> {
 public:
  using TaskRace<T, Result<>>::TaskRace;

  ResultOf<T> await_resume() {
    Task<T>& task = std::get<0>(this->tasks_);
    if (!this->is_first(task)) {
      const Result<> slept = std::get<1>(this->tasks_).promise().take();
      if (slept) return std::unexpected(system_error(ETIMEDOUT));
      // Both were asked to stop; the task's own result is more specific than ECANCELED.
      if constexpr (std::is_void_v<T>) {
        task.promise().take();
        return std::unexpected(slept.error());
      }
    }
    if constexpr (std::is_void_v<T>) {
      task.promise().take();
      return {};
    } else {
      return ResultOf<T>(task.promise().take());
    }
  }
};

/// Runs `task` for at most `limit`. Fails with ETIMEDOUT if the time limit passed and the task was
/// asked to stop, and with ECANCELED if the awaiting task was asked to stop, unless the task
/// returned another result. Returns only after the task has ended.
///
///   auto line = co_await timeout(5s, read_line(stream));
template <class T>
Task<ResultOf<T>> timeout(Duration limit, Task<T> task) {
  auto sleep = [](Duration duration) -> Task<Result<>> { co_return co_await sleep_for(duration); };
  Timeout<T> both(std::move(task), sleep(limit));
  co_return co_await both;
}

/// An awaitable that starts when it is awaited and is movable until then, for example
/// `read_line(stream, buffer)`.
template <class Wait>
concept MovableWait = std::movable<Wait> && requires(Wait wait) {
  { std::move(wait).operator co_await().await_resume() };
};

/// The same for an awaitable, which is wrapped in a task.
template <MovableWait Wait>
auto timeout(Duration limit, Wait wait) {
  using T = decltype(std::declval<Wait>().operator co_await().await_resume());
  auto as_task = [](Wait own) -> Task<T> { co_return co_await std::move(own); };
  return timeout(limit, as_task(std::move(wait)));
}

}  // namespace tambour
