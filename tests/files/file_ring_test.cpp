// File operations on the ring of a loop: its own one, or that next to epoll, poll or select.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tambour/detail/file_operation.h>
#include <tambour/events/embedded_loop.h>
#include <tambour/file/file.h>
#include <tambour/task/scope.h>

#include "loop/core.h"
#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/scale.h"
#include "support/temporary_folder.h"

namespace tambour::file_ring_test {
namespace {

using namespace std::chrono_literals;

detail::backend::Backend& backend_of(EventLoop& loop) {
  return detail::loop::core_of(loop).backend();
}

bool has_ring(EventLoop& loop) {
  return backend_of(loop).supports(detail::OperationKind::file_read);
}

/// A read that is in progress until the pipe gets a byte.
struct PipeRead : detail::FileOperation {
  PipeRead()
      : detail::FileOperation(detail::OperationKind::file_read, &note), pipe(test::open_pipe()) {
    // If the file is non-blocking, the ring does not wait.
    EXPECT_EQ(::fcntl(pipe.near.get(), F_SETFL, 0), 0);
    fd = pipe.near.get();
    data = &byte;
    size = 1;
  }
  static void note(detail::ReadyNode& ready) { ++static_cast<PipeRead&>(ready).calls; }
  test::Ends pipe;
  char byte = 0;
  int calls = 0;
};

Task<> write_once(std::string path, std::uint64_t offset, int& right) {
  auto file = co_await File::open(path, FileMode::create);
  EXPECT_TRUE(file) << file.error().message();
  if (!file) co_return;
  const auto written = co_await file->write_at("0123456789", offset);
  if (written) ++right;
}

class FileRing : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    OnEveryBackend::SetUp();
    if (!IsSkipped() && !has_ring(loop())) GTEST_SKIP() << "rings are forbidden";
  }
  const test::TemporaryFolder folder;
};

TAMBOUR_ON_EVERY_BACKEND(FileRing);

TEST(FileRingNextToEpoll, exists_if_the_backend_io_uring_does) {
  EventLoop ring({.backend = BackendKind::io_uring});
  for (const BackendKind kind : {BackendKind::epoll, BackendKind::poll, BackendKind::select}) {
    EventLoop loop({.backend = kind});
    EXPECT_EQ(has_ring(loop), ring.backend().fallback_reason.empty());
  }
}

TEST(FileRingNextToEpoll, is_created_by_the_first_file_operation) {
  const std::size_t before = test::open_descriptors();
  EventLoop loop({.backend = BackendKind::epoll});
  loop.run_ready();
  const std::size_t without = test::open_descriptors();
  EXPECT_EQ(without, before + 3);  // The epoll set, the eventfd and the timerfd.
  if (!has_ring(loop)) GTEST_SKIP() << "rings are forbidden";
  EXPECT_EQ(test::open_descriptors(), without + 1);
  EXPECT_TRUE(has_ring(loop));
  EXPECT_EQ(test::open_descriptors(), without + 1);
}

TEST_P(FileRing, wakes_up_the_waiting_loop) {
  PipeRead read;
  backend_of(loop()).submit(read);
  Timer limit(loop(), [] {});
  limit.start(1min);
  std::thread writer([&] {
    std::this_thread::sleep_for(30ms);
    test::write_to(read.pipe.far);
  });
  while (read.calls == 0) loop().run_once();
  writer.join();
  EXPECT_EQ(read.result, 1);
  EXPECT_TRUE(limit.is_started());
}

TEST_P(FileRing, lets_the_loop_sleep_while_an_operation_is_in_progress) {
  PipeRead read;
  backend_of(loop()).submit(read);
  run_iterations();
  EXPECT_TRUE(sleeps_through(50ms));
  test::write_to(read.pipe.far);
  EXPECT_TRUE(run_until([&] { return read.calls == 1; }));
  EXPECT_TRUE(sleeps_through(50ms));
}

TEST_P(FileRing, cancels_operations_before_and_after_they_are_submitted) {
  for (const bool submitted : {false, true}) {
    PipeRead read;
    backend_of(loop()).submit(read);
    if (submitted) run_iterations();
    backend_of(loop()).cancel(read);
    backend_of(loop()).cancel(read);
    EXPECT_EQ(read.calls, 0);
    EXPECT_TRUE(run_until([&] { return read.calls == 1; }));
    EXPECT_EQ(read.result, -ECANCELED);
  }
}

TEST_P(FileRing, cancel_and_wait_returns_the_operation) {
  for (const bool submitted : {false, true}) {
    PipeRead read;
    PipeRead other;
    backend_of(loop()).submit(read);
    backend_of(loop()).submit(other);
    if (submitted) run_iterations();
    test::write_to(other.pipe.far);
    backend_of(loop()).cancel_and_wait(read);
    EXPECT_EQ(read.result, -ECANCELED);
    EXPECT_TRUE(run_until([&] { return other.calls == 1; }));
    EXPECT_EQ(other.result, 1);
    EXPECT_EQ(read.calls, 0);
  }
}

