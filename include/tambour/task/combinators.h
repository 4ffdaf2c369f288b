// Combinators for concurrent tasks: wait for all, for the first, or with a time limit.
//
// They accept any awaitable (see <tambour/task/awaitable.h>). One that is not a Task is awaited by
// a task of its own, whose frame owns it.
//
// The tasks run concurrently on the thread of the awaiting task. No task outlives the wait: if the
// wait is decided early, the other tasks are asked to stop, and the wait ends when they have ended.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <expected>
#include <optional>
#include <source_location>
#include <span>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/task/awaitable.h>
#include <tambour/task/sleep.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

namespace detail {

/// The element of tuples and variants for the result of a task: std::monostate for void.
template <class T>
using WhenValue = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// Tasks that run concurrently while one coroutine waits for all of them. May be moved until it is
/// awaited.
class TaskGroup : protected detail::TaskObserver {
 public:
  TaskGroup& operator=(TaskGroup&&) = delete;

 protected:
  TaskGroup() = default;
  TaskGroup(TaskGroup&& other) noexcept : stop_(std::move(other.stop_)) {
    check_not_awaited(other.awaiting_, "when_all() or when_any()");
  }
  ~TaskGroup() = default;

  /// Starts `tasks` tasks: `start_all` calls start() for each of them. Returns false if all have
  /// ended already.
  /// `at`: the place of the co_await expression. `forwards`: a stop request of the awaiting task is
  /// one of its tasks too.
  template <HasTaskContext Promise>
  bool begin(std::coroutine_handle<Promise> awaiting, std::size_t tasks,
             const std::source_location& at, auto start_all, bool forwards = true) {
    const TaskContext& outer = awaiting.promise().context();
    awaiting_ = awaiting;
    context_ = {.loop = outer.loop,
                .stop = stop_.get_token(),
                .outer = &outer,
                .spawned_at = outer.spawned_at};
    if (forwards) outer_.emplace(outer.stop, Forward{stop_});
    if constexpr (std::derived_from<Promise, detail::TaskPromiseBase>) {
      parent_ = &awaiting.promise();
      parent_->note_place(at);
    }
    // One more than the number of tasks, so that no task that ends immediately counts as the last.
    left_ = tasks + 1;
    start_all();
    return !is_last();
  }

  void start(detail::TaskPromiseBase& promise) {
    // The result is already known: do not start this task.
    if (decided_) return void(--left_);
    promise.observe_from(*this, context_);
    if (first_started_ == nullptr) {
      first_started_ = &promise;
      if (parent_ != nullptr) parent_->set_awaited(&first_started_);
    }
    promise.enter_ring(*first_started_);
    Resumption::run(promise.handle());
  }

  /// The result is known: asks the other tasks to stop.
  void decide() noexcept {
    decided_ = true;
    request_stop_of(stop_);
  }

  struct Forward {
    std::stop_source& stop;
    void operator()() const noexcept { request_stop_of(stop); }
  };
  /// For stop requests from elsewhere.
  [[nodiscard]] Forward forward() noexcept { return Forward{stop_}; }

  std::coroutine_handle<> ended() noexcept { return is_last() ? awaiting_ : nullptr; }

  template <class T>
  static WhenValue<T> take(Task<T>& task) {
    if constexpr (std::is_void_v<T>) {
      task.promise().take();
      return {};
    } else {
      return task.promise().take();
    }
  }

 private:
  [[nodiscard]] bool is_last() noexcept {
    if (--left_ != 0) return false;
    if (parent_ != nullptr) parent_->set_awaited(nullptr);
    return true;
  }

  std::stop_source stop_;
  bool decided_ = false;
  std::size_t left_ = 0;
  detail::TaskPromiseBase* parent_ = nullptr;  ///< The promise of the awaiting task.
  detail::TaskPromiseBase* first_started_ = nullptr;
  std::coroutine_handle<> awaiting_;
  TaskContext context_;
  std::optional<std::stop_callback<Forward>> outer_;
};

/// A group whose result is known when the first task throws. The same for tuples and vectors.
class AllOfTasks : public TaskGroup {
 protected:
  void rethrow() {
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  }

