// Combinators accept every awaitable of the library, and those of other libraries.
#include <chrono>
#include <coroutine>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::awaitables_test {
namespace {

using namespace std::chrono_literals;

/// True if timeout(), when_all() and when_any() accept it.
template <class A>
concept IsAccepted = AwaitableArgument<A> && requires(A& awaitable) {
  timeout(1s, std::move(awaitable));
  when_all(std::move(awaitable));
  when_any(std::move(awaitable));
};

[[maybe_unused]] int function() { return 0; }

// The awaitables of the library. A new one belongs here.
static_assert(IsAccepted<Task<int>>);
static_assert(IsAccepted<decltype(sleep_for(1s))>);
static_assert(IsAccepted<decltype(wait_ready(0, Events::read))>);
static_assert(IsAccepted<decltype(when_all(sleep_for(1s)))>);
static_assert(IsAccepted<decltype(when_any(sleep_for(1s)))>);
static_assert(IsAccepted<decltype(timeout(1s, sleep_for(1s)))>);
static_assert(IsAccepted<decltype(std::declval<TaskScope&>().join())>);
static_assert(IsAccepted<decltype(std::declval<JoinHandle<int>&>().join())>);
static_assert(IsAccepted<decltype(std::declval<TaskScope&>().shut_down(1s))>);
static_assert(IsAccepted<decltype(uncancellable(sleep_for(1s)))>);
static_assert(IsAccepted<decltype(from_callback<int>([](Completion<int>) {}))>);
static_assert(IsAccepted<decltype(std::declval<TaskEvent&>().wait())>);
static_assert(IsAccepted<decltype(std::declval<TaskChannel<int>&>().send(1))>);
static_assert(IsAccepted<decltype(std::declval<TaskChannel<int>&>().receive())>);
static_assert(IsAccepted<decltype(std::declval<TaskMutex&>().lock())>);
static_assert(IsAccepted<decltype(when_all(std::vector<SleepFor>()))>);
static_assert(IsAccepted<decltype(when_any(std::vector<SleepFor>()))>);
static_assert(IsAccepted<decltype(std::declval<WorkerPool&>().run(function))>);
static_assert(IsAccepted<decltype(run_on(std::declval<EventLoop&>(), function))>);
static_assert(IsAccepted<decltype(File::open(""))>);
static_assert(IsAccepted<decltype(std::declval<File&>().read_at({}, 0))>);
static_assert(IsAccepted<decltype(std::declval<File&>().write_at("", 0))>);
using Bytes = std::span<std::byte>;
static_assert(IsAccepted<decltype(std::declval<Stream&>().read(Bytes()))>);
static_assert(IsAccepted<decltype(std::declval<Stream&>().read(std::declval<Buffer&>()))>);
static_assert(IsAccepted<decltype(std::declval<Stream&>().write(""))>);
static_assert(IsAccepted<decltype(std::declval<Stream&>().write(std::declval<Buffer&>()))>);
static_assert(IsAccepted<decltype(read_line(std::declval<Stream&>(), std::declval<Buffer&>()))>);
static_assert(IsAccepted<decltype(TcpStream::connect(Endpoint()))>);
static_assert(IsAccepted<decltype(connect(""))>);
static_assert(IsAccepted<decltype(std::declval<TcpServer&>().accept())>);
static_assert(IsAccepted<decltype(std::declval<TcpServer&>().shut_down(1s))>);
static_assert(IsAccepted<decltype(std::declval<UnixStream&>().receive(Bytes()))>);
using Datagrams = DatagramBatch&;
static_assert(IsAccepted<decltype(std::declval<UdpSocket&>().receive(std::declval<Datagrams>()))>);
static_assert(IsAccepted<decltype(std::declval<UdpSocket&>().send(std::declval<Datagrams>()))>);
static_assert(IsAccepted<decltype(std::declval<UdpSocket&>().send_to({}, Endpoint()))>);
static_assert(IsAccepted<decltype(std::declval<Process&>().wait())>);

static_assert(IsAccepted<decltype(std::declval<File&>().sync())>);
static_assert(IsAccepted<decltype(std::declval<File&>().truncate(0))>);
static_assert(IsAccepted<decltype(std::declval<File&>().size())>);

static_assert(!AwaitableArgument<int>);
static_assert(!AwaitableArgument<int (*)()>);
static_assert(std::is_same_v<decltype(timeout(1s, sleep_for(1s))), Task<Result<>>>);

/// The awaitables of other libraries: an awaiter, a member and a free operator co_await.
struct Ready {
  int value = 0;
  [[nodiscard]] static bool await_ready() noexcept { return true; }
  static void await_suspend(std::coroutine_handle<> /*awaiting*/) noexcept {}
  [[nodiscard]] int await_resume() const noexcept { return value; }
};
class WithMember {
 public:
  explicit WithMember(int value) : value_(value) {}
  Ready operator co_await() && noexcept { return {value_}; }

