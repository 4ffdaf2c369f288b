// Scenarios of names of files, and of changes of directories.
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "backend/system.h"
#include "faults/scenarios.h"

namespace tambour::test {
namespace {

/// A folder whose removal allocates no memory with `new`.
class Folder {
 public:
  Folder() {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    // Without std::filesystem, which ends the program if it gets no memory here. A planned failure
    // may hit the first attempts.
    const std::atomic<bool> is_stopped(false);
    for (int attempt = 0; attempt < 10; ++attempt) {
      if (detail::backend::remove_all(path_.c_str(), is_stopped) == 0) return;
    }
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/tambour-test-XXXXXX";
};

/// Keeps the first error.
class FirstError {
 public:
  explicit FirstError(Error& error) noexcept : error_(error) {}
  bool operator()(const auto& outcome) const {
    if (!outcome && !error_) error_ = outcome.error();
    return outcome.has_value();
  }

 private:
  Error& error_;
};

Task<> change_names(std::string folder, Error& error) {
  const FirstError note(error);
  const std::string file = folder + "/file";
  if (!note(co_await fs::create_directories(folder + "/a/b"))) co_return;
  if (!note(co_await fs::replace_file(file, "text"))) co_return;
  if (!note(co_await fs::rename(file, folder + "/other"))) co_return;
  if (!note(co_await fs::create_symlink("other", folder + "/link"))) co_return;
  if (!note(co_await fs::create_hard_link(folder + "/other", file))) co_return;
  const auto target = co_await fs::read_symlink(folder + "/link");
  if (!note(target)) co_return;
  EXPECT_EQ(*target, "other");
  note(co_await fs::canonical(folder + "/link"));
  note(co_await fs::set_permissions(file, 0600));
  note(co_await fs::set_times(file, WallTime(), WallTime()));
  const auto status = co_await fs::status(file);
  if (!note(status)) co_return;
  EXPECT_EQ(status->size, 4U);
  const auto copied = co_await fs::copy_file(file, folder + "/copy");
  if (!note(copied)) co_return;
  EXPECT_EQ(*copied, 4U);
  const auto text = co_await fs::read_file(folder + "/copy");
  if (!note(text)) co_return;
  EXPECT_EQ(*text, "text");
}

Task<> list_and_remove_names(std::string folder, Error& error) {
  const FirstError note(error);
  auto directory = co_await fs::Directory::open(folder);
  if (!note(directory)) co_return;
  for (;;) {
    const auto entry = co_await directory->next();
    if (!note(entry) || !entry->has_value()) break;
  }
  auto unnamed = co_await fs::create_unnamed(folder);
  if (!note(unnamed)) co_return;
  const auto allocated = co_await unnamed->allocate(0, 100);
  if (!note(allocated)) co_return;
  if (!note(co_await fs::link_file(*unnamed, folder + "/named"))) co_return;
  if (!note(co_await fs::remove_file(folder + "/named"))) co_return;
  auto temporary = co_await fs::TemporaryDirectory::create(folder);
  if (!note(temporary)) co_return;
  if (!note(co_await fs::create_directories(temporary->path() + "/a/b"))) co_return;
  if (!note(co_await temporary->remove())) co_return;
  if (!note(co_await fs::create_directory(folder + "/empty"))) co_return;
  note(co_await fs::remove_directory(folder + "/empty"));
}

Error run_scene(EventLoop& loop, Task<> (*scene)(std::string, Error&)) {
  const Folder folder;
  Error error;
  TaskScope scope(loop);
  // Allocations of the tasks throw.
  scope.set_exception_handler(
      [&error](const std::exception_ptr&) { error = system_error(ENOMEM); });
  scope.spawn(scene(folder.path(), error));
  run_until(loop, [&] { return scope.empty(); }, "the end of the scene");
  return error;
}

Task<> see_changes(fs::Watcher& watcher, std::string folder, Error& error) {
  const FirstError note(error);
  for (int i = 0; i < 3; ++i) {
    const std::string name = "a rather long name of a directory " + std::to_string(i);
    ::mkdir((folder + "/" + name).c_str(), 0700);
    const auto event = co_await watcher.next();
    if (!note(event)) co_return;
    EXPECT_TRUE(event->change == fs::Change::overflow || event->name == name);
  }
}

}  // namespace

Error play_names(EventLoop& loop) {
  const Error error = run_scene(loop, change_names);
  return error ? error : run_scene(loop, list_and_remove_names);
}

Error play_watcher(EventLoop& loop) {
  const Folder folder;
  auto watcher = fs::Watcher::create(loop);
  // There are too many watchers or watches.
  if (!watcher || !watcher->watch(folder.path())) return {};
  Error error;
  TaskScope scope(loop);
  scope.set_exception_handler(
      [&error](const std::exception_ptr&) { error = system_error(ENOMEM); });
  scope.spawn(see_changes(*watcher, folder.path(), error));
  run_until(loop, [&] { return scope.empty(); }, "changes");
  return error;
}

}  // namespace tambour::test
