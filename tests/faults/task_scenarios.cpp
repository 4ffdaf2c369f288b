// Scenarios of tasks: channels, mutexes, semaphores, signals, calls on other loops, handles and
// callbacks.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "faults/scenarios.h"

namespace tambour::test {
namespace {

Task<> receive_all(TaskChannel<std::string>& from, TaskMutex& mutex, int& count) {
  while (auto item = co_await from.receive()) {
    const auto guard = co_await mutex.lock();
    EXPECT_TRUE(guard);
    ++count;
  }
}

Task<> send_all(TaskChannel<std::string>& to, int items) {
  for (int i = 0; i < items; ++i) {
    if (!co_await to.send("an item that is too long for the buffer of a string")) co_return;
  }
}

Task<Result<int>> twice(std::vector<int> numbers) {
  co_await sleep_for(std::chrono::seconds(0));
  co_return 2 * numbers.front();
}

/// Handles of tasks, one of which is stopped and one cancelled, and a callback.
Task<int> use_handles(EventLoop& loop) {
  std::stop_source stop;
  TaskScope jobs(loop);
  // If a task throws and a second allocation fails, use_handles() ends before it joins that task.
  jobs.set_exception_handler([](const std::exception_ptr&) {});
  auto first = jobs.spawn(twice(std::vector<int>(10, 1)));
  auto second = jobs.spawn(with_stop_token(stop.get_token(), sleep_for(std::chrono::hours(1))));
  auto third = jobs.spawn(as_task(uncancellable(sleep_for(std::chrono::hours(1)))));
  EXPECT_NE(dump_tasks(loop).find("sleep"), std::string::npos);
  stop.request_stop();
  const Result<> stopped = co_await second.join();
  EXPECT_EQ(stopped.error(), system_error(ECANCELED));
  third.cancel();
  auto start = [&loop](const Completion<int>& done) {
    done.on_stop([](const Completion<int>& late) { late.fail(system_error(ECANCELED)); });
    loop.post([done] { done.complete(3); });
  };
  const Result<int> called = co_await from_callback<int>(start);
  const Result<int> doubled = co_await first.join();
  co_await jobs.shut_down(std::chrono::seconds(0));
  co_return called.value() + doubled.value();
}

}  // namespace

Error play_channels(EventLoop& loop) {
  Error error;
  TaskMutex mutex(loop);
  TaskChannel<std::string> channel(loop, 2);
  int received = 0;
  TaskScope scope(loop);
  // Allocations of the tasks throw.
  scope.set_exception_handler([&](const std::exception_ptr&) {
    error = system_error(ENOMEM);
    channel.close();
  });
  for (int i = 0; i < 2; ++i) scope.spawn(receive_all(channel, mutex, received));
  scope.spawn(
      [](TaskChannel<std::string>& to) -> Task<> {
        std::vector<Task<>> senders;
        for (int i = 0; i < 3; ++i) senders.push_back(send_all(to, 4));
        co_await when_all(std::move(senders));
        to.close();
      },
      std::ref(channel));
  run_until(loop, [&] { return scope.empty(); }, "the end of the channel");
  EXPECT_EQ(error ? 12 : received, 12);
  return error;
}

namespace {

struct Shared {
  explicit Shared(EventLoop& loop) : semaphore(loop, 1) {}
  ConcurrentChannel<std::string> channel{2};
  Broadcast<std::string> broadcast{16};
  Watch<std::string> watch{"an initial value that is too long for the buffer of a string"};
  TaskSemaphore semaphore;
  int received = 0;
};

/// Passes each item on to the broadcast.
Task<> forward_all(Shared& shared) {
  while (auto item = co_await shared.channel.receive()) {
    const auto permit = co_await shared.semaphore.acquire();
    EXPECT_TRUE(permit);
    ++shared.received;
    if (!shared.broadcast.send(*std::move(item))) co_return;
  }
}

Task<> send_shared(Shared& shared) {
  for (int i = 0; i < 6; ++i) {
    if (!co_await shared.channel.send("an item that is too long for the buffer of a string"))
      co_return;
  }
  shared.channel.close();
  shared.watch.set("another value that is too long for the buffer of a string");
}

/// Ends when the value has changed and all messages have been received.
Task<> select_all(EventLoop& loop, Shared& shared, Broadcast<std::string>::Receiver from,
                  Watch<std::string>::Receiver watched) {
  Interval interval(loop, std::chrono::hours(1));
  int messages = 0;
  for (bool has_changed = false; !has_changed || messages < shared.received || messages < 6;) {
    const auto first = co_await select(from.receive(), watched.changed(), interval.tick());
    if (first.index() == 0) {
      if (!std::get<0>(first)) co_return;
      ++messages;
    } else {
      if (!std::get<1>(first)) co_return;
      has_changed = true;
    }
  }
}

}  // namespace

Error play_shared_channels(EventLoop& loop) {
  Error error;
  Shared shared(loop);
  TaskScope scope(loop);
  // Allocations of the tasks throw.
  scope.set_exception_handler([&](const std::exception_ptr&) {
    error = system_error(ENOMEM);
    shared.channel.close();
    shared.broadcast.close();
    shared.watch.close();
  });
  scope.spawn(select_all, std::ref(loop), std::ref(shared), shared.broadcast.subscribe(),
              shared.watch.subscribe());
  scope.spawn(forward_all, std::ref(shared));
  scope.spawn(send_shared, std::ref(shared));
  run_until(loop, [&] { return scope.empty(); }, "the end of the channels");
  EXPECT_EQ(error ? 6 : shared.received, 6);
  return error;
}

Error play_signal_set(EventLoop& loop) {
  Error error;
  TaskScope scope(loop);
  scope.set_exception_handler(
      [&error](const std::exception_ptr&) { error = system_error(ENOMEM); });
  scope.spawn(
      [](EventLoop& here, Error& reported) -> Task<> {
        auto signals = SignalSet::open(here, {SIGUSR1, SIGUSR2});
        if (!signals) {
          reported = signals.error();
          co_return;
        }
        ::raise(SIGUSR2);
        const auto signal = co_await signals->next();
        EXPECT_EQ(signal, Result<int>(SIGUSR2));
        // The wall clock needs a timerfd.
        const auto slept = co_await sleep_until(WallTime());
        if (!slept) reported = slept.error();
      },
      std::ref(loop), std::ref(error));
  run_until(loop, [&] { return scope.empty(); }, "the signal");
  return error;
}

Error play_calls_on_another_loop(EventLoop& loop) {
  LoopOptions options;
  options.backend = BackendKind::poll;
  const auto opened = EventLoop::open(options);
  if (!opened) return opened.error();
  EventLoop& other = **opened;
  Error error;
  int sum = 0;
  TaskScope scope(loop);
  // Allocations of the tasks throw.
  scope.set_exception_handler(
      [&error](const std::exception_ptr&) { error = system_error(ENOMEM); });
  for (int i = 1; i <= 3; ++i) {
    scope.spawn(
        [](EventLoop& to, int number, int& total, Error& reported) -> Task<> {
          const auto got = co_await run_on(to, twice, std::vector<int>(10, number));
          if (!got) reported = got.error();
          total += got.value_or(0);
        },
        std::ref(other), i, std::ref(sum), std::ref(error));
  }
  const auto done = [&] {
    // The other loop belongs to this thread as well.
    other.run();
    return scope.empty();
  };
  run_until(loop, done, "the end of the calls");
  EXPECT_EQ(error ? 12 : sum, 12);
  return error;
}

Error play_handles(EventLoop& loop) {
  // A failed allocation leaves the task as an exception.
  EXPECT_EQ(block_on(loop, use_handles(loop)), 5);
  return {};
}

}  // namespace tambour::test
