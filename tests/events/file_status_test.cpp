// FileStatus: every change of a path is reported, by inotify or by polling.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "events/child_processes.h"
#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/temporary_folder.h"

namespace tambour::file_status_test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

void write_file(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::trunc) << text;
}

/// Sets the modification time, to the nanosecond.
void set_time(const fs::path& path, std::int64_t seconds, long nanoseconds) {
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                             {.tv_sec = seconds, .tv_nsec = nanoseconds}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

class FileStatusTest : public test::OnEveryBackend {
 protected:
  struct Change {
    FileState before;
    FileState now;
  };
  auto note() {
    return
        [this](const FileState& before, const FileState& now) { changes.push_back({before, now}); };
  }

  /// Invokes `f` and waits until one more change has been reported.
  template <class F>
  void expect_reported(F&& f, const char* text) {
    const std::size_t before = changes.size();
    f();
    EXPECT_TRUE(run_until([&] { return changes.size() > before; })) << text;
  }

  test::TemporaryFolder folder;
  fs::path directory = folder.path();
  fs::path path = directory / "file";
  std::vector<Change> changes;
};

TAMBOUR_ON_EVERY_BACKEND(FileStatusTest);

TEST_P(FileStatusTest, a_file_appears_grows_and_disappears) {
  for (const bool always_poll : {false, true}) {
    changes.clear();
    FileStatus watcher(loop(), path, note(), {.interval = 100ms, .always_poll = always_poll});
    ASSERT_TRUE(watcher.start());
    EXPECT_EQ(watcher.path(), path);
    EXPECT_FALSE(watcher.current().exists);
    EXPECT_EQ(watcher.current().error, system_error(ENOENT));
    expect_reported([this] { write_file(path, ""); }, "appears");
    EXPECT_FALSE(changes.back().before.exists);
    EXPECT_TRUE(changes.back().now.exists);
    EXPECT_FALSE(changes.back().now.error);
    expect_reported([this] { write_file(path, "text"); }, "grows");
    EXPECT_TRUE(run_until([&] { return watcher.current().status.st_size == 4; }));
    expect_reported([this] { fs::remove(path); }, "disappears");
    EXPECT_TRUE(changes.back().before.exists);
    EXPECT_FALSE(changes.back().now.exists);
    expect_reported([this] { write_file(path, "again"); }, "appears again");
    EXPECT_TRUE(run_until([&] { return watcher.current().status.st_size == 5; }));
    fs::remove(path);
  }
}

TEST_P(FileStatusTest, a_path_with_a_null_byte_names_no_file) {
  FileStatus status(loop(), std::string("/tmp\0x", 6), {});
  EXPECT_EQ(status.start().error(), system_error(EINVAL));
  EXPECT_FALSE(status.is_started());
}

TEST_P(FileStatusTest, an_action_that_changes_nothing_is_not_reported) {
  write_file(path, "text");
  FileStatus watcher(loop(), path, note());
  ASSERT_TRUE(watcher.start());
  std::string text;
  std::ifstream(path) >> text;  // Changes the access time only.
  write_file(directory / "other", "text");
  fs::remove(directory / "other");
  run_for(10ms);
  EXPECT_TRUE(changes.empty());
}

TEST_P(FileStatusTest, attribute_changes_are_reported) {
  write_file(path, "text");
  FileStatus watcher(loop(), path, note());
  ASSERT_TRUE(watcher.start());
  expect_reported([this] { fs::permissions(path, fs::perms::owner_read); }, "mode");
  EXPECT_EQ(changes.back().now.status.st_mode & 0777, 0400U);
  expect_reported([this] { fs::create_hard_link(path, directory / "link"); }, "links");
  EXPECT_EQ(changes.back().now.status.st_nlink, 2U);
  EXPECT_EQ(changes.back().before.status.st_nlink, 1U);
}

TEST_P(FileStatusTest, changes_are_reported_with_nanosecond_resolution) {
  write_file(path, "text");
  set_time(path, 1'000'000'000, 5);
  FileStatus watcher(loop(), path, note());
  ASSERT_TRUE(watcher.start());
  for (long nanoseconds = 6; nanoseconds < 9; ++nanoseconds) {
    expect_reported([&] { set_time(path, 1'000'000'000, nanoseconds); }, "time");
    EXPECT_EQ(changes.back().now.status.st_mtim.tv_nsec, nanoseconds);
  }
}

TEST_P(FileStatusTest, a_replaced_file_is_reported_and_its_replacement_is_watched) {
  write_file(path, "old");
  const test::UniqueFd still_open(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  FileStatus watcher(loop(), path, note());
  ASSERT_TRUE(watcher.start());
  for (int round = 0; round < 3; ++round) {
    write_file(directory / "new", std::string(10 + static_cast<std::size_t>(round), 'x'));
    expect_reported([this] { fs::rename(directory / "new", path); }, "replaced");
    EXPECT_NE(changes.back().before.status.st_ino, changes.back().now.status.st_ino);
    expect_reported([this] { std::ofstream(path, std::ios::app) << "more"; }, "grows");
  }
  expect_reported([this] { fs::rename(path, directory / "elsewhere"); }, "moved away");
  EXPECT_FALSE(changes.back().now.exists);
  expect_reported([this] { fs::rename(directory / "elsewhere", path); }, "moved back");
  EXPECT_TRUE(changes.back().now.exists);
}

TEST_P(FileStatusTest, missing_directories_are_waited_for_one_after_the_other) {
  const fs::path deep = directory / "a" / "b" / "c" / "file";
  FileStatus watcher(loop(), deep, note(), {.interval = 1h});
  ASSERT_TRUE(watcher.start());
  fs::create_directory(directory / "a");
  run_iterations();
  fs::create_directories(deep.parent_path());
  run_iterations();
  EXPECT_TRUE(changes.empty());
  expect_reported([&] { write_file(deep, ""); }, "appears");
  expect_reported([&] { fs::remove_all(directory / "a"); }, "disappears");
  EXPECT_FALSE(watcher.current().exists);
  // Creates all directories at once, by a rename from elsewhere.
  fs::create_directories(directory / "z" / "b" / "c");
  write_file(directory / "z" / "b" / "c" / "file", "text");
  expect_reported([&] { fs::rename(directory / "z", directory / "a"); },
                  "appears with its directories");
  EXPECT_EQ(watcher.current().status.st_size, 4);
}

TEST_P(FileStatusTest, a_relative_path_and_one_with_slashes_are_paths_too) {
  const fs::path former = fs::current_path();
  fs::current_path(directory);
  FileStatus plain(loop(), "file", note(), {.interval = 1h});
  FileStatus slashed(loop(), "sub///", note(), {.interval = 1h});
  FileStatus root(loop(), "/", note());
  FileStatus empty(loop(), "", note());
  for (FileStatus* watcher : {&plain, &slashed, &root, &empty}) ASSERT_TRUE(watcher->start());
  EXPECT_TRUE(root.current().exists);
  EXPECT_TRUE(empty.is_polling());
  expect_reported([this] { write_file(path, ""); }, "file");
  expect_reported([this] { fs::create_directory(directory / "sub"); }, "directory");
  EXPECT_TRUE(plain.current().exists);
  EXPECT_TRUE(slashed.current().exists);
  fs::current_path(former);
}

TEST_P(FileStatusTest, a_symbolic_link_and_its_target_are_both_watched) {
  write_file(directory / "one", "1");
  write_file(directory / "two", "22");
  fs::create_symlink(directory / "one", path);
  FileStatus watcher(loop(), path, note(), {.interval = 1h});
  ASSERT_TRUE(watcher.start());
  EXPECT_EQ(watcher.current().status.st_size, 1);
  expect_reported([this] { std::ofstream(directory / "one", std::ios::app) << "1"; }, "target");
  fs::create_symlink(directory / "two", directory / "new");
  expect_reported([this] { fs::rename(directory / "new", path); }, "link");
  EXPECT_NE(changes.back().before.status.st_ino, changes.back().now.status.st_ino);
  expect_reported([this] { std::ofstream(directory / "two", std::ios::app) << "2"; }, "new target");
  // A dangling link can only be polled.
  EXPECT_FALSE(watcher.is_polling());
  expect_reported([this] { fs::remove(directory / "two"); }, "no target");
  EXPECT_TRUE(watcher.is_polling());
}

TEST_P(FileStatusTest, a_link_to_a_link_is_polled) {
  write_file(directory / "one", "1");
  write_file(directory / "two", "22");
  for (const bool relative : {false, true}) {
    const fs::path base = relative ? fs::path() : directory;
    fs::create_symlink(base / "one", directory / "middle");
    fs::create_symlink(base / "middle", path);
    FileStatus watcher(loop(), path, note(), {.interval = 100ms});
    FileStatus middle(loop(), directory / "middle", note(), {.interval = 1h});
    ASSERT_TRUE(watcher.start());
    ASSERT_TRUE(middle.start());
    EXPECT_TRUE(watcher.is_polling());
    EXPECT_FALSE(middle.is_polling());
    middle.stop();
    fs::create_symlink(base / "two", directory / "new");
    expect_reported([this] { fs::rename(directory / "new", directory / "middle"); }, "middle");
    EXPECT_EQ(watcher.current().status.st_size, 2);
    fs::remove(directory / "middle");
    fs::remove(path);
  }
}

TEST_P(FileStatusTest, a_change_to_the_entries_of_a_directory_is_reported) {
  FileStatus watcher(loop(), directory, note());
  ASSERT_TRUE(watcher.start());
  expect_reported([this] { fs::create_directory(directory / "sub"); }, "created");
  expect_reported([this] { fs::remove(directory / "sub"); }, "removed");
}

TEST_P(FileStatusTest, many_handles_watch_one_file_under_several_names) {
  write_file(path, "text");
  fs::create_hard_link(path, directory / "link");
  std::vector<FileStatus> watchers;
  for (int i = 0; i < 20; ++i) {
    watchers.emplace_back(loop(), i % 2 == 0 ? path : directory / "link", note());
    ASSERT_TRUE(watchers.back().start());
  }
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_TRUE(run_until([this] { return changes.size() == 20; }));
  for (int i = 0; i < 10; ++i) watchers.pop_back();
  set_time(path, 5, 5);
  EXPECT_TRUE(run_until([this] { return changes.size() == 30; }));
  run_iterations();
  EXPECT_EQ(changes.size(), 30U);
}

TEST_P(FileStatusTest, files_that_inotify_does_not_cover_are_polled) {
  // A process directory in /proc disappears when the process exits, which inotify does not report.
  const pid_t child = fork_or_abort();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  FileStatus watcher(loop(), "/proc/" + std::to_string(child), note(), {.interval = 1ms});
  ASSERT_TRUE(watcher.start());
  EXPECT_TRUE(watcher.is_polling());
  EXPECT_EQ(loop().stats().references, 1);
  expect_reported(
      [child] {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
      },
      "the process has ended");
  EXPECT_FALSE(watcher.current().exists);
}

TEST_P(FileStatusTest, files_are_polled_if_inotify_is_not_available) {
  TAMBOUR_NEEDS_LAST_DESCRIPTOR();
  write_file(path, "text");
  FileStatus watcher(loop(), path, note(), {.interval = 100ms});
  {
    const test::OpenFilesLimit none(static_cast<rlim_t>(test::open_eventfd().get()));
    ASSERT_TRUE(watcher.start());
  }
  EXPECT_TRUE(watcher.is_polling());
  EXPECT_EQ(loop().stats().references, 1);
  expect_reported([this] { set_time(path, 5, 5); }, "time");
  // The watch could be added by then.
  EXPECT_FALSE(watcher.is_polling());
  EXPECT_EQ(loop().stats().references, 1);
  watcher.stop();
  EXPECT_EQ(loop().stats().references, 0);
}

TEST_P(FileStatusTest, look_updates_the_status_without_invoking_the_callback) {
  FileStatus watcher(loop(), path, note());
  write_file(path, "text");
  watcher.update();
  EXPECT_TRUE(watcher.current().exists);
  ASSERT_TRUE(watcher.start());
  set_time(path, 5, 5);
  watcher.update();
  EXPECT_EQ(watcher.current().status.st_mtim.tv_sec, 5);
  run_iterations();
  EXPECT_TRUE(changes.empty());
}

TEST_P(FileStatusTest, a_stopped_handle_is_not_invoked) {
  write_file(path, "text");
  FileStatus first(loop(), path, note());
  FileStatus second(loop(), path, note());
  first.set_priority(1);
  EXPECT_EQ(first.priority(), 1);
  first.set_function([&](const FileState& before, const FileState& now) {
    changes.push_back({before, now});
    second.stop();
  });
  ASSERT_TRUE(first.start());
  ASSERT_TRUE(second.start());
  expect_reported([this] { set_time(path, 5, 5); }, "time");
  run_iterations();
  EXPECT_EQ(changes.size(), 1U);
  EXPECT_FALSE(second.is_started());
}

TEST_P(FileStatusTest, a_handle_may_be_moved_and_destroyed_anywhere) {
  write_file(path, "text");
  const auto weight = std::make_shared<int>(7);
  std::vector<std::optional<FileStatus>> watchers(4);
  int calls = 0;
  for (auto& watcher : watchers) {
    watcher.emplace(loop(), path, [&, weight](const FileState& before, const FileState& now) {
      ++calls;
      for (auto& entry : watchers) entry.reset();
      EXPECT_EQ(*weight, 7);
      EXPECT_FALSE(now.is_same_as(before));
    });
    ASSERT_TRUE(watcher->start());
    FileStatus elsewhere(std::move(*watcher));
    EXPECT_TRUE(elsewhere.is_started());
    watcher = std::move(elsewhere);
  }
  set_time(path, 5, 5);
  EXPECT_TRUE(run_until([&] { return calls == 1; }));
  run_iterations();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(weight.use_count(), 1);
}

TEST_P(FileStatusTest, a_moved_from_handle_may_be_stopped) {
  FileStatus watcher(loop(), path, note());
  ASSERT_TRUE(watcher.start());
  FileStatus elsewhere(std::move(watcher));
  watcher.stop();  // NOLINT(bugprone-use-after-move)
  EXPECT_FALSE(watcher.is_started());
  EXPECT_TRUE(elsewhere.is_started());
}

TEST_P(FileStatusTest, a_handle_may_outlive_its_loop) {
  write_file(path, "text");
  FileStatus watcher(loop(), path, note(), {.always_poll = true});
  ASSERT_TRUE(watcher.start());
  set_time(path, 5, 5);
  destroy_loop();
  EXPECT_FALSE(watcher.is_started());
  watcher.stop();
  EXPECT_TRUE(changes.empty());
}

TEST_P(FileStatusTest, works_independently_in_a_forked_child) {
  write_file(path, "text");
  FileStatus watcher(loop(), path, note(), {.interval = 1h});
  FileStatus missing(loop(), directory / "missing", note(), {.interval = 1h});
  ASSERT_TRUE(watcher.start());
  ASSERT_TRUE(missing.start());
  EXPECT_EQ(test::in_child([this] {
              if (!loop().after_fork()) return 1;
              run_iterations();
              set_time(path, 5, 5);
              if (!run_until([this] { return changes.size() == 1; })) return 2;
              write_file(directory / "missing", "");
              return run_until([this] { return changes.size() >= 2; }) ? 0 : 3;
            }),
            0);
  EXPECT_TRUE(run_until([this] { return changes.size() >= 2; }));
}

}  // namespace
}  // namespace tambour::file_status_test