 private:
  int value_;
};
class WithFree {
 public:
  explicit WithFree(int number) : value(number) {}
  int value;
};
Ready operator co_await(WithFree&& awaitable) noexcept { return {awaitable.value}; }

class Immovable {
 public:
  explicit Immovable(int value) : value_(value) {}
  Immovable(const Immovable&) = delete;
  Immovable& operator=(const Immovable&) = delete;
  Ready operator co_await() noexcept { return {value_}; }

 private:
  int value_;
};
static_assert(!AwaitableArgument<Immovable>);
static_assert(IsAccepted<Immovable (*)()>);
static_assert(IsAccepted<std::suspend_always>);

class Awaitables : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(Awaitables);

TEST_P(Awaitables, every_form_of_awaitable_is_accepted) {
  run([]() -> Task<> {
    Ready awaiter;
    awaiter.value = 1;
    const auto [one, two, three, four] =
        co_await when_all(awaiter, WithMember(2), WithFree(3), [] { return Immovable(4); });
    EXPECT_EQ(one, 1);
    EXPECT_EQ(two, 2);
    EXPECT_EQ(three, 3);
    EXPECT_EQ(four, 4);
    const auto first = co_await when_any(sleep_for(1h), uncancellable(WithFree(5)));
    EXPECT_EQ(std::get<1>(first), 5);
    EXPECT_EQ(co_await timeout(1h, uncancellable(WithMember(6))), Result<int>(6));
  }());
}

/// An awaiter that is completed by hand, and gets the stop token of its task.
struct Stoppable {
  void set_stop_token(std::stop_token token) noexcept { stop = std::move(token); }
  [[nodiscard]] static bool await_ready() noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> awaiting) {
    if (stop.stop_requested()) return false;
    handle = awaiting;
    callback.emplace(stop, Resume{this});
    return true;
  }
  [[nodiscard]] bool await_resume() const noexcept { return stop.stop_requested(); }

  struct Resume {
    Stoppable* self;
    void operator()() const noexcept {
      EventLoop& loop = *self->loop;
      loop.post([self = self] { self->handle.resume(); });
    }
  };
  explicit Stoppable(EventLoop& of) : loop(&of) {}
  /// GCC 12 moves an awaiter before it awaits it.
  Stoppable(Stoppable&& other) noexcept : loop(other.loop), stop(std::move(other.stop)) {}
  Stoppable& operator=(Stoppable&&) = delete;
  ~Stoppable() = default;
  EventLoop* loop;
  std::stop_token stop;
  std::coroutine_handle<> handle;
  std::optional<std::stop_callback<Resume>> callback;
};

/// Its await_suspend() gets the context of the task.
struct SeesTheTask {
  [[nodiscard]] static bool await_ready() noexcept { return true; }
  template <HasTaskContext Promise>
  static void await_suspend(std::coroutine_handle<Promise> /*awaiting*/) noexcept {}
  static void await_resume() noexcept {}
};

