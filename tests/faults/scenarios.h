// What programs do with a loop, each from start to end, so that any step of it can be made to fail.
//
// A scenario says that it worked, or which error it was told in one of the documented ways; it
// fails the test where something was not called that should have been, and takes its steps back in
// any case. Memory that it asks for may be refused: std::bad_alloc leaves it.
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

/// Runs until `done`; five seconds without it are a hang.
template <class Done>
void run_until(EventLoop& loop, Done&& done, const char* what) {
  bool late = false;
  Timer limit(loop, [&late] { late = true; });
  limit.start(std::chrono::seconds(5));
  while (!done() && !late) loop.run_once();
  EXPECT_TRUE(done()) << what << " did not come";
}

/// Lines that go through a pipe and are read by a watcher.
Error play_echo(EventLoop& loop);

// What goes over the network (network_scenarios.cpp).
Error play_datagrams(EventLoop& loop);
Error play_streams(EventLoop& loop);
Error play_connections(EventLoop& loop);
Error play_unix(EventLoop& loop);
Error play_unix_server(EventLoop& loop);
Error play_pipes(EventLoop& loop);

/// Tasks that another thread posts while the loop sleeps.
Error play_posting(EventLoop& loop);

}  // namespace tambour::test
