// Whole files and temporary ones: on every backend, without a ring, and in a simulation.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/file.h>
#include <tambour/sim/simulation.h>
#include <tambour/task/combinators.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>

#include "files/scenes.h"
#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/rough_host.h"
#include "support/temporary_folder.h"

namespace tambour::contents_test {
namespace {

using namespace std::chrono_literals;

Error error_of(const auto& result) { return result ? Error() : result.error(); }

std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < 400'000; ++i) text += std::to_string(i) + "\n";
  return text;
}

Task<int> count_of(std::string folder) {
  int count = 0;
  auto directory = co_await fs::Directory::open(folder);
  EXPECT_TRUE(directory);
  while (directory) {
    auto entry = co_await directory->next();
    EXPECT_TRUE(entry);
    if (!entry || !*entry) break;
    ++count;
  }
  co_return count;
}

Task<> play_with_replacement(std::string folder) {
  const std::string path = folder + "/config";
  EXPECT_EQ(error_of(co_await fs::read_file(path)), system_error(ENOENT));
  EXPECT_TRUE(co_await fs::replace_file(path, "first"));
  EXPECT_EQ(co_await fs::read_file(path), "first");
  EXPECT_TRUE(co_await fs::set_permissions(path, 0640));
  EXPECT_TRUE(co_await fs::create_hard_link(path, folder + "/old"));
  auto reader = co_await File::open(path);
  EXPECT_TRUE(co_await fs::replace_file(path, long_text()));
  EXPECT_EQ(co_await fs::read_file(path), long_text());
  EXPECT_EQ(co_await fs::read_file(folder + "/old"), "first");
  if (reader) {
    EXPECT_EQ(co_await reader->size(), 5U);
  }
  const auto status = co_await fs::status(path);
  EXPECT_TRUE(status);
  if (status) {
    EXPECT_EQ(status->permissions, 0640U);
  }
  fs::ReplaceOptions options;
  options.permissions = 0604;
  options.sync = false;
  EXPECT_TRUE(co_await fs::replace_file(path, "", options));
  const auto last = co_await fs::status(path);
  EXPECT_TRUE(last);
  if (last) {
    EXPECT_EQ(last->permissions, 0604U);
  }
  EXPECT_EQ(co_await fs::read_file(path), "");
  EXPECT_EQ(co_await fs::read_file(folder + "/old", 5), "first");
  EXPECT_EQ(error_of(co_await fs::read_file(folder + "/old", 4)), system_error(EFBIG));
  EXPECT_EQ(error_of(co_await fs::replace_file(folder + "/none/x", "")), system_error(ENOENT));
  // A directory cannot be replaced by a file; the temporary file is removed again.
  EXPECT_TRUE(co_await fs::create_directory(folder + "/directory"));
  EXPECT_EQ(error_of(co_await fs::replace_file(folder + "/directory", "")), system_error(EISDIR));
  EXPECT_EQ(co_await count_of(folder), 3);
}

Task<> play_with_copies(std::string folder) {
  const std::string from = folder + "/from";
  const std::string to = folder + "/to";
  EXPECT_EQ(error_of(co_await fs::copy_file(from, to)), system_error(ENOENT));
  EXPECT_TRUE(co_await fs::replace_file(from, long_text()));
  EXPECT_TRUE(co_await fs::set_permissions(from, 0600));
  EXPECT_EQ(co_await fs::copy_file(from, to), long_text().size());
  EXPECT_EQ(co_await fs::read_file(to), long_text());
  const auto status = co_await fs::status(to);
  EXPECT_TRUE(status);
  if (status) {
    EXPECT_EQ(status->permissions, 0600U);
  }
  EXPECT_EQ(error_of(co_await fs::copy_file(from, to)), system_error(EEXIST));
  EXPECT_TRUE(co_await fs::replace_file(from, "short"));
  EXPECT_EQ(co_await fs::copy_file(from, folder + "/synced", {.sync = true}), 5U);
  EXPECT_EQ(co_await fs::copy_file(from, to, {.existing = fs::ExistingFile::replace}), 5U);
  EXPECT_EQ(co_await fs::read_file(to), "short");
  // One file under two names is not emptied.
  EXPECT_TRUE(co_await fs::create_hard_link(from, folder + "/same"));
  EXPECT_EQ(error_of(co_await fs::copy_file(from, folder + "/same",
                                            {.existing = fs::ExistingFile::replace})),
            system_error(EINVAL));
  EXPECT_EQ(co_await fs::read_file(from), "short");
  EXPECT_EQ(error_of(co_await fs::copy_file(folder, to)), system_error(EISDIR));
  EXPECT_TRUE(co_await fs::replace_file(from, ""));
  EXPECT_EQ(co_await fs::copy_file(from, folder + "/empty"), 0U);
}

Task<> play_with_temporaries(std::string folder) {
  std::string first;
  {
    auto temporary = co_await fs::TemporaryFile::create(folder, "part-");
    EXPECT_TRUE(temporary);
    if (!temporary) co_return;
    first = temporary->path();
    EXPECT_TRUE(first.starts_with(folder + "/part-"));
    EXPECT_EQ(first.size(), folder.size() + 6 + 12);
    const auto status = co_await fs::status(first);
    EXPECT_TRUE(status);
    if (status) {
      EXPECT_EQ(status->permissions, 0600U);
    }
    fs::TemporaryFile moved(std::move(*temporary));
    EXPECT_EQ(temporary->path(), "");
    EXPECT_TRUE(co_await moved.file().write_at("x", 0));
    EXPECT_EQ(co_await fs::exists(first), true);
  }
  EXPECT_EQ(co_await fs::exists(first), false);
  {
    auto kept = co_await fs::TemporaryFile::create(folder);
    auto persisted = co_await fs::TemporaryFile::create(folder);
    EXPECT_TRUE(kept && persisted);
    if (!kept || !persisted) co_return;
    kept->keep();
    EXPECT_EQ(error_of(co_await persisted->persist(folder + "/none/x")), system_error(ENOENT));
    EXPECT_TRUE(co_await persisted->persist(folder + "/result"));
    EXPECT_TRUE(co_await persisted->file().write_at("late", 0));
    EXPECT_EQ(error_of(co_await persisted->persist(folder + "/x")), system_error(ENOENT));
  }
  EXPECT_EQ(co_await fs::read_file(folder + "/result"), "late");
  EXPECT_EQ(co_await count_of(folder), 2);
  EXPECT_EQ(error_of(co_await fs::TemporaryFile::create(folder + "/none")), system_error(ENOENT));
  {
    auto directory = co_await fs::TemporaryDirectory::create(folder);
    auto other = co_await fs::TemporaryDirectory::create(folder);
    EXPECT_TRUE(directory && other);
    if (!directory || !other) co_return;
    EXPECT_TRUE(co_await fs::create_directories(directory->path() + "/a/b"));
    EXPECT_TRUE(co_await fs::create_directories(other->path() + "/a/b"));
    EXPECT_TRUE(co_await other->remove());
    EXPECT_TRUE(co_await other->remove());
    EXPECT_EQ(co_await count_of(folder), 3);
  }
  EXPECT_EQ(co_await count_of(folder), 2);
}

Task<> play_with_unnamed_files(std::string folder) {
  {
    auto file = co_await fs::create_unnamed(folder, 0640);
    if (!file && file.error() == system_error(EOPNOTSUPP)) co_return;
    EXPECT_TRUE(file) << error_of(file).message();
    if (!file) co_return;
    EXPECT_TRUE(co_await file->write_at("all at once", 0));
    EXPECT_EQ(co_await count_of(folder), 0);
    EXPECT_EQ(error_of(co_await fs::link_file(*file, folder + "/none/x")), system_error(ENOENT));
    EXPECT_TRUE(co_await fs::link_file(*file, folder + "/named"));
    EXPECT_EQ(error_of(co_await fs::link_file(*file, folder + "/named")), system_error(EEXIST));
  }
  EXPECT_EQ(co_await fs::read_file(folder + "/named"), "all at once");
  const File closed;
  EXPECT_EQ(error_of(co_await fs::link_file(closed, folder + "/x")), system_error(EBADF));
  EXPECT_EQ(error_of(co_await fs::create_unnamed(folder + "/none")), system_error(ENOENT));
}

Task<> play_all(std::string folder) {
  co_await test::play_in(folder + "/replacement", play_with_replacement);
  co_await test::play_in(folder + "/copies", play_with_copies);
  co_await test::play_in(folder + "/temporaries", play_with_temporaries);
  co_await test::play_in(folder + "/unnamed", play_with_unnamed_files);
}

class Contents : public test::OnEveryBackend {
 protected:
  test::TemporaryFolder folder;
};

TAMBOUR_ON_EVERY_BACKEND(Contents);

TEST_P(Contents, are_replaced_copied_and_removed) { run(play_all(folder.path())); }

TEST_P(Contents, of_files_without_a_size_are_read_and_copied) {
  run([](std::string at) -> Task<> {
    const auto text = co_await fs::read_file("/proc/self/status");
    EXPECT_TRUE(text && text->starts_with("Name:"));
    const auto size = co_await fs::copy_file("/proc/self/limits", at + "/copy");
    EXPECT_TRUE(size) << error_of(size).message();
    const auto copy = co_await fs::read_file(at + "/copy");
    EXPECT_TRUE(copy && copy->starts_with("Limit"));
    if (size && copy) {
      EXPECT_EQ(copy->size(), *size);
    }
  }(folder.path()));
}

TEST_P(Contents, are_copied_between_file_systems) {
  struct stat here{};
  struct stat there{};
  ASSERT_EQ(::stat(folder.path().c_str(), &here), 0);
  if (::stat("/dev/shm", &there) != 0 || here.st_dev == there.st_dev)
    GTEST_SKIP() << "/dev/shm is not another file system";
  run([](std::string at) -> Task<> {
    auto other = co_await fs::TemporaryDirectory::create("/dev/shm");
    EXPECT_TRUE(other);
    if (!other) co_return;
    EXPECT_TRUE(co_await fs::replace_file(at + "/x", long_text()));
    EXPECT_EQ(error_of(co_await fs::rename(at + "/x", other->path() + "/x")), system_error(EXDEV));
    EXPECT_EQ(co_await fs::copy_file(at + "/x", other->path() + "/x"), long_text().size());
    EXPECT_EQ(co_await fs::read_file(other->path() + "/x"), long_text());
  }(folder.path()));
}

TEST_P(Contents, of_a_directory_for_temporary_files_that_the_environment_names) {
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  run([](std::string at) -> Task<> {
    auto temporary = co_await fs::TemporaryFile::create();
    EXPECT_TRUE(temporary);
    if (temporary) {
      EXPECT_TRUE(temporary->path().starts_with(at + "/tmp-"));
    }
  }(folder.path()));
  ::unsetenv("TMPDIR");
}

TEST_P(Contents, of_a_copy_that_is_stopped_are_removed) {
  const std::size_t before = test::open_descriptors();
  run([](std::string at, EventLoop& loop) -> Task<> {
    auto big = co_await File::open(at + "/big", FileMode::create);
    // A sparse file: its copy takes longer than the task is given.
    EXPECT_TRUE(big && co_await big->truncate(std::uint64_t{1} << 40));
    big->close();
    TaskScope scope(loop);
    Error outcome;
    scope.spawn([](std::string from, Error& error) -> Task<> {
      error = error_of(co_await fs::copy_file(from, from + ".copy"));
    }(at + "/big", outcome));
    while (true) {
      const auto found = co_await fs::exists(at + "/big.copy");
      if (found == true) break;
    }
    scope.request_stop();
    co_await scope.join();
    EXPECT_EQ(outcome, system_error(ECANCELED));
    EXPECT_EQ(co_await fs::exists(at + "/big.copy"), false);
  }(folder.path(), loop()));
  EXPECT_LE(test::open_descriptors(), before + 2);  // Rings and eventfds.
}

TEST(SimulatedContents, behave_like_those_of_the_kernel) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    test::run_on_rough_host(seed,
                            [](sim::Host&, EventLoop& loop) { spawn(loop, play_all("/folder")); });
}

