// Several tasks at once, as one: until all have ended, until the first has, or for so long at most.
//
// The tasks run side by side on the thread of whoever awaits. None outlives the wait: what ends the
// wait early asks the others to stop, and they are waited for.
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

/// What stands for the result of a task in tuples and variants: void has no values.
template <class T>
using WhenValue = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// What when_all and when_any share.
template <class... Ts>
class TaskGroup : protected TaskObserver {
 public:
  /// None of them may be empty.
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
    // One more than there are, so that none of those that end at once is the last.
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
    // The result is known already: there is no need to begin with this one.
    if (decided_) return void(--left_);
    promise.observe_from(*this, context_);
    if (first_started_ == nullptr) {
      first_started_ = &promise;
      if (parent_ != nullptr) parent_->set_awaited(&first_started_);
    }
    Resumption::run(promise.handle());
  }

  /// The result is known: the other tasks are asked to stop.
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
  TaskPromiseBase* parent_ = nullptr;  ///< Of the task that awaits.
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
  std::coroutine_handle<> task_ended(Link& task) noexcept override {
    if (std::exception_ptr thrown = static_cast<TaskPromiseBase&>(task).exception();
        thrown != nullptr && thrown_ == nullptr) {
      thrown_ = std::move(thrown);
      this->decide();
    }
    return this->ended();
  }

  std::exception_ptr thrown_;
};

/// Runs all of them, and gives their results in order. Where one throws, the others are asked to
/// stop, or are not started at all, and the first exception is thrown when all have ended. Throws
/// std::bad_alloc, as when_any() and timeout() do, where there is no memory to begin with.
///
///   auto [user, friends] = co_await when_all(load_user(id), load_friends(id));
template <class... Ts>
WhenAll<Ts...> when_all(Task<Ts>... tasks) {
  return WhenAll<Ts...>(std::move(tasks)...);
}

/// Tasks of which the first to end decides.
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
  std::coroutine_handle<> task_ended(Link& task) noexcept override {
    if (first_ == nullptr) {
      first_ = &task;
      this->decide();
    }
    return this->ended();
  }

  const Link* first_ = nullptr;
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

/// Runs all of them until the first ends, asks the others to stop, and gives the first one's result
/// when all have ended; the index of the variant says whose it is. If the first threw, so does
/// this; what the others return or throw is dropped. Where one ends without waiting, those behind
/// it are not started.
template <class... Ts>
  requires(sizeof...(Ts) > 0)
WhenAny<Ts...> when_any(Task<Ts>... tasks) {
  return WhenAny<Ts...>(std::move(tasks)...);
}

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<Result<T>> = true;

/// A Result stays what it is; anything else becomes one.
template <class T>
using ResultOf = std::conditional_t<is_result<T>, T, Result<T>>;

/// A task, and the sleep that it is measured by.
template <class T>
class [[nodiscard]] Timeout final : public TaskRace<T, Result<>> {
 public:
  using TaskRace<T, Result<>>::TaskRace;

  ResultOf<T> await_resume() {
    Task<T>& task = std::get<0>(this->tasks_);
    if (!this->is_first(task)) {
      const Result<> slept = std::get<1>(this->tasks_).promise().take();
      if (slept) return std::unexpected(system_error(ETIMEDOUT));
      // Both were asked to stop, and what the task has to say about it says more.
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

/// Runs `task` for `limit` at most: ETIMEDOUT where it had to be asked to stop, and has. ECANCELED
/// where whoever awaits was asked to stop, unless the task returned something better.
///
///   auto line = co_await timeout(5s, read_line(stream));
template <class T>
Task<ResultOf<T>> timeout(Duration limit, Task<T> task) {
  auto sleep = [](Duration duration) -> Task<Result<>> { co_return co_await sleep_for(duration); };
  Timeout<T> both(std::move(task), sleep(limit));
  co_return co_await both;
}

/// A wait that is started by being awaited, and can be moved until then: `read_line(stream,
/// buffer)`.
template <class Wait>
concept MovableWait = std::movable<Wait> && requires(Wait wait) {
  { std::move(wait).operator co_await().await_resume() };
};

/// The same for such a wait, as if it were a task.
template <MovableWait Wait>
auto timeout(Duration limit, Wait wait) {
  using T = decltype(std::declval<Wait>().operator co_await().await_resume());
  auto as_task = [](Wait own) -> Task<T> { co_return co_await std::move(own); };
  return timeout(limit, as_task(std::move(wait)));
}

}  // namespace tambour