 private:
  std::coroutine_handle<> task_ended(detail::TaskPromiseBase& task) noexcept final {
    if (std::exception_ptr thrown = task.exception(); thrown != nullptr && thrown_ == nullptr) {
      thrown_ = std::move(thrown);
      decide();
    }
    return ended();
  }

  std::exception_ptr thrown_;
};

/// A group whose result is that of the first task to end.
class FirstOfTasks : public TaskGroup {
 protected:
  template <class T>
  [[nodiscard]] bool is_first(Task<T>& task) const noexcept {
    return &task.promise() == first_;
  }

 private:
  std::coroutine_handle<> task_ended(detail::TaskPromiseBase& task) noexcept final {
    if (first_ == nullptr) {
      first_ = &task;
      decide();
    }
    return ended();
  }

  const detail::TaskPromiseBase* first_ = nullptr;
};

/// A group of tasks of different types.
template <std::derived_from<TaskGroup> Group, class... Ts>
class TaskTuple : public Group {
 public:
  /// No task may be empty.
  explicit TaskTuple(Task<Ts>... tasks) : tasks_(std::move(tasks)...) {}

  [[nodiscard]] bool await_ready(
      std::source_location at = std::source_location::current()) const noexcept {
    const bool any_empty = std::apply([](const auto&... task) { return (!task || ...); }, tasks_);
    if (any_empty) [[unlikely]]
      fail_on_empty_task("when_all(), when_any() or timeout()", at);
    return false;
  }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    return this->begin(awaiting, sizeof...(Ts), at, [this] {
      std::apply([this](auto&... task) { (this->start(task.promise()), ...); }, tasks_);
    });
  }

 protected:
  std::tuple<Task<Ts>...> tasks_;

 private:
  [[nodiscard]] bool observes(const void* frame) const noexcept final {
    return std::apply(
        [frame](const auto&... task) { return (task.promise().is_or_awaits(frame) || ...); },
        tasks_);
  }
};

}  // namespace detail

/// The awaitable of when_all().
template <class... Ts>
class [[nodiscard]] WhenAll final : public detail::TaskTuple<detail::AllOfTasks, Ts...> {
 public:
  using detail::TaskTuple<detail::AllOfTasks, Ts...>::TaskTuple;

  std::tuple<detail::WhenValue<Ts>...> await_resume() {
    this->rethrow();
    return std::apply(
        [](auto&... task) {
          return std::tuple<detail::WhenValue<Ts>...>(detail::TaskGroup::take(task)...);
        },
        this->tasks_);
  }
};

/// Runs all tasks, or other awaitables (see <tambour/task/awaitable.h>), and returns their results
/// in order. If a task throws, the others are asked to stop or not started at all, and the first
/// exception is thrown when all have ended. Like when_any() and timeout(), it throws std::bad_alloc
/// before any task starts if memory is exhausted.
///
///   auto [user, friends] = co_await when_all(load_user(id), load_friends(id));
template <AwaitableArgument... As>
WhenAll<AwaitResult<As>...> when_all(As... awaitables) {
  return WhenAll<AwaitResult<As>...>(as_task(std::move(awaitables))...);
}

/// The awaitable of when_any().
template <class... Ts>
class [[nodiscard]] WhenAny : public detail::TaskTuple<detail::FirstOfTasks, Ts...> {
 public:
  using detail::TaskTuple<detail::FirstOfTasks, Ts...>::TaskTuple;
  /// The result of the first task, with its index; std::monostate for void.
  using Value = std::variant<detail::WhenValue<Ts>...>;

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
    value.emplace(std::in_place_index<index>, detail::TaskGroup::take(task));
    return true;
  }
};

/// Runs all tasks, or other awaitables, until the first one ends, asks the others to stop, and
/// returns the result of the first one when all have ended; the index of the variant identifies it.
/// If the first one threw, its exception is rethrown. Results and exceptions of the other tasks are
/// discarded. If a task ends without suspending, the tasks after it are not started.
///
///   const auto first = co_await when_any(stream.read(buffer), cancelled.wait());
template <AwaitableArgument... As>
  requires(sizeof...(As) > 0)
