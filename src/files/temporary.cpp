// Temporary files and directories, with and without names.
#include <tambour/fs/temporary.h>

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/fs/paths.h>

#include "base/failure.h"
#include "files/calls.h"

namespace tambour {
namespace detail::files {

std::string temporary_directory(std::string directory) {
  if (!directory.empty()) return directory;
  const char* const variable = std::getenv("TMPDIR");
  return variable != nullptr && *variable != '\0' ? variable : "/tmp";
}

std::string random_name(EventLoop& loop, std::string_view directory, std::string_view prefix) {
  constexpr std::string_view characters = "0123456789abcdefghijklmnopqrstuvwxyz";
  constexpr int count = 12;
  std::string name(directory);
  if (!name.ends_with('/')) name += '/';
  name += prefix;
  std::uint64_t number = loop::core_of(loop).backend().random();
  for (int i = 0; i < count; ++i, number /= characters.size())
    name += characters[number % characters.size()];
  return name;
}

}  // namespace detail::files

namespace fs {
namespace {

using detail::backend::System;
using detail::files::Access;

/// How often another name is tried if one exists: by chance, never twice.
constexpr int attempts_max = 100;

}  // namespace

Task<Result<File>> create_unnamed(std::string directory, mode_t permissions) {
  std::string path = detail::files::temporary_directory(std::move(directory));
  const int flags = O_TMPFILE | O_RDWR;
  auto opened = co_await detail::files::call_open(std::move(path), flags, permissions);
  if (!opened) co_return std::unexpected(opened.error());
  co_return Access::make(std::move(*opened));
}

Task<Result<>> link_file(const File& file, std::string path) {
  const std::shared_ptr<detail::files::OpenFile> opened = Access::file_of(file);
  if (opened == nullptr) co_return detail::base::failure(EBADF);
  detail::files::FileRequest::Body link = [opened, path](System& system) -> std::int64_t {
    return system.link_unnamed(opened->fd(), path.c_str());
  };
  const auto linked = co_await detail::files::call_on_worker(path, std::move(link));
  if (!linked) co_return std::unexpected(linked.error());
  co_return Result<>();
}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : file_(std::move(other.file_)),
      path_(std::exchange(other.path_, {})),
      system_(other.system_) {}

TemporaryFile& TemporaryFile::operator=(TemporaryFile&& other) noexcept {
  if (this == &other) return *this;
  remove();
  file_ = std::move(other.file_);
  path_ = std::exchange(other.path_, {});
  system_ = other.system_;
  return *this;
}

void TemporaryFile::remove() noexcept {
  if (!path_.empty()) system_->unlink(path_.c_str());
  path_.clear();
}

Task<Result<TemporaryFile>> TemporaryFile::create(std::string directory, std::string prefix,
                                                  mode_t permissions) {
  const TaskContext& context = co_await this_task;
  directory = detail::files::temporary_directory(std::move(directory));
  for (int attempt = 1;; ++attempt) {
    std::string path = detail::files::random_name(*context.loop, directory, prefix);
    const int flags = O_RDWR | O_CREAT | O_EXCL;
    auto opened = co_await detail::files::call_open(path, flags, permissions);
    if (!opened && opened.error() == system_error(EEXIST) && attempt < attempts_max) continue;
    if (!opened) co_return std::unexpected(opened.error());
    TemporaryFile temporary;
    temporary.file_ = Access::make(std::move(*opened));
    temporary.path_ = std::move(path);
    temporary.system_ = &detail::files::system_of(context);
    co_return std::move(temporary);
  }
}

Task<Result<>> TemporaryFile::persist(std::string path) {
  if (path_.empty()) co_return detail::base::failure(ENOENT);
  auto renamed = co_await rename(path_, std::move(path));
  if (renamed) path_.clear();
  co_return renamed;
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})), system_(other.system_) {}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
  if (this == &other) return *this;
  remove_now();
  path_ = std::exchange(other.path_, {});
  system_ = other.system_;
  return *this;
}

void TemporaryDirectory::remove_now() noexcept {
  const std::atomic<bool> is_stopped(false);
  if (!path_.empty()) system_->remove_all(path_.c_str(), is_stopped);
  path_.clear();
}

Task<Result<TemporaryDirectory>> TemporaryDirectory::create(std::string directory,
                                                            std::string prefix) {
  const TaskContext& context = co_await this_task;
  directory = detail::files::temporary_directory(std::move(directory));
  constexpr mode_t permissions = 0700;
  for (int attempt = 1;; ++attempt) {
    std::string path = detail::files::random_name(*context.loop, directory, prefix);
    const auto created = co_await create_directory(path, permissions);
    if (!created && created.error() == system_error(EEXIST) && attempt < attempts_max) continue;
    if (!created) co_return std::unexpected(created.error());
    TemporaryDirectory temporary;
    temporary.path_ = std::move(path);
    temporary.system_ = &detail::files::system_of(context);
    co_return std::move(temporary);
  }
}

Task<Result<>> TemporaryDirectory::remove() {
  if (path_.empty()) co_return Result<>();
  auto removed = co_await remove_all(path_);
  if (removed) path_.clear();
  co_return removed;
}

}  // namespace fs
}  // namespace tambour
