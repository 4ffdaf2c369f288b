// State for each loop of a group: a database connection, a cache, an HTTP client.
//
//   LoopGroup group;
//   PerLoop<Database> databases(group, [&](EventLoop& loop) { return connect(loop, address); });
//   auto handler = [&](http::Request& request, http::Response& response) {
//     return show_user(databases.local(), request, response);
//   };
//   auto server = or_throw(http::ServerGroup::listen(group, at, handler));
//
// Each object is used by one thread, so it needs no lock.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/awaitable.h>
#include <tambour/task/task.h>
#include <tambour/threads/loop_group.h>

namespace tambour::detail::threads {
class LoopStates;
class PerLoopObjects;
}  // namespace tambour::detail::threads

#pragma GCC visibility push(default)

namespace tambour {

namespace detail {

/// The object of one loop.
class LoopState {
 public:
  LoopState(const LoopState&) = delete;
  LoopState& operator=(const LoopState&) = delete;
  virtual ~LoopState() = default;

 protected:
  LoopState() = default;
};

/// The part of PerLoop that does not depend on the type of the objects.
class PerLoopBase {
 public:
  PerLoopBase(const PerLoopBase&) = delete;
  PerLoopBase& operator=(const PerLoopBase&) = delete;

 protected:
  using Build = std::function<Task<std::unique_ptr<LoopState>>(EventLoop&)>;

  /// Runs `build` on each loop and waits for all.
  PerLoopBase(LoopGroup& group, const Build& build);
  ~PerLoopBase();

  /// `function` is the public function, for messages.
  [[nodiscard]] LoopState& local(const char* function) const noexcept;

 private:
  LoopGroup& group_;
  std::weak_ptr<const void> group_exists_;
  std::shared_ptr<threads::PerLoopObjects> objects_;
};

template <class T>
struct LoopStateOf final : LoopState {
  template <class Make>
  explicit LoopStateOf(const Make& make) : value(make()) {}
  T value;
};

/// The return type of a factory of PerLoop<T>: T, Result<T>, Task<T> or Task<Result<T>>.
template <class R>
struct MadeByFactory {
  using Type = R;
};
template <class R>
struct MadeByFactory<Task<R>> : MadeByFactory<R> {};
template <class R, class E>
struct MadeByFactory<Result<R, E>> : MadeByFactory<R> {};
template <class R, class E>
struct MadeByFactory<std::expected<R, E>> : MadeByFactory<R> {};

}  // namespace detail

/// A function that creates the T of a loop.
template <class F, class T>
concept LoopStateFactory =
    std::copy_constructible<F> && std::invocable<const F&, EventLoop&> &&
    std::same_as<typename detail::MadeByFactory<std::invoke_result_t<const F&, EventLoop&>>::Type,
                 T>;

/// Owns one T for each loop of a group.
///
/// Thread: each T is constructed, used and destroyed on the thread of its loop. The PerLoop itself
/// must be constructed and destroyed on a thread outside the group, for which both wait.
/// Lifetime: the objects are destroyed with the PerLoop, or when the group stops, whichever is
/// first; at a stop, after the tasks and connections of their loops, which may refer to them.
/// Destroy a server whose handlers use the PerLoop before the PerLoop: declare it afterwards. The
/// group must exist until the PerLoop is destroyed, but may have stopped: then the destructor waits
/// until the loops have destroyed the objects.
/// Memory: the destructor allocates, to post to the loops. If that fails, the program terminates.
template <class T>
class PerLoop final : private detail::PerLoopBase {
 public:
  /// Invokes `factory(loop)` on the thread of each loop, concurrently, and returns when all objects
  /// exist. The factory returns a T, which need not be movable, a Result<T>, or a Task of either:
  /// it may await a connection, for example. Throws the first exception of a factory, or
  /// std::system_error with the error of its Result, after the other objects have been destroyed;
  /// std::system_error with ECANCELED if the group has been stopped; and like EventLoop::post().
  template <LoopStateFactory<T> Factory>
  PerLoop(LoopGroup& group, Factory factory)
      : PerLoopBase(group, [factory = std::move(factory)](EventLoop& loop) {
          return build(factory, loop);
        }) {}

  /// Constructs each T with `EventLoop&` if it has such a constructor, otherwise without arguments.
  explicit PerLoop(LoopGroup& group)
    requires std::constructible_from<T, EventLoop&> || std::default_initializable<T>
      : PerLoopBase(group, [](EventLoop& loop) { return build(&construct, loop); }) {}

  /// The object of the calling thread's loop. Aborts with a message if the thread does not belong
  /// to the group, or if the object has been destroyed because the group stops.
  [[nodiscard]] T& local() const noexcept {
    return static_cast<State&>(PerLoopBase::local("PerLoop::local()")).value;
  }
  [[nodiscard]] T* operator->() const noexcept { return &local(); }
  [[nodiscard]] T& operator*() const noexcept { return local(); }

 private:
  using State = detail::LoopStateOf<T>;
  using Built = std::unique_ptr<detail::LoopState>;

  static T construct(EventLoop& loop) {
    if constexpr (std::constructible_from<T, EventLoop&>) {
      return T(loop);
    } else {
      return T();
    }
  }

  /// Constructs the object in place, because it may be unmovable.
  template <class Factory>
  static Task<Built> build(Factory factory, EventLoop& loop) {
    using Made = std::invoke_result_t<const Factory&, EventLoop&>;
    if constexpr (detail::is_task<Made>) {
      auto result = co_await std::invoke(factory, loop);
      const auto take = [&result]() -> T { return take_value(std::move(result)); };
      co_return std::make_unique<State>(take);
    } else if constexpr (std::same_as<Made, T>) {
      const auto make = [&]() -> T { return std::invoke(factory, loop); };
      co_return std::make_unique<State>(make);
    } else {
      const auto make = [&]() -> T { return take_value(std::invoke(factory, loop)); };
      co_return std::make_unique<State>(make);
    }
  }

  template <class Made>
  static T take_value(Made&& result) {
    if constexpr (std::same_as<std::remove_cvref_t<Made>, T>) {
      return std::forward<Made>(result);
    } else {
      return or_throw(std::forward<Made>(result), "PerLoop");
    }
  }
};

}  // namespace tambour

#pragma GCC visibility pop
