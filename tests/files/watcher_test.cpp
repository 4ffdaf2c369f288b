// Changes of directories: each kind, renames, loss of events, and the end of what is watched.
#include <tambour/fs/watcher.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/sim/simulation.h>
#include <tambour/task/combinators.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>

#include "support/on_every_backend.h"
#include "support/temporary_folder.h"

namespace tambour::watcher_test {
namespace {

using namespace std::chrono_literals;
using fs::Change;

class Watchers : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    OnEveryBackend::SetUp();
    if (IsSkipped()) return;
    auto created = fs::Watcher::create(loop());
    ASSERT_TRUE(created) << created.error().message();
    watcher = std::move(*created);
    a = folder.path() + "/a";
    b = folder.path() + "/b";
    ::mkdir(a.c_str(), 0755);
    ::mkdir(b.c_str(), 0755);
  }

  static void write_to(const std::string& path) { std::ofstream(path) << "text"; }

  /// Waits for an event, which must be the given one.
  void expect(Change change, fs::WatchId directory, std::string name, bool is_directory = false) {
    const fs::ChangeEvent event = next();
    EXPECT_EQ(event.change, change) << event.name;
    EXPECT_EQ(event.directory, directory) << event.name;
    EXPECT_EQ(event.name, name);
    EXPECT_EQ(event.is_directory, is_directory) << event.name;
    EXPECT_EQ(event.old_name, "");
  }

  fs::ChangeEvent next() {
    fs::ChangeEvent event;
    run([](fs::Watcher& from, fs::ChangeEvent& to) -> Task<> {
      auto got = co_await from.next();
      EXPECT_TRUE(got) << got.error().message();
      if (got) to = std::move(*got);
    }(watcher, event));
    return event;
  }

  void expect_nothing() {
    run([](fs::Watcher& from) -> Task<> {
      auto got = co_await timeout(50ms, from.next());
      EXPECT_FALSE(got) << got->name;
      if (!got) {
        EXPECT_EQ(got.error(), system_error(ETIMEDOUT));
      }
    }(watcher));
  }

  test::TemporaryFolder folder;
  std::string a;
  std::string b;
  fs::Watcher watcher;
};

TAMBOUR_ON_EVERY_BACKEND(Watchers);

TEST_P(Watchers, report_each_kind_of_change_in_order) {
  const auto id = watcher.watch(a);
  ASSERT_TRUE(id);
  EXPECT_EQ(watcher.watch(a), *id);
  expect_nothing();
  write_to(a + "/file");
  ::chmod((a + "/file").c_str(), 0600);
  ::mkdir((a + "/inner").c_str(), 0755);
  write_to(a + "/inner/unseen");
  ::unlink((a + "/file").c_str());
  expect(Change::created, *id, "file");
  expect(Change::modified, *id, "file");
  expect(Change::closed, *id, "file");
  expect(Change::attributes_changed, *id, "file");
  expect(Change::created, *id, "inner", true);
  expect(Change::removed, *id, "file");
  expect_nothing();
}

TEST_P(Watchers, join_the_halves_of_a_rename) {
  const auto first = watcher.watch(a);
  const auto second = watcher.watch(b);
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  write_to(folder.path() + "/outside");
  ASSERT_EQ(std::rename((folder.path() + "/outside").c_str(), (a + "/x").c_str()), 0);
  expect(Change::moved_in, *first, "x");
  ASSERT_EQ(std::rename((a + "/x").c_str(), (b + "/y").c_str()), 0);
  const fs::ChangeEvent moved = next();
  EXPECT_EQ(moved.change, Change::renamed);
  EXPECT_EQ(moved.directory, *second);
  EXPECT_EQ(moved.name, "y");
  EXPECT_EQ(moved.old_directory, *first);
  EXPECT_EQ(moved.old_name, "x");
  // Moved to where nothing is watched: later events wait for the half that does not come.
  ASSERT_EQ(std::rename((b + "/y").c_str(), (folder.path() + "/z").c_str()), 0);
  ::mkdir((a + "/later").c_str(), 0755);
  expect(Change::moved_out, *second, "y");
  expect(Change::created, *first, "later", true);
  expect_nothing();
}