TEST_P(FileRing, executes_more_operations_than_it_has_entries) {
  LoopOptions small = options();
  small.submission_entries = 2;
  small.completion_entries = 4;
  EventLoop loop(small);
  const int count = int(test::scaled(500));
  int right = 0;
  {
    TaskScope scope(loop);
    for (int i = 0; i < count; ++i)
      scope.spawn(write_once(folder.path() + "/file", std::uint64_t(i) * 10, right));
    loop.run();
    EXPECT_TRUE(scope.empty());
  }
  EXPECT_EQ(right, count);
  std::ifstream written(folder.path() + "/file", std::ios::binary | std::ios::ate);
  EXPECT_EQ(written.tellg(), count * 10);
}

TEST_P(FileRing, does_not_starve_other_descriptors) {
  const test::Ends pipe = test::open_pipe();
  bool readable = false;
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [&](Events) { readable = true; });
  ASSERT_TRUE(watcher.start());
  run_iterations();
  test::write_to(pipe.far);
  int writes = 0;
  run([](std::string path, const bool& done, int& count) -> Task<> {
    auto file = co_await File::open(path, FileMode::create);
    if (!file) co_return;
    for (count = 0; count < 10'000 && !done; ++count)
      static_cast<void>(co_await file->write_at("text", 0));
  }(folder.path() + "/file", readable, writes));
  EXPECT_TRUE(readable);
  EXPECT_LT(writes, 100);
}

TEST_P(FileRing, does_not_starve_other_descriptors_while_the_page_cache_is_read) {
  std::ofstream(folder.path() + "/file") << "text";
  const test::Ends pipe = test::open_pipe();
  bool readable = false;
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [&](Events) { readable = true; });
  ASSERT_TRUE(watcher.start());
  test::write_to(pipe.far);
  int reads = 0;
  run([](std::string path, const bool& done, int& count) -> Task<> {
    auto file = co_await File::open(path);
    if (!file) co_return;
    std::array<std::byte, 4096> place;
    for (count = 0; count < 100'000 && !done; ++count)
      static_cast<void>(co_await file->read_at(place, 0));
  }(folder.path() + "/file", readable, reads));
  EXPECT_TRUE(readable);
  EXPECT_LT(reads, 10'000);
}

TEST_P(FileRing, reports_completions_to_an_outer_loop) {
  EventLoop outer({.backend = BackendKind::epoll});
  if (!EmbeddedLoop::possible(loop())) GTEST_SKIP() << "the backend cannot be embedded";
  EmbeddedLoop embedded(outer, loop());
  ASSERT_TRUE(embedded.start());
  PipeRead read;
  backend_of(loop()).submit(read);
  Timer writer(outer, [&] { test::write_to(read.pipe.far); });
  writer.start(20ms);
  Timer limit(outer, [&] { outer.stop(); });
  limit.start(1min);
  while (read.calls == 0 && limit.is_started()) outer.run_once();
  EXPECT_EQ(read.calls, 1);
}

TEST_P(FileRing, reports_operations_that_were_submitted_before_the_outer_loop_waits) {
  EventLoop outer({.backend = BackendKind::epoll});
  if (!EmbeddedLoop::possible(loop())) GTEST_SKIP() << "the backend cannot be embedded";
  if (loop().backend().name == "io_uring")
    GTEST_SKIP() << "start() waits for operations in flight, and this pipe would get no byte";
  PipeRead before;
  backend_of(loop()).submit(before);
  run_iterations();
  EmbeddedLoop embedded(outer, loop());
  ASSERT_TRUE(embedded.start());
  // On another thread, because a timer of the outer loop would wake it up.
  const auto write_later = [](const PipeRead& read) {
    return std::jthread([&read] {
      std::this_thread::sleep_for(20ms);
      test::write_to(read.pipe.far);
    });
  };
  Timer limit(outer, [&] { outer.stop(); });
  limit.start(1min);
  {
    const std::jthread writer = write_later(before);
    while (before.calls == 0 && limit.is_started()) outer.run_once();
  }
  EXPECT_EQ(before.calls, 1);
  // Two that were submitted together, of which one is complete at once.
  PipeRead complete;
  PipeRead later;
  test::write_to(complete.pipe.far);
  backend_of(loop()).submit(complete);
  backend_of(loop()).submit(later);
  while (complete.calls == 0 && limit.is_started()) outer.run_once();
  const std::jthread writer = write_later(later);
  while (later.calls == 0 && limit.is_started()) outer.run_once();
  EXPECT_EQ(complete.calls, 1);
  EXPECT_EQ(later.calls, 1);
}

TEST_P(FileRing, of_the_parent_keeps_its_operations_after_fork) {
  PipeRead read;
  backend_of(loop()).submit(read);
  run_iterations();
  EXPECT_EQ(test::in_child([&] {
              if (!loop().after_fork()) return 1;
              if (!run_until([&] { return read.calls == 1; })) return 2;
              if (read.result != -ECANCELED) return 3;
              // The child gets a ring of its own.
              PipeRead pipe_read;
              if (!has_ring(loop())) return 4;
              backend_of(loop()).submit(pipe_read);
              run_iterations();
              test::write_to(pipe_read.pipe.far);
              if (!run_until([&] { return pipe_read.calls == 1; })) return 5;
              return pipe_read.result == 1 ? 0 : 6;
            }),
            0);
  EXPECT_EQ(read.calls, 0);
  test::write_to(read.pipe.far);
  EXPECT_TRUE(run_until([&] { return read.calls == 1; }));
  EXPECT_EQ(read.result, 1);
}

}  // namespace
}  // namespace tambour::file_ring_test