static_assert(detail::is_cancellable<Task<int>>);
static_assert(detail::is_cancellable<SleepFor>);
static_assert(detail::is_cancellable<TaskScope::Join>);
static_assert(detail::is_cancellable<TaskEvent::Wait>);
static_assert(detail::is_cancellable<decltype(from_callback<int>([](Completion<int>) {}))>);
static_assert(detail::is_cancellable<decltype(uncancellable(std::suspend_always()))>);
static_assert(detail::is_cancellable<SeesTheTask>);
static_assert(detail::is_cancellable<Stoppable>);
static_assert(detail::is_cancellable<Stoppable (*)()>);
static_assert(detail::is_cancellable<Task<int> (*)()>);
static_assert(!detail::is_cancellable<std::suspend_always>);
static_assert(!detail::is_cancellable<Ready>);
static_assert(!detail::is_cancellable<WithMember>);
static_assert(!detail::is_cancellable<WithFree>);
static_assert(!detail::is_cancellable<Immovable (*)()>);

TEST_P(Awaitables, an_awaitable_that_takes_a_stop_token_can_be_cancelled) {
  run([](EventLoop& loop) -> Task<> {
    EXPECT_EQ((co_await timeout(1ms, Stoppable(loop))).error(), system_error(ETIMEDOUT));
    EXPECT_EQ((co_await timeout(1ms, [&] { return Stoppable(loop); })).error(),
              system_error(ETIMEDOUT));
    const auto first = co_await when_any(Stoppable(loop), sleep_for(1ms));
    EXPECT_EQ(first.index(), 1U);
    std::vector<Stoppable> range;
    range.emplace_back(loop);
    EXPECT_EQ((co_await timeout(1ms, when_all(std::move(range)))).error(), system_error(ETIMEDOUT));
  }(loop()));
}

TEST_P(Awaitables, uncancellable_ignores_stop_requests) {
  TaskScope scope(loop());
  std::vector<std::string> log;
  scope.spawn([](std::vector<std::string>& to) -> Task<> {
    const Result<> whole = co_await uncancellable(sleep_for(2ms));
    to.emplace_back(whole ? "whole" : "stopped");
    const Result<> limited = co_await uncancellable(timeout(1ms, sleep_for(1h)));
    to.push_back(limited.error().message());
    const Result<> after = co_await sleep_for(1h);
    to.push_back(after.error().message());
  }(log));
  scope.request_stop();
  loop().run();
  EXPECT_EQ(log, (std::vector<std::string>{"whole", system_error(ETIMEDOUT).message(),
                                           system_error(ECANCELED).message()}));
  // The frame of the task may be destroyed during the wait.
  scope.spawn(as_task(uncancellable(sleep_for(1h))));
}

TEST_P(Awaitables, a_time_limit_ends_every_wait) {
  run([](EventLoop& loop) -> Task<> {
    const Error expired = system_error(ETIMEDOUT);
    EXPECT_EQ((co_await timeout(1ms, sleep_for(1h))).error(), expired);
    TaskEvent event(loop);
    EXPECT_EQ((co_await timeout(1ms, event.wait())).error(), expired);
    const test::Ends ends = test::open_pipe();
    EXPECT_EQ((co_await timeout(1ms, wait_ready(ends.near.get(), Events::read))).error(), expired);
    EXPECT_EQ((co_await timeout(1ms, when_all(sleep_for(1h), sleep_for(2h)))).error(), expired);
    const auto both = co_await when_all(timeout(1ms, event.wait()), timeout(1ms, sleep_for(1h)));
    EXPECT_EQ(std::get<0>(both).error(), expired);
    EXPECT_EQ(std::get<1>(both).error(), expired);
  }(loop()));
}

TEST_P(Awaitables, a_time_limit_does_not_change_results) {
  run([](EventLoop& loop) -> Task<> {
    EXPECT_TRUE(co_await timeout(1h, sleep_for(1ms)));
    TaskEvent event(loop);
    event.set();
    EXPECT_TRUE(co_await timeout(1h, event.wait()));
    test::Ends ends = test::open_pipe();
    test::write_to(ends.far);
    EXPECT_TRUE(co_await timeout(1h, wait_ready(ends.near.get(), Events::read)));
    TaskScope scope(loop);
    scope.spawn(as_task(sleep_for(1ms)));
    EXPECT_TRUE(co_await timeout(1h, scope.join()));
    EXPECT_EQ(co_await timeout(1h, WorkerPool::shared().run([] { return 7; })), Result<int>(7));
  }(loop()));
}