TEST_P(Watchers, wait_once_for_the_other_halves_of_many_renames) {
  const auto id = watcher.watch(a);
  ASSERT_TRUE(id);
  constexpr int count = 300;
  for (int i = 0; i < count; ++i) ::mkdir((a + "/" + std::to_string(i)).c_str(), 0755);
  for (int i = 0; i < count; ++i) expect(Change::created, *id, std::to_string(i), true);
  for (int i = 0; i < count; ++i) {
    const std::string name = "/" + std::to_string(i);
    ASSERT_EQ(std::rename((a + name).c_str(), (b + name).c_str()), 0);
  }
  const std::uint64_t before = loop().stats().waits;
  for (int i = 0; i < count; ++i) expect(Change::moved_out, *id, std::to_string(i), true);
  // Not one wait for each of them.
  EXPECT_LT(loop().stats().waits - before, count / 4U);
}

TEST_P(Watchers, report_the_end_of_a_directory) {
  const auto first = watcher.watch(a);
  const auto second = watcher.watch(b);
  ASSERT_TRUE(first && second);
  ASSERT_EQ(::rmdir(a.c_str()), 0);
  expect(Change::directory_removed, *first, "");
  ASSERT_EQ(std::rename(b.c_str(), (folder.path() + "/c").c_str()), 0);
  expect(Change::directory_removed, *second, "");
  ::mkdir(a.c_str(), 0755);
  const auto again = watcher.watch(a);
  ASSERT_TRUE(again);
  EXPECT_NE(*again, *first);
  write_to(folder.path() + "/c/unseen");
  ::mkdir((a + "/seen").c_str(), 0755);
  expect(Change::created, *again, "seen", true);
}

TEST_P(Watchers, report_the_end_of_a_directory_when_nothing_has_it_open) {
  const auto id = watcher.watch(a);
  ASSERT_TRUE(id);
  const std::string path = a + "/file";
  UniqueFd open(::open(path.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0600));
  ASSERT_EQ(::unlink(path.c_str()), 0);
  expect(Change::created, *id, "file");
  expect(Change::removed, *id, "file");
  ASSERT_EQ(::rmdir(a.c_str()), 0);
  expect_nothing();
  open.reset();
  expect(Change::directory_removed, *id, "");
}

/// next() loses nothing if another argument completes first.
TEST_P(Watchers, are_arguments_of_select) {
  const auto id = watcher.watch(a);
  ASSERT_TRUE(id);
  run([](fs::Watcher& from) -> Task<> {
    const auto first = co_await select(from.next(), sleep_for(1ms));
    EXPECT_EQ(first.index(), 1U);
  }(watcher));
  ::mkdir((a + "/x").c_str(), 0755);
  expect(Change::created, *id, "x", true);
}

