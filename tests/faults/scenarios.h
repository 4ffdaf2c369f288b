// What programs do with a loop, each from start to end, so that any step of it can be made to fail.
//
// A scenario says that it worked, or which error it was told in one of the documented ways; it
// fails the test where something was not called that should have been, and takes its steps back in
// any case. Memory that it asks for may be refused: std::bad_alloc leaves it.
#pragma once

#include <span>

#include <tambour/tambour.h>

namespace tambour::test {

struct Scenario {
  const char* name;
  Error (*play)(EventLoop& loop);
};

std::span<const Scenario> all_scenarios();

/// Lines that go through a pipe and are read by a watcher.
Error play_echo(EventLoop& loop);

/// Tasks that another thread posts while the loop sleeps.
Error play_posting(EventLoop& loop);

}  // namespace tambour::test