WhenAny<AwaitResult<As>...> when_any(As... awaitables) {
  static_assert(
      (detail::is_cancellable<As> && ...),
      "when_any() cannot cancel this awaitable: its await_suspend() takes a "
      "std::coroutine_handle<>, "
      "which has no stop token. Give it a member set_stop_token(std::stop_token), or make "
      "await_suspend() a template that takes std::coroutine_handle<Promise>, or write it with "
      "from_callback(). To wait for its end whenever that is, pass uncancellable(awaitable). See "
      "docs/awaitables.md.");
  return WhenAny<AwaitResult<As>...>(as_task(std::move(awaitables))...);
}

// The concepts of ranges come with <span> in libstdc++ and libc++. The rest of <ranges>, the views,
// takes a compiler 0.1 s.

/// A range of awaitables that can be moved out of it: an rvalue of a container, or a view whose
/// elements are temporaries, such as std::views::transform(urls, fetch).
template <class R>
concept AwaitableRange =
    std::ranges::input_range<R> && AwaitableArgument<std::ranges::range_value_t<R>> &&
    (!std::is_lvalue_reference_v<R> || std::ranges::view<std::remove_cvref_t<R>>) &&
    (!std::ranges::view<std::remove_cvref_t<R>> ||
     !std::is_lvalue_reference_v<std::ranges::range_reference_t<R>>);

namespace detail {

template <AwaitableRange R>
using RangeResult = AwaitResult<std::ranges::range_value_t<R>>;

/// A group of tasks of the same type.
template <std::derived_from<TaskGroup> Group, class T>
class TaskVector : public Group {
 public:
  /// No task may be empty.
  explicit TaskVector(std::vector<Task<T>> tasks) : tasks_(std::move(tasks)) {}

  [[nodiscard]] bool await_ready(
      std::source_location at = std::source_location::current()) const noexcept {
    for (const Task<T>& task : tasks_) {
      if (!task) [[unlikely]]
        fail_on_empty_task("when_all() or when_any()", at);
    }
    return false;
  }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    return this->begin(awaiting, tasks_.size(), at, [this] {
      for (Task<T>& task : tasks_) this->start(task.promise());
    });
  }

 protected:
  std::vector<Task<T>> tasks_;

 private:
  [[nodiscard]] bool observes(const void* frame) const noexcept final {
    for (const Task<T>& task : tasks_) {
      if (task.promise().is_or_awaits(frame)) return true;
    }
    return false;
  }
};

/// Moves the elements of `range` into tasks.
template <AwaitableRange R>
std::vector<Task<RangeResult<R>>> tasks_of(R&& range) {
  std::vector<Task<RangeResult<R>>> tasks;
  if constexpr (std::ranges::sized_range<R>) tasks.reserve(std::ranges::size(range));
  for (auto&& entry : range) tasks.push_back(as_task(std::move(entry)));
  return tasks;
}

}  // namespace detail

/// The awaitable of when_all() of a range.
template <class T>
class [[nodiscard]] WhenAllOfRange final : public detail::TaskVector<detail::AllOfTasks, T> {
 public:
  using detail::TaskVector<detail::AllOfTasks, T>::TaskVector;

  /// Throws std::bad_alloc.
  std::vector<detail::WhenValue<T>> await_resume() {
    this->rethrow();
    std::vector<detail::WhenValue<T>> values;
    values.reserve(this->tasks_.size());
    for (Task<T>& task : this->tasks_) values.push_back(detail::TaskGroup::take(task));
    return values;
  }
};

/// Runs the tasks or awaitables of a range, all at the same time, and returns a vector of their
/// results in the order of the range; std::monostate for void. Returns an empty vector at once if
/// the range is empty. Exceptions and memory as above.
///
///   std::vector<Task<Page>> pages = ...;
///   for (const Page& page : co_await when_all(std::move(pages))) ...
template <AwaitableRange R>
  requires(!std::is_reference_v<detail::RangeResult<R>>)
WhenAllOfRange<detail::RangeResult<R>> when_all(R&& range) {
  return WhenAllOfRange<detail::RangeResult<R>>(detail::tasks_of(std::forward<R>(range)));
}

/// The result of when_any() of a range: `value` is that of the element at `index`.
template <class T>
struct FirstResult {
  std::size_t index;
  detail::WhenValue<T> value;
};

/// The awaitable of when_any() of a range.
template <class T>
class [[nodiscard]] WhenAnyOfRange final : public detail::TaskVector<detail::FirstOfTasks, T> {
 public:
  using detail::TaskVector<detail::FirstOfTasks, T>::TaskVector;