TEST(SimulatedContents, stay_as_they_were_when_replacing_them_fails) {
  sim::Simulation simulation;
  sim::Host& host = simulation.add_host("host");
  EventLoop loop(host.loop_options());
  spawn(loop, [](sim::Host& at) -> Task<> {
    using sim::SystemCall;
    EXPECT_TRUE(co_await fs::replace_file("/tmp/x", "old"));
    for (const SystemCall call : {SystemCall::open, SystemCall::pwrite, SystemCall::chmod,
                                  SystemCall::fsync, SystemCall::rename}) {
      at.fail_next(call, EIO);
      EXPECT_EQ(error_of(co_await fs::replace_file("/tmp/x", "new")), system_error(EIO));
      EXPECT_EQ(co_await fs::read_file("/tmp/x"), "old");
      EXPECT_EQ(co_await count_of("/tmp"), 1);
    }
    // The kernel cannot copy: reading and writing can.
    at.fail_next(SystemCall::copy_file_range, EXDEV);
    EXPECT_EQ(co_await fs::copy_file("/tmp/x", "/tmp/y"), 3U);
    at.fail_next(SystemCall::copy_file_range, ENOSPC);
    EXPECT_EQ(error_of(co_await fs::copy_file("/tmp/x", "/tmp/z")), system_error(ENOSPC));
    EXPECT_EQ(co_await count_of("/tmp"), 2);
  }(host));
  EXPECT_EQ(simulation.run(), sim::End::finished);
}

