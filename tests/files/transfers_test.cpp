// Reads and writes whose operations are in the frames of their tasks, while the kernel executes
// them: destroyed, stopped, moved, or without their loop.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/file/file.h>
#include <tambour/task/scope.h>

#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/scale.h"
#include "support/temporary_folder.h"

namespace tambour::transfers_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t block_size = 4096;
constexpr std::size_t blocks_in_file = 64;
/// Reads at once end at four in flight; the others are executed by the ring or by threads.
constexpr std::size_t tasks = 12;

struct alignas(block_size) Block {
  std::array<std::byte, block_size> bytes{};
};

/// Reads and writes until it is destroyed or stopped, and returns the error. The block is in the
/// frame of the caller, because the frame of a task has only the alignment of operator new.
Task<Error> transfer(File& file, Block& block, std::size_t first) {
  for (std::size_t i = first;; ++i) {
    const std::uint64_t offset = i % blocks_in_file * block_size;
    const auto got = co_await file.read_at(block.bytes, offset);
    if (!got) co_return got.error();
    const auto written = co_await file.write_at(std::span(block.bytes), offset);
    if (!written) co_return written.error();
  }
}

/// Opens the file and runs transfers in a scope of its own.
Task<> transfer_in(std::string path, FileCache cache, std::vector<Error>& errors) {
  auto file = co_await File::open(path, FileMode::update, 0, cache);
  // Not every file system supports O_DIRECT, with which operations stay in flight for longer.
  if (!file) file = co_await File::open(path, FileMode::update);
  EXPECT_TRUE(file || file.error() == system_error(ECANCELED));
  if (!file) co_return;
  const TaskContext& context = co_await this_task;
  const auto blocks = std::make_unique<std::array<Block, tasks>>();
  TaskScope scope(*context.loop, context.stop);
  for (std::size_t i = 0; i < tasks; ++i) {
    scope.spawn([](File& in, Block& block, std::size_t first, std::vector<Error>& all) -> Task<> {
      all.push_back(co_await transfer(in, block, first));
    }(*file, (*blocks)[i], i, errors));
  }
  co_await scope.join();
}

class Transfers : public test::OnEveryBackend {
 public:
  const test::TemporaryFolder folder;
  std::vector<Error> errors;

  Transfers() { std::ofstream(path(), std::ios::binary) << std::string(file_size, 'x'); }
  [[nodiscard]] std::string path() const { return folder.path() + "/file"; }
  [[nodiscard]] Task<> transfers(std::size_t round) {
    return transfer_in(path(), round % 2 == 0 ? FileCache::none : FileCache::kernel, errors);
  }

 private:
  static constexpr std::size_t file_size = blocks_in_file * block_size;
};

TAMBOUR_ON_EVERY_BACKEND(Transfers);

TEST_P(Transfers, are_destroyed_with_their_tasks) {
  for (std::size_t round = 0; round < test::scaled(200); ++round) {
    TaskScope scope(loop());
    scope.spawn(transfers(round));
    for (std::size_t iteration = 0; iteration < round % 9; ++iteration) loop().run_ready();
  }
  EXPECT_TRUE(errors.empty());
}

TEST_P(Transfers, are_cancelled_when_their_tasks_are_stopped) {
  for (std::size_t round = 0; round < test::scaled(100); ++round) {
    errors.clear();
    TaskScope scope(loop());
    scope.spawn(transfers(round));
    for (std::size_t iteration = 0; iteration < round % 9; ++iteration) loop().run_ready();
    scope.request_stop();
    EXPECT_TRUE(run_until([&] { return scope.empty(); }));
    for (const Error& error : errors) EXPECT_EQ(error, system_error(ECANCELED)) << error.message();
  }
}

TEST_P(Transfers, end_with_their_loop) {
  for (int round = 0; round < 40; ++round) {
    auto other = std::make_unique<EventLoop>(options());
    TaskScope outlives(*other);
    outlives.spawn(transfers(std::size_t(round)));
    spawn(*other, transfers(std::size_t(round)));
    for (int iteration = 0; iteration < round % 9; ++iteration) other->run_ready();
    other.reset();
  }
  EXPECT_TRUE(errors.empty());
}

TEST_P(Transfers, may_be_moved_until_they_are_awaited) {
  run([](std::string at) -> Task<> {
    auto file = co_await File::open(at, FileMode::update);
    EXPECT_TRUE(file);
    if (!file) co_return;
    std::array<std::byte, 4> bytes{};
    auto write = file->write_at("text", 0);
    auto read = file->read_at(bytes, 1);
    // Both share the file, which stays open for them.
    file->close();
    auto moved_write = std::move(write);
    EXPECT_TRUE(co_await std::move(moved_write));
    const auto got = co_await timeout(1min, std::move(read));
    EXPECT_EQ(got, 4U);
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(bytes.data()), 4), "extx");
    // A moved-from awaitable refers to no file.
    EXPECT_EQ((co_await write).error(), system_error(EBADF));
  }(path()));
}

TEST_P(Transfers, of_no_bytes_and_of_closed_files_end) {
  run([](std::string at) -> Task<> {
    auto file = co_await File::open(at, FileMode::update);
    EXPECT_TRUE(file);
    if (!file) co_return;
    EXPECT_EQ(co_await file->read_at({}, 0), 0U);
    EXPECT_TRUE(co_await file->write_at("", 0));
    EXPECT_EQ(co_await file->size(), blocks_in_file * block_size);
    file->close();
    std::byte byte{};
    EXPECT_EQ((co_await file->read_at({&byte, 1}, 0)).error(), system_error(EBADF));
    EXPECT_EQ((co_await file->write_at("x", 0)).error(), system_error(EBADF));
    EXPECT_EQ((co_await file->append("x")).error(), system_error(EBADF));
  }(path()));
}

}  // namespace
}  // namespace tambour::transfers_test