/// A directory that changes all the time does not keep the loop from its other work.
TEST_P(Watchers, let_other_callbacks_run) {
  ASSERT_TRUE(watcher.watch(a));
  bool has_run = false;
  loop().post([&] { has_run = true; });
  run([](std::string path, fs::Watcher& from, const bool& ends) -> Task<> {
    int received = 0;
    while (!ends) {
      ::mkdir(path.c_str(), 0755);
      const auto creation = co_await from.next();
      ::rmdir(path.c_str());
      const auto removal = co_await from.next();
      if (!creation || !removal || ++received > 10'000) break;
    }
    EXPECT_TRUE(ends) << received;
  }(a + "/x", watcher, has_run));
}

TEST_P(Watchers, forget_what_is_unwatched) {
  const auto first = watcher.watch(a);
  const auto second = watcher.watch(b);
  ASSERT_TRUE(first && second);
  ::mkdir((a + "/1").c_str(), 0755);
  ::mkdir((b + "/1").c_str(), 0755);
  ::mkdir((a + "/2").c_str(), 0755);
  expect(Change::created, *first, "1", true);
  // One event of `a` is in the memory of the watcher, and one in the kernel.
  ::mkdir((a + "/3").c_str(), 0755);
  watcher.unwatch(*first);
  watcher.unwatch(*first);
  expect(Change::created, *second, "1", true);
  expect_nothing();
}

TEST_P(Watchers, report_that_events_were_lost) {
  if (!is(BackendKind::epoll)) GTEST_SKIP() << "the kernel's queue is the same on each backend";
  std::ifstream setting("/proc/sys/fs/inotify/max_queued_events");
  int kernel_max = 0;
  setting >> kernel_max;
  if (kernel_max == 0 || kernel_max > 100'000) GTEST_SKIP() << "the kernel's queue is too long";
  const auto id = watcher.watch(a);
  ASSERT_TRUE(id);
  const std::string one = a + "/1";
  const std::string two = a + "/2";
  // Equal events in a row are merged by the kernel.
  for (int i = 0; i < kernel_max; ++i) {
    ::close(::open(one.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ::unlink(one.c_str());
  }
  bool is_lost = false;
  int count = 0;
  while (!is_lost && ++count <= kernel_max + 1) is_lost = next().change == Change::overflow;
  EXPECT_TRUE(is_lost);
  EXPECT_EQ(watcher.overflows(), 1U);
  ::mkdir(two.c_str(), 0755);
  expect(Change::created, *id, "2", true);
}

TEST_P(Watchers, are_stopped_without_losing_events) {
  const auto id = watcher.watch(a);
  ASSERT_TRUE(id);
  run([](fs::Watcher& from, EventLoop& of, std::string at) -> Task<> {
    TaskScope scope(of);
    Error error;
    scope.spawn([](fs::Watcher& source, Error& to) -> Task<> {
      auto got = co_await source.next();
      if (!got) to = got.error();
    }(from, error));
    co_await sleep_for(1ms);
    scope.request_stop();
    ::mkdir(at.c_str(), 0755);
    co_await scope.join();
    EXPECT_EQ(error, system_error(ECANCELED));
  }(watcher, loop(), a + "/x"));
  expect(Change::created, *id, "x", true);
  // The second half of a rename is waited for when the task is stopped.
  ASSERT_EQ(std::rename((a + "/x").c_str(), (folder.path() + "/x").c_str()), 0);
  run([](fs::Watcher& from) -> Task<> {
    auto got = co_await timeout(1ms, from.next());
    if (got) {
      EXPECT_EQ(got->change, Change::moved_out);  // On a slow machine.
    }
  }(watcher));
  ::mkdir((a + "/y").c_str(), 0755);
  fs::ChangeEvent event = next();
  if (event.change == Change::moved_out) event = next();
  EXPECT_EQ(event.name, "y");
}

TEST_P(Watchers, fail_with_the_errors_of_the_kernel) {
  write_to(a + "/file");
  EXPECT_EQ(watcher.watch(a + "/file").error(), system_error(ENOTDIR));
  EXPECT_EQ(watcher.watch(a + "/none").error(), system_error(ENOENT));
  EXPECT_EQ(watcher.watch(a + std::string("\0x", 2)).error(), system_error(EINVAL));
  watcher.unwatch(77);
  watcher.close();
  EXPECT_FALSE(watcher.is_open());
  EXPECT_EQ(watcher.watch(a).error(), system_error(EBADF));
  run([](fs::Watcher& from) -> Task<> {
    const auto got = co_await from.next();
    EXPECT_EQ(got.error(), system_error(EBADF));
  }(watcher));
}

TEST(SimulatedWatchers, are_not_supported) {
  sim::Simulation simulation;
  EventLoop loop(simulation.add_host("host").loop_options());
  EXPECT_EQ(fs::Watcher::create(loop).error(), system_error(ENOTSUP));
}

}  // namespace
}  // namespace tambour::watcher_test