  [[nodiscard]] bool await_ready(
      std::source_location at = std::source_location::current()) const noexcept {
    if (this->tasks_.empty()) [[unlikely]]
      detail::fail_on_empty_range("when_any()", at);
    return detail::TaskVector<detail::FirstOfTasks, T>::await_ready(at);
  }

  FirstResult<T> await_resume() {
    std::size_t index = 0;
    while (!this->is_first(this->tasks_[index])) ++index;
    return {index, detail::TaskGroup::take(this->tasks_[index])};
  }
};

/// Runs the tasks or awaitables of a range until the first one ends, asks the others to stop, and
/// returns the result and the index of the first one when all have ended. Exceptions as above. The
/// range must not be empty: none of its tasks would ever end, so that aborts with a message.
///
///   auto [index, page] = co_await when_any(std::views::transform(mirrors, fetch));
template <AwaitableRange R>
  requires(!std::is_reference_v<detail::RangeResult<R>>)
WhenAnyOfRange<detail::RangeResult<R>> when_any(R&& range) {
  static_assert(
      detail::is_cancellable<std::ranges::range_value_t<R>>,
      "when_any() cannot cancel this awaitable: its await_suspend() takes a "
      "std::coroutine_handle<>, "
      "which has no stop token. Give it a member set_stop_token(std::stop_token), or make "
      "await_suspend() a template that takes std::coroutine_handle<Promise>, or write it with "
      "from_callback(). To wait for its end whenever that is, pass uncancellable(awaitable). See "
      "docs/awaitables.md.");
  return WhenAnyOfRange<detail::RangeResult<R>>(detail::tasks_of(std::forward<R>(range)));
}

/// A task and the sleep that limits it.
template <class T>
class [[nodiscard]] Timeout final : public detail::TaskTuple<detail::FirstOfTasks, T, Result<>> {
 public:
  using detail::TaskTuple<detail::FirstOfTasks, T, Result<>>::TaskTuple;

  detail::ResultOf<T> await_resume() {
    Task<T>& task = std::get<0>(this->tasks_);
    if (!this->is_first(task)) {
      const Result<> slept = std::get<1>(this->tasks_).promise().take();
      if (slept) {
        // The task may have succeeded although it was asked to stop: what it has received or sent
        // must not be lost.
        if constexpr (detail::is_result<T>) {
          if (task.promise().exception() == nullptr) {
            if (T late = task.promise().take()) return late;
          }
        }
        return std::unexpected(system_error(ETIMEDOUT));
      }
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
      return detail::ResultOf<T>(task.promise().take());
    }
  }
};

/// Runs a task, or another awaitable, for at most `limit`. Fails with ETIMEDOUT if the time limit
/// passed and the task was asked to stop, unless the task still returned a Result without an error.
/// Fails with ECANCELED if the awaiting task was asked to stop, unless the task returned another
/// result. Returns only after the task has ended: an awaitable that ignores stop requests, such as
/// a call of a WorkerPool that has begun, is awaited to its end. An awaitable that cannot be
/// cancelled at all does not compile. `timeout(limit, scope.join())` ends the wait, and the tasks
/// of the scope keep running.
///
///   auto got = co_await timeout(5s, stream.read(buffer));
///
/// Ownership: the returned Task owns the awaitable, but not the objects that it refers to, such as
/// the stream and the buffer.
template <AwaitableArgument A>
Task<detail::ResultOf<AwaitResult<A>>> timeout(Duration limit, A awaitable) {
  static_assert(
      detail::is_cancellable<A>,
      "timeout() cannot cancel this awaitable: its await_suspend() takes a "
      "std::coroutine_handle<>, "
      "which has no stop token. Give it a member set_stop_token(std::stop_token), or make "
      "await_suspend() a template that takes std::coroutine_handle<Promise>, or write it with "
      "from_callback(). To wait for its end whenever that is, pass uncancellable(awaitable). See "
      "docs/awaitables.md.");
  using T = AwaitResult<A>;
  return [](Duration duration, Task<T> task) -> Task<detail::ResultOf<T>> {
    Timeout<T> both(std::move(task), as_task(sleep_for(duration, {})));
    co_return co_await both;
  }(limit, as_task(std::move(awaitable)));
}

}  // namespace tambour

#pragma GCC visibility pop
