// Scenarios of tasks: channels, mutexes, calls on other loops, handles and callbacks.
#include <cerrno>
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
  auto first = jobs.spawn(twice(std::vector<int>(10, 1)));
  auto second = jobs.spawn(with_stop_token(stop.get_token(), sleep_for(std::chrono::hours(1))));
  auto third = jobs.spawn(as_task(uncancellable(sleep_for(std::chrono::hours(1)))));
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
