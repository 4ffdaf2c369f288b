// The memory of idle tasks: the sizes of what each coroutine frame contains.
#include <unistd.h>

#include <cerrno>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"

namespace tambour::frame_size_test {
namespace {

// A handler has an awaitable for each co_await expression in its frame, and its promise once.
TEST(TaskMemory, awaitables_and_promises_are_small) {
  EXPECT_LE(sizeof(detail::IoWait), 24U);
  EXPECT_LE(sizeof(Stream::ReadBuffer), 40U);
  EXPECT_LE(sizeof(Stream::WriteBuffer), 32U);
  EXPECT_LE(sizeof(TaskEvent::Wait), 104U);
  // Of these, what dumps of tasks need takes 16 bytes.
  EXPECT_LE(sizeof(detail::TaskPromise<void>), 72U);
}

TEST(TaskMemory, a_stop_cancels_the_waits_of_all_tasks_and_later_waits) {
  EventLoop loop;
  TaskScope scope(loop);
  const auto first = test::open_pipe();
  const auto second = test::open_pipe();
  int cancelled = 0;
  const auto wait_twice = [&](int fd) -> Task<> {
    PipeStream stream(loop, ::dup(fd));
    Buffer buffer;
    for (int i = 0; i < 2; ++i) {
      const auto got = co_await stream.read(buffer);
      if (!got && got.error() == system_error(ECANCELED)) ++cancelled;
    }
  };
  scope.spawn(wait_twice, first.near.get());
  scope.spawn(wait_twice, second.near.get());
  scope.request_stop();
  EXPECT_EQ(cancelled, 0) << "never from inside request_stop()";
  loop.run();
  EXPECT_EQ(cancelled, 4);
}

}  // namespace
}  // namespace tambour::frame_size_test
