// Names of files: on every backend, without a ring, and in a simulation.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/file.h>
#include <tambour/sim/simulation.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>

#include "files/scenes.h"
#include "support/on_every_backend.h"
#include "support/rough_host.h"
#include "support/scale.h"
#include "support/temporary_folder.h"

namespace tambour::paths_test {
namespace {

using namespace std::chrono_literals;
using fs::Type;

Error error_of(const auto& result) { return result ? Error() : result.error(); }

Task<> write_text(std::string path, std::string text) {
  auto file = co_await File::open(path, FileMode::replace);
  EXPECT_TRUE(file) << path << ": " << error_of(file).message();
  if (!file) co_return;
  EXPECT_TRUE(co_await file->write_at(text, 0));
}

Task<std::string> text_of(std::string path) {
  auto text = co_await fs::read_file(path);
  EXPECT_TRUE(text) << path << ": " << error_of(text).message();
  co_return text.value_or("");
}

/// The names in a directory with their types, sorted: "file:1 link:3".
Task<std::string> names_in(std::string path) {
  std::set<std::string> names;
  auto directory = co_await fs::Directory::open(path);
  EXPECT_TRUE(directory) << path << ": " << error_of(directory).message();
  while (directory) {
    auto entry = co_await directory->next();
    EXPECT_TRUE(entry) << error_of(entry).message();
    if (!entry || !*entry) break;
    EXPECT_NE((*entry)->inode, 0U);
    names.insert((*entry)->name + ":" + std::to_string(int((*entry)->type)));
  }
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : " ") + name;
  co_return joined;
}

Task<> play_with_statuses(std::string folder) {
  const std::string path = folder + "/file";
  EXPECT_EQ(error_of(co_await fs::status(path)), system_error(ENOENT));
  EXPECT_EQ(co_await fs::exists(path), false);
  co_await write_text(path, "twelve bytes");
  const auto status = co_await fs::status(path);
  EXPECT_TRUE(status);
  if (!status) co_return;
  EXPECT_EQ(status->type, Type::regular);
  EXPECT_EQ(status->size, 12U);
  EXPECT_EQ(status->links, 1U);
  EXPECT_NE(status->inode, 0U);
  EXPECT_GT(status->modified.time_since_epoch(), 0s);
  EXPECT_EQ(co_await fs::exists(path), true);
  EXPECT_EQ(co_await fs::exists(path + "/below"), false);
  EXPECT_TRUE(co_await fs::set_permissions(path, 0640));
  const WallTime time(std::chrono::sys_days(std::chrono::year(2001) / 2 / 3) + 123456789ns);
  EXPECT_TRUE(co_await fs::set_times(path, std::nullopt, time));
  const auto changed = co_await fs::status(path);
  EXPECT_TRUE(changed);
  if (!changed) co_return;
  EXPECT_EQ(changed->permissions, 0640U);
  EXPECT_EQ(changed->modified, time);
  EXPECT_EQ(changed->accessed, status->accessed);
  EXPECT_TRUE(changed->is_same_file(*status));
  EXPECT_TRUE(co_await fs::resize_file(path, 5));
  EXPECT_EQ(co_await text_of(path), "twelv");
  auto file = co_await File::open(path, FileMode::update);
  EXPECT_TRUE(file);
  if (!file) co_return;
  const auto allocated = co_await file->allocate(0, 100'000);
  EXPECT_TRUE(allocated || allocated.error() == system_error(EOPNOTSUPP));
  EXPECT_EQ(error_of(co_await file->allocate(UINT64_MAX, 1)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await file->allocate(1, UINT64_MAX)), system_error(EFBIG));
  EXPECT_EQ(error_of(co_await file->allocate(0, 0)), system_error(EINVAL));
  const auto opened = co_await file->status();
  EXPECT_TRUE(opened);
  if (allocated && opened) {
    EXPECT_EQ(opened->size, 100'000U);
  }
  if (opened) {
    EXPECT_TRUE(opened->is_same_file(*status));
  }
  file->close();
  EXPECT_EQ(error_of(co_await file->status()), system_error(EBADF));
  const auto directory = co_await fs::status(folder);
  EXPECT_TRUE(directory && directory->is_directory());
}

Task<> play_with_renames(std::string folder) {
  const std::string a = folder + "/a";
  const std::string b = folder + "/b";
  EXPECT_EQ(error_of(co_await fs::rename(a, b)), system_error(ENOENT));
  co_await write_text(a, "a");
  EXPECT_TRUE(co_await fs::rename(a, b));
  EXPECT_EQ(co_await text_of(b), "a");
  EXPECT_EQ(co_await fs::exists(a), false);
  co_await write_text(a, "new");
  EXPECT_EQ(error_of(co_await fs::rename(a, b, fs::Rename::no_replace)), system_error(EEXIST));
  EXPECT_TRUE(co_await fs::rename(a, b, fs::Rename::exchange));
  EXPECT_EQ(co_await text_of(a), "a");
  EXPECT_TRUE(co_await fs::rename(a, b));
  EXPECT_EQ(co_await text_of(b), "a");
  EXPECT_TRUE(co_await fs::create_directory(folder + "/d"));
  EXPECT_EQ(error_of(co_await fs::rename(b, folder + "/d")), system_error(EISDIR));
  EXPECT_EQ(error_of(co_await fs::rename(folder + "/d", b)), system_error(ENOTDIR));
  EXPECT_EQ(error_of(co_await fs::rename(folder + "/d", folder + "/d/e")), system_error(EINVAL));
  EXPECT_TRUE(co_await fs::rename(b, folder + "/d/b", fs::Rename::no_replace));
  EXPECT_TRUE(co_await fs::rename(folder + "/d", folder + "/e"));
  EXPECT_EQ(co_await text_of(folder + "/e/../e/./b"), "a");
  EXPECT_TRUE(co_await fs::create_directory(folder + "/f"));
  EXPECT_EQ(error_of(co_await fs::rename(folder + "/f", folder + "/e")), system_error(ENOTEMPTY));
  EXPECT_TRUE(co_await fs::rename(folder + "/e", folder + "/f"));
  EXPECT_EQ(co_await names_in(folder + "/f"), "b:1");
}

Task<> play_with_directories(std::string folder) {
  const std::string deep = folder + "/x/y//z/";
  EXPECT_EQ(error_of(co_await fs::create_directory(deep)), system_error(ENOENT));
  EXPECT_TRUE(co_await fs::create_directories(deep, 0750));
  EXPECT_TRUE(co_await fs::create_directories(deep));
  const auto status = co_await fs::status(folder + "/x/y/z");
  EXPECT_TRUE(status && status->is_directory());
  if (status) {
    EXPECT_EQ(status->permissions, 0750U);
  }
  EXPECT_EQ(error_of(co_await fs::create_directory(folder + "/x")), system_error(EEXIST));
  co_await write_text(folder + "/x/file", "");
  EXPECT_EQ(error_of(co_await fs::create_directories(folder + "/x/file")), system_error(EEXIST));
  EXPECT_EQ(error_of(co_await fs::create_directories(folder + "/x/file/y/z")),
            system_error(ENOTDIR));
  EXPECT_EQ(error_of(co_await fs::remove_directory(folder + "/x")), system_error(ENOTEMPTY));
  EXPECT_EQ(error_of(co_await fs::remove_directory(folder + "/x/file")), system_error(ENOTDIR));
  EXPECT_EQ(error_of(co_await fs::remove_file(folder + "/x")), system_error(EISDIR));
  EXPECT_TRUE(co_await fs::remove_file(folder + "/x/file"));
  EXPECT_EQ(error_of(co_await fs::remove_file(folder + "/x/file")), system_error(ENOENT));
  EXPECT_TRUE(co_await fs::remove_directory(folder + "/x/y/z"));
  EXPECT_EQ(co_await names_in(folder + "/x"), "y:2");
  EXPECT_EQ(co_await names_in(folder + "/x/y"), "");
  EXPECT_TRUE(co_await fs::sync_directory(folder + "/x"));
  EXPECT_EQ(error_of(co_await fs::sync_directory(folder + "/none")), system_error(ENOENT));
  co_await write_text(folder + "/plain", "");
  EXPECT_EQ(error_of(co_await fs::sync_directory(folder + "/plain")), system_error(ENOTDIR));
  EXPECT_EQ(error_of(co_await fs::Directory::open(folder + "/plain")), system_error(ENOTDIR));
  fs::Directory closed;
  EXPECT_EQ(error_of(co_await closed.next()), system_error(EBADF));
}

Task<> play_with_links(std::string folder) {
  co_await write_text(folder + "/target", "text");
  EXPECT_TRUE(co_await fs::create_symlink("target", folder + "/link"));
  EXPECT_EQ(error_of(co_await fs::create_symlink("x", folder + "/link")), system_error(EEXIST));
  EXPECT_EQ(co_await fs::read_symlink(folder + "/link"), "target");
  EXPECT_EQ(error_of(co_await fs::read_symlink(folder + "/target")), system_error(EINVAL));
  EXPECT_EQ(co_await text_of(folder + "/link"), "text");
  const auto link = co_await fs::symlink_status(folder + "/link");
  EXPECT_TRUE(link && link->is_symlink());
  const auto target = co_await fs::status(folder + "/link");
  EXPECT_TRUE(target && target->is_regular());
  EXPECT_TRUE(co_await fs::create_hard_link(folder + "/target", folder + "/other"));
  const auto other = co_await fs::status(folder + "/other");
  EXPECT_TRUE(other && target && other->is_same_file(*target));
  if (other) {
    EXPECT_EQ(other->links, 2U);
  }
  EXPECT_EQ(error_of(co_await fs::create_hard_link(folder + "/target", folder + "/other")),
            system_error(EEXIST));
  EXPECT_TRUE(co_await fs::create_directories(folder + "/one/two"));
  EXPECT_TRUE(co_await fs::create_symlink(folder + "/one", folder + "/alias"));
  EXPECT_EQ(co_await fs::canonical(folder + "/alias/two/../../link"), folder + "/target");
  EXPECT_EQ(co_await fs::canonical(folder + "/alias/two/"), folder + "/one/two");
  EXPECT_EQ(error_of(co_await fs::canonical(folder + "/none")), system_error(ENOENT));
  EXPECT_EQ(co_await names_in(folder), "alias:3 link:3 one:2 other:1 target:1");
  // The link, not its target.
  EXPECT_TRUE(co_await fs::remove_file(folder + "/link"));
  EXPECT_EQ(co_await fs::exists(folder + "/target"), true);
  EXPECT_TRUE(co_await fs::create_symlink("loop", folder + "/loop"));
  EXPECT_EQ(error_of(co_await fs::status(folder + "/loop")), system_error(ELOOP));
  EXPECT_EQ(error_of(co_await fs::canonical(folder + "/loop")), system_error(ELOOP));
  EXPECT_EQ(error_of(co_await File::open(folder + "/loop")), system_error(ELOOP));
  // A link to nothing: a created file is at its target.
  EXPECT_TRUE(co_await fs::create_symlink("later", folder + "/dangling"));
  co_await write_text(folder + "/dangling", "x");
  EXPECT_EQ(co_await text_of(folder + "/later"), "x");
}

Task<> play_with_bad_paths(std::string folder) {
  const std::string null = folder + std::string("/a\0b", 4);
  const std::string long_name = folder + "/" + std::string(256, 'x');
  const std::string good = folder + "/good";
  co_await write_text(good, "");
  EXPECT_EQ(error_of(co_await fs::status(null)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::rename(null, good)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::rename(good, null)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::remove_file(null)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::remove_all(null)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::create_directory(null)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::create_directories(null)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::canonical(null)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::read_symlink(null)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::create_symlink(null, good)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::create_symlink("x", null)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::set_permissions(null, 0)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::Directory::open(null)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::copy_file(good, null)), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::replace_file(null, "")), system_error(EINVAL));
  EXPECT_EQ(error_of(co_await fs::status(long_name)), system_error(ENAMETOOLONG));
  EXPECT_EQ(error_of(co_await fs::create_directory(long_name)), system_error(ENAMETOOLONG));
  EXPECT_EQ(error_of(co_await fs::rename(good, long_name)), system_error(ENAMETOOLONG));
  EXPECT_EQ(error_of(co_await fs::status(folder + std::string(5000, '/'))),
            system_error(ENAMETOOLONG));
  EXPECT_EQ(error_of(co_await fs::status("")), system_error(ENOENT));
  EXPECT_EQ(error_of(co_await fs::create_directories("")), system_error(ENOENT));
  EXPECT_EQ(error_of(co_await fs::remove_file(good + "/below")), system_error(ENOTDIR));
}

Task<> play_with_many_entries(std::string folder) {
  const std::size_t count = test::scaled(1000);
  for (std::size_t i = 0; i < count; ++i)
    co_await write_text(folder + "/a-rather-long-name-of-a-file-" + std::to_string(i), "");
  auto directory = co_await fs::Directory::open(folder);
  EXPECT_TRUE(directory);
  if (!directory) co_return;
  std::set<std::string> names;
  for (;;) {
    auto entry = co_await directory->next();
    EXPECT_TRUE(entry);
    if (!entry || !*entry) break;
    EXPECT_TRUE(names.insert((*entry)->name).second) << (*entry)->name;
    // What was listed may be removed.
    if (names.size() % 2 == 0) {
      const auto removed = co_await fs::remove_file(folder + "/" + (*entry)->name);
      EXPECT_TRUE(removed);
    }
  }
  EXPECT_EQ(names.size(), count);
  const auto again = co_await directory->next();
  EXPECT_TRUE(again && !again->has_value());
}

Task<> play_with_removal(std::string folder) {
  EXPECT_EQ(error_of(co_await fs::remove_all(folder + "/none")), system_error(ENOENT));
  EXPECT_TRUE(co_await fs::create_directories(folder + "/kept"));
  co_await write_text(folder + "/kept/file", "");
  EXPECT_TRUE(co_await fs::create_directories(folder + "/all/a/b/c"));
  EXPECT_TRUE(co_await fs::create_directories(folder + "/all/d"));
  co_await write_text(folder + "/all/a/file", "");
  EXPECT_TRUE(co_await fs::create_symlink("../kept", folder + "/all/link"));
  EXPECT_TRUE(co_await fs::remove_all(folder + "/all"));
  EXPECT_EQ(co_await names_in(folder), "kept:2");
  EXPECT_EQ(co_await names_in(folder + "/kept"), "file:1");
  EXPECT_TRUE(co_await fs::remove_all(folder + "/kept/file"));
  EXPECT_TRUE(co_await fs::remove_all(folder + "/kept"));
  EXPECT_EQ(co_await names_in(folder), "");
}

Task<> play_all(std::string folder) {
  co_await test::play_in(folder + "/statuses", play_with_statuses);
  co_await test::play_in(folder + "/renames", play_with_renames);
  co_await test::play_in(folder + "/directories", play_with_directories);
  co_await test::play_in(folder + "/links", play_with_links);
  co_await test::play_in(folder + "/bad", play_with_bad_paths);
  co_await test::play_in(folder + "/many", play_with_many_entries);
  co_await test::play_in(folder + "/removal", play_with_removal);
}

class Paths : public test::OnEveryBackend {
 protected:
  test::TemporaryFolder folder;
};

TAMBOUR_ON_EVERY_BACKEND(Paths);

TEST_P(Paths, are_changed_as_the_manual_says) {
  const mode_t before = ::umask(0);
  run(play_all(folder.path()));
  ::umask(before);
}

TEST_P(Paths, are_left_alone_by_a_task_that_was_stopped_before) {
  const std::string path = folder.path() + "/new";
  EventLoop& local = loop();
  run([](std::string at, EventLoop& of) -> Task<> {
    TaskScope scope(of);
    bool has_ended = false;
    scope.spawn([](std::string created, bool& ended) -> Task<> {
      EXPECT_FALSE(co_await sleep_for(1h));
      EXPECT_EQ(error_of(co_await fs::create_directory(created)), system_error(ECANCELED));
      EXPECT_EQ(error_of(co_await fs::status("/")), system_error(ECANCELED));
      EXPECT_EQ(error_of(co_await fs::remove_all("/nowhere")), system_error(ECANCELED));
      EXPECT_EQ(error_of(co_await fs::replace_file(created, "x")), system_error(ECANCELED));
      EXPECT_EQ(error_of(co_await fs::TemporaryFile::create()), system_error(ECANCELED));
      ended = true;
    }(at, has_ended));
    co_await sleep_for(1ms);
    scope.request_stop();
    co_await scope.join();
    EXPECT_TRUE(has_ended);
  }(path, local));
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST_P(Paths, may_be_forgotten_by_destroyed_tasks) {
  // Each task is destroyed while its operation is pending: nothing leaks, nothing is touched.
  run([](std::string at, EventLoop& of) -> Task<> {
    for (int round = 0; round < 10; ++round) {
      TaskScope scope(of);
      const std::string path = at + "/" + std::to_string(round);
      scope.spawn([](std::string name) -> Task<> { (void)co_await fs::status(name); }(path));
      scope.spawn(
          [](std::string name) -> Task<> { (void)co_await fs::create_directory(name); }(path));
      scope.spawn([](std::string name) -> Task<> { (void)co_await fs::canonical(name); }(path));
      scope.spawn([](std::string name) -> Task<> { (void)co_await names_in(name); }(at));
      if (round % 2 == 0) co_await sleep_for(0s);
    }
  }(folder.path(), loop()));
}

TEST_P(Paths, nested_too_deeply_are_not_removed) {
  run([](std::string at) -> Task<> {
    std::string deep = at;
    for (int i = 0; i < 300; ++i) deep += "/d";
    EXPECT_TRUE(co_await fs::create_directories(deep));
    EXPECT_EQ(error_of(co_await fs::remove_all(at + "/d")), system_error(ENAMETOOLONG));
    EXPECT_TRUE(co_await fs::rename(at + "/d/d/d", at + "/half"));
    std::string middle = at + "/half";
    for (int i = 0; i < 150; ++i) middle += "/d";
    EXPECT_TRUE(co_await fs::rename(middle, at + "/rest"));
    EXPECT_TRUE(co_await fs::remove_all(at + "/half"));
    EXPECT_TRUE(co_await fs::remove_all(at + "/rest"));
    EXPECT_TRUE(co_await fs::remove_all(at + "/d"));
    EXPECT_EQ(co_await names_in(at), "");
  }(folder.path()));
}

TEST(SimulatedPaths, behave_like_those_of_the_kernel) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    test::run_on_rough_host(seed,
                            [](sim::Host&, EventLoop& loop) { spawn(loop, play_all("/folder")); });
}

TEST(SimulatedPaths, fail_on_request) {
  sim::Simulation simulation;
  sim::Host& host = simulation.add_host("host");
  EventLoop loop(host.loop_options());
  spawn(loop, [](sim::Host& at) -> Task<> {
    at.fail_next(sim::SystemCall::mkdir, ENOSPC);
    EXPECT_EQ(error_of(co_await fs::create_directory("/a")), system_error(ENOSPC));
    at.fail_next(sim::SystemCall::rename, EIO);
    EXPECT_EQ(error_of(co_await fs::rename("/tmp", "/b")), system_error(EIO));
    at.fail_next(sim::SystemCall::statx, EACCES);
    EXPECT_EQ(error_of(co_await fs::exists("/tmp")), system_error(EACCES));
    at.fail_next(sim::SystemCall::getdents, EIO);
    auto directory = co_await fs::Directory::open("/");
    EXPECT_TRUE(directory);
    if (!directory) co_return;
    EXPECT_EQ(error_of(co_await directory->next()), system_error(EIO));
  }(host));
  EXPECT_EQ(simulation.run(), sim::End::finished);
}

}  // namespace
}  // namespace tambour::paths_test