TEST_P(Awaitables, a_time_limit_ends_the_wait_in_join_but_not_the_tasks) {
  run([](EventLoop& loop) -> Task<> {
    TaskScope scope(loop);
    TaskEvent event(loop);
    bool ended = false;
    scope.spawn([](TaskEvent& awaited, bool& done) -> Task<> {
      static_cast<void>(co_await awaited.wait());
      done = true;
    }(event, ended));
    EXPECT_EQ((co_await timeout(1ms, scope.join())).error(), system_error(ETIMEDOUT));
    EXPECT_FALSE(scope.stop_requested());
    EXPECT_EQ(scope.size(), 1U);
    const auto first = co_await when_any(scope.join(), sleep_for(1ms));
    EXPECT_EQ(first.index(), 1U);
    event.set();
    EXPECT_TRUE(co_await timeout(1h, scope.join()));
    EXPECT_TRUE(ended);
  }(loop()));
}

TEST_P(Awaitables, a_join_that_is_stopped_leaves_the_exception_to_the_next_one) {
  run([](EventLoop& loop) -> Task<> {
    TaskScope scope(loop);
    TaskEvent event(loop);
    scope.spawn([](TaskEvent& awaited) -> Task<> {
      static_cast<void>(co_await awaited.wait());
      throw std::runtime_error("failed");
    }(event));
    EXPECT_EQ((co_await timeout(1ms, scope.join())).error(), system_error(ETIMEDOUT));
    event.set();
    EXPECT_THROW(static_cast<void>(co_await timeout(1h, scope.join())), std::runtime_error);
  }(loop()));
}

TEST_P(Awaitables, a_time_limit_for_a_join_fails_if_its_task_is_stopped) {
  TaskScope outer(loop());
  std::vector<Error> errors;
  outer.spawn([](EventLoop& loop, std::vector<Error>& seen) -> Task<> {
    TaskScope scope(loop);
    scope.spawn(as_task(sleep_for(1h)));
    const Result<> joined = co_await timeout(2h, scope.join());
    if (!joined) seen.push_back(joined.error());
  }(loop(), errors));
  outer.request_stop();
  loop().run();
  EXPECT_EQ(errors, std::vector<Error>{system_error(ECANCELED)});
}

TEST_P(Awaitables, a_join_ends_when_its_scope_is_destroyed_after_it_was_stopped) {
  std::optional<TaskScope> scope(std::in_place, loop());
  TaskScope waiting(loop());
  scope->spawn(as_task(sleep_for(1h)));
  int ended = 0;
  const auto wait = [](TaskScope& joined, int& count) -> Task<> {
    static_cast<void>(co_await timeout(2h, joined.join()));
    ++count;
  };
  waiting.spawn(wait(*scope, ended));
  waiting.spawn(wait(*scope, ended));
  waiting.request_stop();
  scope.reset();
  loop().run();
  EXPECT_EQ(ended, 2);
}

/// What a task has received in spite of the stop must not be lost.
TEST_P(Awaitables, a_success_after_the_time_limit_is_returned) {
  run([]() -> Task<> {
    auto late = [](Result<int> outcome) -> Task<Result<int>> {
      static_cast<void>(co_await sleep_for(1h));
      co_return outcome;
    };
    EXPECT_EQ(co_await timeout(1ms, late(5)), Result<int>(5));
    const Result<int> failed = std::unexpected(system_error(EIO));
    EXPECT_EQ((co_await timeout(1ms, late(failed))).error(), system_error(ETIMEDOUT));
    auto throws = []() -> Task<Result<int>> {
      static_cast<void>(co_await sleep_for(1h));
      throw std::runtime_error("late");
    };
    EXPECT_EQ((co_await timeout(1ms, throws())).error(), system_error(ETIMEDOUT));
  }());
}

