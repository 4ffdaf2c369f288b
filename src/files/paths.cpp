// Functions on names of files, each of which is one or a few system calls.
#include <tambour/fs/paths.h>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/failure.h"
#include "files/calls.h"

namespace tambour {
namespace detail::files {
namespace {

WallTime time_of(const statx_timestamp& time) noexcept {
  return WallTime(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

fs::Type type_of(mode_t mode) noexcept {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return fs::Type::regular;
    case S_IFDIR:
      return fs::Type::directory;
    case S_IFLNK:
      return fs::Type::symlink;
    case S_IFIFO:
      return fs::Type::fifo;
    case S_IFSOCK:
      return fs::Type::socket;
    case S_IFBLK:
      return fs::Type::block_device;
    case S_IFCHR:
      return fs::Type::character_device;
    default:
      return fs::Type::unknown;
  }
}

}  // namespace

fs::Status status_of(const struct statx& found) noexcept {
  constexpr mode_t permission_bits = 07777;
  constexpr std::uint64_t block_bytes = 512;
  fs::Status status;
  status.type = type_of(found.stx_mode);
  status.permissions = found.stx_mode & permission_bits;
  status.owner = found.stx_uid;
  status.group = found.stx_gid;
  status.size = found.stx_size;
  status.allocated_bytes = found.stx_blocks * block_bytes;
  status.links = found.stx_nlink;
  status.inode = found.stx_ino;
  status.device = makedev(found.stx_dev_major, found.stx_dev_minor);
  status.accessed = time_of(found.stx_atime);
  status.modified = time_of(found.stx_mtime);
  status.changed = time_of(found.stx_ctime);
  if ((found.stx_mask & STATX_BTIME) != 0) status.created = time_of(found.stx_btime);
  return status;
}

Call call_on_path(OperationKind kind, std::string path, std::string second, int flags,
                  mode_t permissions) {
  auto& request = *new FileRequest(kind, nullptr);
  Call call(request);  // Owns it.
  request.set_paths(std::move(path), std::move(second));
  request.wait_when_stopped();
  request.operation().flags = flags;
  request.operation().permissions = permissions;
  return call;
}

Call call_on_worker(std::string path, FileRequest::Body&& body, WhenStopped when_stopped) {
  auto& request = *new FileRequest(OperationKind::file_call, nullptr);
  Call call(request);
  request.set_path(std::move(path));
  request.set_body(std::move(body));
  if (when_stopped == WhenStopped::wait) request.wait_when_stopped();
  return call;
}

OpenCall call_open(std::string path, int flags, mode_t permissions) {
  auto& request = *new FileRequest(OperationKind::file_open, nullptr);
  OpenCall call(request);
  request.set_path(std::move(path));
  if ((flags & O_CREAT) != 0) request.wait_when_stopped();
  request.operation().flags = flags | O_CLOEXEC;
  request.operation().permissions = permissions;
  return call;
}

std::string parent_of(std::string_view path) {
  const std::size_t last = path.find_last_not_of('/');
  const std::size_t slash = last == std::string_view::npos ? last : path.rfind('/', last);
  if (slash == std::string_view::npos) return path.starts_with('/') ? "/" : ".";
  const std::size_t end = path.find_last_not_of('/', slash);
  return end == std::string_view::npos ? "/" : std::string(path.substr(0, end + 1));
}

namespace {

class StatusCall final : public FileWait {
 public:
  StatusCall(std::string path, int flags)
      : FileWait(*new FileRequest(OperationKind::file_status, nullptr)) {
    request().set_status(std::move(path), flags);
  }
  [[nodiscard]] Result<fs::Status> await_resume() const noexcept {
    if (outcome() < 0) return base::failure(static_cast<int>(outcome()));
    return status_of(request().status());
  }
};

Result<> without_value(const Result<std::uint64_t>& result) noexcept {
  if (!result) return std::unexpected(result.error());
  return {};
}

unsigned flags_of(fs::Rename mode) noexcept {
  switch (mode) {
    case fs::Rename::replace:
      return 0;
    case fs::Rename::no_replace:
      return RENAME_NOREPLACE;
    case fs::Rename::exchange:
      return RENAME_EXCHANGE;
  }
  return 0;
}

}  // namespace
}  // namespace detail::files

namespace fs {

using detail::OperationKind;
using detail::backend::System;
using detail::base::failure;
using detail::files::call_on_path;
using detail::files::call_on_worker;
using detail::files::StatusCall;
using detail::files::without_value;

Task<Result<Status>> status(std::string path) { co_return co_await StatusCall(std::move(path), 0); }

Task<Result<Status>> symlink_status(std::string path) {
  co_return co_await StatusCall(std::move(path), AT_SYMLINK_NOFOLLOW);
}

Task<Result<bool>> exists(std::string path) {
  const auto found = co_await StatusCall(std::move(path), 0);
  if (found) co_return true;
  if (found.error() == system_error(ENOENT) || found.error() == system_error(ENOTDIR))
    co_return false;
  co_return std::unexpected(found.error());
}

Task<Result<>> rename(std::string from, std::string to, Rename mode) {
  const auto flags = static_cast<int>(detail::files::flags_of(mode));
  co_return without_value(
      co_await call_on_path(OperationKind::file_rename, std::move(from), std::move(to), flags));
}

Task<Result<>> remove_file(std::string path) {
  co_return without_value(co_await call_on_path(OperationKind::file_remove, std::move(path)));
}

Task<Result<>> remove_directory(std::string path) {
  co_return without_value(
      co_await call_on_path(OperationKind::file_remove, std::move(path), {}, AT_REMOVEDIR));
}

Task<Result<>> remove_all(std::string path) {
  const auto is_stopped = std::make_shared<std::atomic<bool>>(false);
  const TaskContext& context = co_await this_task;
  // The thread that removes the entries stops if this task is asked to, or is destroyed.
  auto set = [is_stopped] { is_stopped->store(true, std::memory_order_relaxed); };
  const std::stop_callback<decltype(set)> at_stop(context.stop, std::move(set));
  struct StopAtEnd {
    std::shared_ptr<std::atomic<bool>> flag;
    explicit StopAtEnd(std::shared_ptr<std::atomic<bool>> shared) noexcept
        : flag(std::move(shared)) {}
    StopAtEnd(const StopAtEnd&) = delete;
    StopAtEnd& operator=(const StopAtEnd&) = delete;
    ~StopAtEnd() { flag->store(true, std::memory_order_relaxed); }
  };
  const StopAtEnd at_end(is_stopped);
  detail::files::FileRequest::Body remove = [path, is_stopped](System& system) -> std::int64_t {
    return system.remove_all(path.c_str(), *is_stopped);
  };
  const auto removed = co_await call_on_worker(path, std::move(remove));
  co_return without_value(removed);
}

Task<Result<>> create_directory(std::string path, mode_t permissions) {
  co_return without_value(co_await call_on_path(OperationKind::file_make_directory, std::move(path),
                                                {}, 0, permissions));
}

Task<Result<>> create_directories(std::string path, mode_t permissions) {
  // From the last name upwards until a parent exists, and back.
  std::vector<std::string> missing{std::move(path)};
  while (!missing.empty()) {
    const auto created = co_await call_on_path(OperationKind::file_make_directory, missing.back(),
                                               {}, 0, permissions);
    if (created) {
      missing.pop_back();
      continue;
    }
    if (created.error() == system_error(EEXIST)) {
      // Another process may have created it, or it is not a directory.
      const auto found = co_await StatusCall(missing.back(), 0);
      if (!found) co_return std::unexpected(found.error());
      if (!found->is_directory()) co_return failure(missing.size() == 1 ? EEXIST : ENOTDIR);
      missing.pop_back();
      continue;
    }
    std::string parent = detail::files::parent_of(missing.back());
    if (created.error() != system_error(ENOENT) || parent == missing.back() || parent == ".")
      co_return std::unexpected(created.error());
    missing.push_back(std::move(parent));
  }
  co_return Result<>();
}

Task<Result<std::string>> canonical(std::string path) {
  const auto found = std::make_shared<std::string>();
  detail::files::FileRequest::Body resolve = [path, found](System& system) -> std::int64_t {
    return system.realpath(path.c_str(), *found);
  };
  const auto resolved = co_await call_on_worker(path, std::move(resolve), WhenStopped::abandon);
  if (!resolved) co_return std::unexpected(resolved.error());
  co_return std::move(*found);
}

Task<Result<std::string>> read_symlink(std::string path) {
  const auto target = std::make_shared<std::string>(PATH_MAX, '\0');
  detail::files::FileRequest::Body read = [path, target](System& system) -> std::int64_t {
    return system.readlink(path.c_str(), target->data(), target->size());
  };
  const auto size = co_await call_on_worker(path, std::move(read), WhenStopped::abandon);
  if (!size) co_return std::unexpected(size.error());
  if (*size == target->size()) co_return failure(ENAMETOOLONG);  // It may have been cut.
  target->resize(*size);
  co_return std::move(*target);
}

Task<Result<>> create_symlink(std::string target, std::string path) {
  co_return without_value(
      co_await call_on_path(OperationKind::file_symlink, std::move(path), std::move(target)));
}

Task<Result<>> create_hard_link(std::string file, std::string path) {
  co_return without_value(
      co_await call_on_path(OperationKind::file_link, std::move(path), std::move(file)));
}

Task<Result<>> set_permissions(std::string path, mode_t permissions) {
  constexpr mode_t permission_bits = 07777;
  detail::files::FileRequest::Body change = [path, permissions](System& system) -> std::int64_t {
    return system.chmod(path.c_str(), permissions & permission_bits);
  };
  co_return without_value(co_await call_on_worker(path, std::move(change)));
}

namespace {

timespec timespec_of(const std::optional<WallTime>& time) noexcept {
  if (!time) return {.tv_sec = 0, .tv_nsec = UTIME_OMIT};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(*time);
  return {.tv_sec = seconds.time_since_epoch().count(), .tv_nsec = (*time - seconds).count()};
}

}  // namespace

Task<Result<>> set_times(std::string path, std::optional<WallTime> accessed,
                         std::optional<WallTime> modified) {
  detail::files::FileRequest::Body change = [path, accessed,
                                             modified](System& system) -> std::int64_t {
    const std::array<timespec, 2> times{timespec_of(accessed), timespec_of(modified)};
    return system.utimensat(path.c_str(), times.data(), 0);
  };
  co_return without_value(co_await call_on_worker(path, std::move(change)));
}

Task<Result<>> resize_file(std::string path, std::uint64_t size) {
  auto file = co_await File::open(std::move(path), FileMode::write);
  if (!file) co_return std::unexpected(file.error());
  co_return co_await file->truncate(size);
}

Task<Result<>> sync_directory(std::string path) {
  const int flags = O_RDONLY | O_DIRECTORY;
  auto opened = co_await detail::files::call_open(std::move(path), flags, 0);
  if (!opened) co_return std::unexpected(opened.error());
  File directory = detail::files::Access::make(std::move(*opened));
  co_return co_await directory.sync();
}

}  // namespace fs
}  // namespace tambour