/// Notes the permissions of each temporary file that it sees.
Task<> watch_permissions(const bool& is_done, int& seen, mode_t& all) {
  while (!is_done) {
    auto directory = co_await fs::Directory::open("/tmp");
    for (;;) {
      const auto entry = co_await directory->next();
      if (!entry || !*entry) break;
      const std::string name = (*entry)->name;
      if (!name.starts_with(".tmp-")) continue;
      const auto status = co_await fs::status("/tmp/" + name);
      if (!status) continue;
      ++seen;
      all |= status->permissions;
    }
  }
}

TEST(SimulatedContents, that_others_must_not_read_are_never_readable) {
  sim::Simulation simulation;
  sim::Host& host = simulation.add_host("host");
  EventLoop loop(host.loop_options());
  bool is_done = false;
  int seen = 0;
  mode_t all = 0;
  spawn(loop, [](EventLoop& of, bool& done, int& count, mode_t& permissions) -> Task<> {
    EXPECT_TRUE(co_await fs::replace_file("/tmp/secret", "old"));
    EXPECT_TRUE(co_await fs::set_permissions("/tmp/secret", 0600));
    spawn(of, watch_permissions(done, count, permissions));
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(co_await fs::replace_file("/tmp/secret", "new"));
    fs::ReplaceOptions options;
    options.permissions = 0600;
    for (int i = 0; i < 20; ++i)
      EXPECT_TRUE(co_await fs::replace_file("/tmp/other", "new", options));
    done = true;
  }(loop, is_done, seen, all));
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_GT(seen, 0);
  EXPECT_EQ(all, 0600U);
}

}  // namespace
}  // namespace tambour::contents_test
