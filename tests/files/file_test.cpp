// Files in tasks, on every backend and in a simulation.
#include <tambour/file/file.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/sim/simulation.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>
#include <tambour/threads/worker_pool.h>

#include "support/blocks.h"
#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/rough_host.h"
#include "support/scale.h"
#include "support/temporary_folder.h"

namespace tambour::file_test {
namespace {

using namespace std::chrono_literals;

std::string random_text(std::size_t size) {
  std::string text(size, '\0');
  std::minstd_rand random(1);
  for (char& byte : text) byte = char(random());
  return text;
}

/// The behaviour of every kind of file, including simulated ones.
Task<> play_with_files(std::string folder) {
  const std::string path = folder + "/file";
  EXPECT_EQ((co_await File::open(path)).error(), system_error(ENOENT));
  auto created = co_await File::open(path, FileMode::create_new);
  EXPECT_TRUE(created) << created.error().message();
  if (!created) co_return;
  EXPECT_EQ((co_await File::open(path, FileMode::create_new)).error(), system_error(EEXIST));
  EXPECT_EQ(co_await created->size(), 0U);

  const std::string text = random_text(1 << 20);
  EXPECT_TRUE(co_await created->write_at(text, 0));
  EXPECT_EQ(co_await created->size(), text.size());
  EXPECT_TRUE(co_await created->sync());

  auto file = co_await File::open(path);
  EXPECT_TRUE(file);
  if (!file) co_return;
  EXPECT_EQ((co_await file->write_at("x", 0)).error(), system_error(EBADF));
  std::string all(text.size() + 100, '\0');
  EXPECT_EQ(co_await file->read_at(std::as_writable_bytes(std::span(all)), 0), text.size());
  EXPECT_TRUE(all.starts_with(text));
  std::array<char, 4096> block;
  const auto bytes = std::as_writable_bytes(std::span(block));
  for (std::size_t round = 0; round < test::scaled(1000); ++round) {
    const std::size_t at = (round * 7919 * 4096 + round) % text.size();
    const auto got = co_await file->read_at(bytes, at);
    EXPECT_EQ(got, std::min(block.size(), text.size() - at));
    EXPECT_EQ(std::memcmp(block.data(), text.data() + at, got.value_or(0)), 0);
  }
  // At the end and beyond.
  EXPECT_EQ(co_await file->read_at(bytes, text.size() - 1), 1U);
  EXPECT_EQ(co_await file->read_at(bytes, text.size()), 0U);
  EXPECT_EQ(co_await file->read_at(bytes, text.size() * 2), 0U);
  EXPECT_EQ(co_await file->read_at({}, 0), 0U);
  // Offsets that off_t cannot represent. The kernel would see the last as -1.
  constexpr std::array<std::uint64_t, 2> nowhere{std::uint64_t{1} << 63, UINT64_MAX};
  for (const std::uint64_t place : nowhere) {
    EXPECT_EQ((co_await file->read_at(bytes, place)).error(), system_error(EINVAL));
    EXPECT_EQ((co_await file->read_at({}, place)).error(), system_error(EINVAL));
    EXPECT_EQ((co_await created->write_at("x", place)).error(), system_error(EINVAL));
  }
  EXPECT_EQ(co_await file->read_at(bytes, 0), block.size());
  EXPECT_EQ(std::memcmp(block.data(), text.data(), block.size()), 0);

  EXPECT_TRUE(co_await created->truncate(10));
  EXPECT_EQ(co_await file->size(), 10U);
  EXPECT_TRUE(co_await created->write_at("end", 20));
  EXPECT_EQ(co_await file->read_at(bytes, 0), 23U);
  EXPECT_EQ(std::string(block.data(), 23), text.substr(0, 10) + std::string(10, '\0') + "end");

  auto emptied = co_await File::open(path, FileMode::replace);
  EXPECT_TRUE(emptied);
  EXPECT_EQ(co_await file->size(), 0U);
  File moved = std::move(*file);
  EXPECT_TRUE(moved.is_open());
  EXPECT_EQ(co_await moved.read_at(bytes, 0), 0U);
  moved.close();
  EXPECT_EQ(moved.fd(), -1);
  EXPECT_EQ((co_await moved.read_at(bytes, 0)).error(), system_error(EBADF));
  EXPECT_EQ((co_await moved.sync()).error(), system_error(EBADF));
}

/// Returns a buffer with one block for each `step` bytes.
Buffer in_blocks(std::string_view text, std::size_t step) {
  Buffer buffer;
  for (std::size_t at = 0; at < text.size(); at += step)
    test::append_block(buffer, text.substr(at, step));
  return buffer;
}

Task<std::string> contents_of(std::string path) {
  auto file = co_await File::open(path);
  EXPECT_TRUE(file);
  if (!file) co_return "";
  const auto size = co_await file->size();
  std::string all(size.value_or(0), '\0');
  EXPECT_EQ(co_await file->read_at(std::as_writable_bytes(std::span(all)), 0), all.size());
  co_return all;
}

/// Writing and appending the bytes of buffers.
Task<> play_with_buffers(std::string folder) {
  const std::string path = folder + "/buffers";
  const std::string text = random_text(std::size_t{1} << 20);
  for (const std::size_t step : {std::size_t{1} << 20, std::size_t{100'000}, std::size_t{300}}) {
    auto file = co_await File::open(path, FileMode::replace);
    EXPECT_TRUE(file);
    if (!file) co_return;
    Buffer buffer = in_blocks(text, step);
    EXPECT_TRUE(co_await file->write_at(buffer, 5));
    EXPECT_TRUE(buffer.empty());
    EXPECT_TRUE(co_await file->write_at(in_blocks("01234", 1), 0));
    EXPECT_TRUE(co_await file->write_at(buffer, 0));
    EXPECT_EQ(co_await file->size(), text.size() + 5);
    const std::string written = co_await contents_of(path);
    EXPECT_TRUE(written == "01234" + text) << step;
    // An error before anything is written.
    buffer.append("rest");
    EXPECT_EQ((co_await file->write_at(buffer, UINT64_MAX)).error(), system_error(EINVAL));
    EXPECT_EQ(buffer, "rest");
    EXPECT_EQ((co_await file->append(buffer)).error(), system_error(EBADF));
    EXPECT_EQ((co_await file->append("x")).error(), system_error(EBADF));
    EXPECT_EQ(buffer, "rest");
    file->close();
    EXPECT_EQ((co_await file->write_at(buffer, 0)).error(), system_error(EBADF));
    EXPECT_EQ(buffer, "rest");
  }
  const std::string log = folder + "/log";
  for (int i = 0; i < 2; ++i) {
    auto file = co_await File::open(log, FileMode::append);
    EXPECT_TRUE(file);
    if (!file) co_return;
    EXPECT_TRUE(co_await file->append("a"));
    EXPECT_TRUE(co_await file->append(std::as_bytes(std::span("bc", 2))));
    Buffer buffer = in_blocks("defgh", 2);
    EXPECT_TRUE(co_await file->append(buffer));
    EXPECT_TRUE(buffer.empty());
    EXPECT_TRUE(co_await file->append(in_blocks("ij", 1)));
    EXPECT_EQ((co_await file->write_at("x", 0)).error(), system_error(EBADF));
    std::byte byte;
    EXPECT_EQ((co_await file->read_at({&byte, 1}, 0)).error(), system_error(EBADF));
  }
  const std::string logged = co_await contents_of(log);
  EXPECT_EQ(logged, "abcdefghijabcdefghij");
}

/// With O_DIRECT. `exactly`: unaligned requests must be rejected, not served through the cache.
Task<> play_without_cache(std::string folder, bool exactly, bool& can) {
  const std::string path = folder + "/direct";
  const std::string text = random_text(3 * 4096 + 100);
  {
    auto created = co_await File::open(path, FileMode::create);
    EXPECT_TRUE(created && co_await created->write_at(text, 0));
  }
  auto file = co_await File::open(path, FileMode::update, 0, FileCache::none);
  can = file.has_value();
  if (!file) {
    EXPECT_EQ(file.error(), system_error(EINVAL));
    co_return;
  }
  struct alignas(4096) Blocks {
    std::array<char, std::size_t{5} * 4096> bytes{};
  };
  // The frame of a task has only the alignment of operator new.
  const auto blocks = std::make_unique<Blocks>();
  const auto all = std::as_writable_bytes(std::span(blocks->bytes));
  const auto text_at = [&](std::size_t size) {
    return std::string_view(blocks->bytes.data(), size);
  };
  // Up to the end of the file, which is not aligned, and from there.
  EXPECT_EQ(co_await file->read_at(all, 0), text.size());
  EXPECT_EQ(text_at(text.size()), text);
  EXPECT_EQ(co_await file->read_at(all, std::size_t{3} * 4096), 100U);
  EXPECT_EQ(co_await file->read_at(all, std::size_t{4} * 4096), 0U);
  for (const bool bad_offset : {true, false}) {
    const auto place = bad_offset ? all : all.subspan(1, 4096);
    const std::uint64_t offset = bad_offset ? 1 : 0;
    const auto got = co_await file->read_at(place, offset);
    EXPECT_TRUE(got ? !exactly : got.error() == system_error(EINVAL));
  }
  std::ranges::fill(blocks->bytes, 'x');
  EXPECT_TRUE(co_await file->write_at(std::span(all).first(4096), 4096));
  EXPECT_TRUE(co_await file->sync());
  EXPECT_EQ(co_await file->read_at(std::span(all).first(std::size_t{2} * 4096), 0), 8192U);
  EXPECT_EQ(text_at(8192), text.substr(0, 4096) + std::string(4096, 'x'));
}

class Files : public test::OnEveryBackend {
 public:
  using OnEveryBackend::loop;
  const test::TemporaryFolder folder;

  [[nodiscard]] std::string path() const { return folder.path() + "/file"; }
  void make_file(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }

  /// The ring or the worker threads, and the descriptors that they keep, exist from now on.
  void open_a_file() {
    make_file("");
    run([](std::string at) -> Task<> { EXPECT_TRUE(co_await File::open(at)); }(path()));
  }

  /// Waits until worker threads have closed the files that they opened for destroyed tasks.
  bool closes_down_to(std::size_t count) {
    const auto limit = std::chrono::steady_clock::now() + 1min;
    while (test::open_descriptors() > count) {
      if (std::chrono::steady_clock::now() > limit) return false;
      run_iterations(1);
      std::this_thread::yield();
    }
    return true;
  }
};

TAMBOUR_ON_EVERY_BACKEND(Files);

TEST_P(Files, are_read_and_written) {
  open_a_file();
  ::unlink(path().c_str());
  const std::size_t before = test::open_descriptors();
  run(play_with_files(folder.path()));
  EXPECT_LE(test::open_descriptors(), before);
}

TEST_P(Files, are_written_from_buffers) { run(play_with_buffers(folder.path())); }

TEST_P(Files, an_error_returns_the_bytes_that_were_not_written) {
  if (test::sanitized) GTEST_SKIP() << "sanitizers do not allow threads after fork in a child";
  // A file of at most 100,000 bytes.
  const int status = test::in_child([&] {
    const rlimit limit{.rlim_cur = 100'000, .rlim_max = 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
    bool right = false;
    EventLoop loop(options());
    spawn(loop, [](std::string path, bool& same) -> Task<> {
      const std::string text = random_text(300'000);
      auto file = co_await File::open(path, FileMode::create);
      Buffer buffer = in_blocks(text, 20'000);
      const auto written = co_await file->write_at(buffer, 10'000);
      same = !written && written.error() == system_error(EFBIG) && buffer == text.substr(90'000);
    }(folder.path() + "/file", right));
    loop.run();
    return right ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST_P(Files, are_read_and_written_past_the_cache) {
  bool can = false;
  run(play_without_cache(folder.path(), false, can));
  if (!can) GTEST_SKIP() << "the file system of " << folder.path() << " cannot";
}

TEST_P(Files, report_why_open_or_read_failed) {
  make_file("x");
  ASSERT_EQ(::chmod(path().c_str(), 0), 0);
  run([](std::string place, std::string locked) -> Task<> {
    EXPECT_EQ((co_await File::open(place, FileMode::write)).error(), system_error(EISDIR));
    auto directory = co_await File::open(place);
    EXPECT_TRUE(directory);
    std::array<std::byte, 16> bytes;
    if (directory) {
      EXPECT_EQ((co_await directory->read_at(bytes, 0)).error(), system_error(EISDIR));
    }
    if (::geteuid() != 0) {
      EXPECT_EQ((co_await File::open(locked)).error(), system_error(EACCES));
    }
    EXPECT_EQ((co_await File::open(locked + "/beneath")).error(), system_error(ENOTDIR));
    EXPECT_EQ((co_await File::open("")).error(), system_error(ENOENT));
    EXPECT_EQ((co_await File::open(std::string(5000, 'x'))).error(), system_error(ENAMETOOLONG));
    auto full = co_await File::open("/dev/full", FileMode::write);
    if (full) {
      EXPECT_EQ((co_await full->write_at("x", 0)).error(), system_error(ENOSPC));
    }
  }(folder.path(), path()));
}

TEST_P(Files, are_created_with_the_requested_permissions) {
  const mode_t mask = ::umask(027);
  run([](std::string at) -> Task<> {
    EXPECT_TRUE(co_await File::open(at, FileMode::create, 0666));
  }(path()));
  ::umask(mask);
  struct stat status{};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
}

TEST_P(Files, ten_thousand_reads_at_a_time) {
  const std::size_t count = test::scaled(10'000);
  const std::string text = random_text(64 * 1024);
  make_file(text);
  std::size_t right = 0;
  run([](std::string at, const std::string& expected, std::size_t reads,
         std::size_t& ok) -> Task<> {
    auto file = co_await File::open(at);
    EXPECT_TRUE(file);
    if (!file) co_return;
    const TaskContext& context = co_await this_task;
    TaskScope scope(*context.loop, context.stop);
    for (std::size_t i = 0; i < reads; ++i) {
      scope.spawn([](const File& from, const std::string& all, std::size_t offset,
                     std::size_t& matching) -> Task<> {
        std::array<char, 100> place;
        const auto got = co_await from.read_at(std::as_writable_bytes(std::span(place)), offset);
        EXPECT_EQ(got, place.size());
        if (std::string_view(place.data(), place.size()) == all.substr(offset, place.size()))
          ++matching;
      }(*file, expected, i % (expected.size() - 100), ok));
    }
    co_await scope.join();
  }(path(), text, count, right));
  EXPECT_EQ(right, count);
}

TEST_P(Files, a_stopped_task_is_resumed_once_and_not_inside_the_request) {
  open_a_file();
  make_file(random_text(64 * 1024));
  std::vector<Error> results;
  TaskScope scope(loop());
  auto read = [](std::string at, std::vector<Error>& errors) -> Task<> {
    std::array<std::byte, 4096> place;
    auto file = co_await File::open(at);
    if (!file) {
      errors.push_back(file.error());
      co_return;
    }
    const auto got = co_await file->read_at(place, 0);
    errors.push_back(got ? Error() : got.error());
  };
  const std::size_t before = test::open_descriptors();
  for (int i = 0; i < 50; ++i) scope.spawn(read(path(), results));
  scope.request_stop();
  EXPECT_TRUE(results.empty());
  EXPECT_TRUE(run_until([&] { return scope.empty(); }));
  EXPECT_EQ(results.size(), 50U);
  for (const Error& error : results)
    EXPECT_TRUE(!error || error == system_error(ECANCELED)) << error.message();
  // The stop was requested before: the operation is not started.
  scope.spawn(read(path(), results));
  EXPECT_TRUE(run_until([&] { return scope.empty(); }));
  EXPECT_EQ(results.back(), system_error(ECANCELED));
  EXPECT_TRUE(closes_down_to(before));
}

TEST_P(Files, tasks_are_destroyed_while_files_are_opened_read_and_written) {
  open_a_file();
  make_file(random_text(1 << 20));
  const std::size_t before = test::open_descriptors();
  for (std::size_t round = 0; round < test::scaled(1000); ++round) {
    TaskScope scope(loop());
    for (int i = 0; i < 4; ++i) {
      scope.spawn([](std::string at, int kind) -> Task<> {
        auto file = co_await File::open(at, FileMode::update);
        if (!file) co_return;
        // Part of the frame, which is destroyed with the task.
        std::array<std::byte, 16384> place{};
        if (kind == 0) static_cast<void>(co_await file->write_at(place, 0));
        if (kind == 1) static_cast<void>(co_await file->sync());
        Buffer bytes = in_blocks(std::string(40'000, 'x'), 500);
        if (kind == 2) static_cast<void>(co_await file->write_at(bytes, 0));
        for (;;) static_cast<void>(co_await file->read_at(place, 4096));
      }(path(), i));
    }
    for (std::size_t iteration = 0; iteration < round % 7; ++iteration) loop().run_ready();
  }
  loop().run();
  EXPECT_TRUE(closes_down_to(before));
}

TEST_P(Files, the_loop_may_be_destroyed_with_pending_operations) {
  make_file(random_text(1 << 20));
  run([](std::string at) -> Task<> { EXPECT_TRUE(co_await File::open(at)); }(path()));
  const std::size_t before = test::open_descriptors();
  for (int round = 0; round < 50; ++round) {
    auto other = std::make_unique<EventLoop>(options());
    TaskScope outlives(*other);
    auto read = [](std::string at) -> Task<> {
      auto file = co_await File::open(at);
      if (!file) co_return;
      std::array<std::byte, 16384> place;
      for (;;) static_cast<void>(co_await file->read_at(place, 0));
    };
    for (int i = 0; i < 4; ++i) spawn(*other, read(path()));
    outlives.spawn(read(path()));
    for (int iteration = 0; iteration < round % 7; ++iteration) other->run_ready();
    other.reset();
  }
  EXPECT_TRUE(closes_down_to(before));
}

TEST_P(Files, a_closed_file_stays_open_for_pending_operations) {
  make_file("text");
  run([](std::string at) -> Task<> {
    const TaskContext& context = co_await this_task;
    auto file = co_await File::open(at);
    EXPECT_TRUE(file);
    if (!file) co_return;
    std::array<char, 4> place{};
    TaskScope scope(*context.loop);
    scope.spawn([](File& from, std::array<char, 4>& into) -> Task<> {
      EXPECT_EQ(co_await from.read_at(std::as_writable_bytes(std::span(into)), 0), 4U);
    }(*file, place));
    file->close();
    // Would take the lowest free descriptor, if it were free.
    auto other = co_await File::open("/dev/null");
    EXPECT_TRUE(other);
    co_await scope.join();
    EXPECT_EQ(std::string(place.data(), 4), "text");
  }(path()));
}

TEST_P(Files, work_in_a_forked_child) {
  if (test::sanitized) GTEST_SKIP() << "sanitizers do not allow threads after fork in a child";
  make_file("text");
  run([](std::string at) -> Task<> { EXPECT_TRUE(co_await File::open(at)); }(path()));
  EXPECT_EQ(
      test::in_child([&] {
        if (!loop().after_fork()) return 1;
        std::array<char, 4> place{};
        run([](std::string at, std::array<char, 4>& into) -> Task<> {
          auto file = co_await File::open(at);
          if (!file) co_return;
          static_cast<void>(co_await file->read_at(std::as_writable_bytes(std::span(into)), 0));
        }(path(), place));
        return std::string(place.data(), 4) == "text" ? 0 : 2;
      }),
      0);
}

class SimulatedDisk : public testing::Test {
 public:
  static std::string play(std::uint64_t seed) {
    bool can = false;
    std::string trace = test::run_on_rough_host(seed, [&can](sim::Host& host, EventLoop& loop) {
      EXPECT_EQ(host.mkdir("/folder", 0755), 0);
      spawn(loop, play_with_files("/folder"));
      spawn(loop, play_with_buffers("/folder"));
      spawn(loop, play_without_cache("/folder", true, can));
    });
    EXPECT_TRUE(can);
    return trace;
  }
};

TEST_F(SimulatedDisk, behaves_like_the_kernel_and_is_deterministic) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) EXPECT_EQ(play(seed), play(seed));
}

}  // namespace
}  // namespace tambour::file_test
