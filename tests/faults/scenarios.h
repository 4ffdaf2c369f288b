// Scenarios: complete uses of a loop, in which any step can be made to fail.
//
// A scenario returns no error if it succeeded, and otherwise the error that it received in one of
// the documented ways. It fails the test if an expected callback was not invoked, and it always
// undoes its steps. If an allocation fails, it throws std::bad_alloc.
#pragma once

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::test {

struct Scenario {
  const char* name;
  Error (*play)(EventLoop& loop);
};

const std::vector<Scenario>& all_scenarios();

/// Runs the loop until `done` returns true. Fails the test after a minute.
template <class Done>
void run_until(EventLoop& loop, Done&& done, const char* text) {
  bool late = false;
  Timer limit(loop, [&late] { late = true; });
  limit.start(std::chrono::minutes(1));
  while (!done() && !late) loop.run_once();
  EXPECT_TRUE(done()) << text << " did not happen in time";
}

/// Bytes that go through a pipe and are read by a watcher.
Error play_echo(EventLoop& loop);

// Scenarios of tasks (task_scenarios.cpp).
Error play_channels(EventLoop& loop);
Error play_shared_channels(EventLoop& loop);
Error play_signal_set(EventLoop& loop);
Error play_calls_on_another_loop(EventLoop& loop);
Error play_handles(EventLoop& loop);

// Scenarios of names of files (file_scenarios.cpp).
Error play_names(EventLoop& loop);
Error play_watcher(EventLoop& loop);

// Network scenarios (network_scenarios.cpp).
Error play_datagrams(EventLoop& loop);
Error play_streams(EventLoop& loop);
Error play_connections(EventLoop& loop);
Error play_unix(EventLoop& loop);
Error play_unix_server(EventLoop& loop);
Error play_pipes(EventLoop& loop);

/// Tasks that another thread posts while the loop waits.
Error play_posting(EventLoop& loop);

}  // namespace tambour::test