TEST_P(Awaitables, file_operations_are_accepted) {
  run([]() -> Task<> {
    const auto missing = co_await timeout(1h, File::open("/nonexistent/file"));
    EXPECT_EQ(missing.error(), system_error(ENOENT));
    auto file = co_await timeout(1h, File::open("/proc/self/exe"));
    if (!file) throw std::system_error(file.error());
    std::array<std::byte, 4> start{};
    EXPECT_EQ(co_await timeout(1h, file->read_at(start, 0)), Result<std::size_t>(4));
    EXPECT_EQ(start[1], std::byte('E'));
    const auto size = co_await timeout(1h, [&file] { return file->size(); });
    EXPECT_GT(size.value(), 4U);
  }());
}

TEST_P(Awaitables, stream_operations_are_accepted) {
  run([](EventLoop& loop) -> Task<> {
    auto [left, right] = UnixStream::pair(loop).value();
    Buffer buffer;
    EXPECT_EQ((co_await timeout(1ms, left.read(buffer))).error(), system_error(ETIMEDOUT));
    EXPECT_TRUE(co_await timeout(1h, right.write("hello\n")));
    EXPECT_EQ(co_await timeout(1h, left.read(buffer)), Result<std::size_t>(6));
    std::array<std::byte, 8> bytes{};
    const auto [wrote, got] = co_await when_all(right.write("again"), left.read(bytes));
    EXPECT_TRUE(wrote);
    EXPECT_EQ(got, Result<std::size_t>(5));
    // A wait that is never awaited has no effect on its stream.
    {
      auto unused = left.read(bytes);
    }
    auto moved = left.read(bytes);
    auto limited = timeout(1ms, std::move(moved));
    EXPECT_EQ((co_await std::move(limited)).error(), system_error(ETIMEDOUT));
  }(loop()));
}

TEST_P(Awaitables, datagram_operations_are_accepted) {
  run([](EventLoop& loop) -> Task<> {
    auto to = UdpSocket::bind(loop, Endpoint::loopback_v4(0)).value();
    auto from = UdpSocket::bind(loop, Endpoint::loopback_v4(0)).value();
    const Endpoint there = to.local_endpoint().value();
    const std::string text = "datagram";
    const auto bytes = std::as_bytes(std::span(text));
    EXPECT_TRUE(co_await timeout(1h, from.send_to(bytes, there)));
    EXPECT_TRUE(co_await timeout(1h, from.send_segments(bytes, 3, there)));
    EXPECT_EQ((co_await timeout(1h, from.send_segments(bytes, 0, there))).error(),
              system_error(EINVAL));
    DatagramBatch batch;
    std::size_t received = 0;
    while (received < 4) received += (co_await timeout(1h, to.receive(batch))).value();
    EXPECT_EQ(received, 4U);
    EXPECT_EQ((co_await timeout(1ms, to.receive(batch))).error(), system_error(ETIMEDOUT));
  }(loop()));
}

/// The frame owns the awaitable: a temporary may be destroyed before the task starts.
TEST_P(Awaitables, the_task_owns_the_awaitable) {
  auto value = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = value;
  struct Owner {
    explicit Owner(std::shared_ptr<int> kept) : owned(std::move(kept)) {}
    SleepFor operator co_await() && noexcept { return sleep_for(1h); }
    std::shared_ptr<int> owned;
  };
  {
    TaskScope scope(loop());
    auto task = timeout(1h, Owner(std::move(value)));
    EXPECT_FALSE(watched.expired());
    scope.spawn(std::move(task));
    run_iterations();
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

TEST_P(Awaitables, moving_an_awaited_wait_aborts) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        EventLoop other(options());
        std::optional<TaskEvent::Wait> wait;
        TaskEvent event(other);
        wait.emplace(event.wait());
        spawn(other, [](TaskEvent::Wait& local) -> Task<> { co_await local; }(*wait));
        auto moved = std::move(*wait);
      },
      "TaskEvent::wait.. returned was moved after it was awaited");
}

}  // namespace
}  // namespace tambour::awaitables_test
