// How much memory reads and writes in flight hold. Replaces operator new, to count.
#include <array>
#include <cstddef>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <tambour/file/file.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>

#include "loop/core.h"
#include "support/live_memory.h"
#include "support/temporary_folder.h"

namespace tambour::memory_test {
namespace {

constexpr std::size_t block_size = 512;
constexpr std::size_t tasks = 100;

struct Counts {
  std::size_t begun = 0;
  std::size_t ended = 0;
};

Task<> transfer(File& file, std::size_t index, TaskEvent& start, Counts& counts) {
  std::array<std::byte, block_size> block{};
  co_await start.wait();
  ++counts.begun;
  const std::uint64_t offset = index * block_size;
  if (index % 2 == 0) {
    EXPECT_EQ(co_await file.read_at(block, offset), block.size());
  } else {
    EXPECT_TRUE(co_await file.write_at(std::span(block), offset));
  }
  ++counts.ended;
}

TEST(FilesOnRings, reads_and_writes_in_flight_need_no_memory_but_their_frames) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  std::ofstream(path, std::ios::binary) << std::string(tasks * block_size, 'x');
  EventLoop loop;
  if (!detail::loop::core_of(loop).backend().supports(detail::OperationKind::file_read))
    GTEST_SKIP() << "rings are forbidden";
  File file;
  TaskEvent start(loop);
  Counts counts;
  TaskScope scope(loop);
  scope.spawn([](std::string at, File& into) -> Task<> {
    auto opened = co_await File::open(at, FileMode::update);
    if (opened) into = std::move(*opened);
  }(path, file));
  loop.run();
  ASSERT_TRUE(file.is_open());
  for (std::size_t i = 0; i < tasks; ++i) scope.spawn(transfer(file, i, start, counts));
  loop.run_ready();
  const std::size_t before = test::live_bytes;
  start.set();
  loop.run_ready();
  EXPECT_EQ(counts.begun, tasks);
  EXPECT_GE(counts.begun - counts.ended, tasks / 2);
  EXPECT_LE(test::live_bytes, before);
  loop.run();
  EXPECT_EQ(counts.ended, tasks);
}

}  // namespace
}  // namespace tambour::memory_test
