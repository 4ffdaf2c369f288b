// FileStatus: the handle, and the comparison of two results of stat(2).
#include <tambour/events/file_status.h>

#include <cerrno>
#include <utility>

#include <tambour/loop/event_loop.h>

#include "base/failure.h"
#include "events/file_status_path.h"

namespace tambour {
namespace {

bool same_time(const timespec& a, const timespec& b) noexcept {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

bool FileState::is_same_as(const FileState& other) const noexcept {
  if (!exists || !other.exists) return exists == other.exists;
  const struct ::stat& a = status;
  const struct ::stat& b = other.status;
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_mode == b.st_mode &&
         a.st_nlink == b.st_nlink && a.st_uid == b.st_uid && a.st_gid == b.st_gid &&
         a.st_rdev == b.st_rdev && a.st_size == b.st_size && same_time(a.st_mtim, b.st_mtim) &&
         same_time(a.st_ctim, b.st_ctim);
}

FileStatus::FileStatus(EventLoop& loop, std::string path, Function function,
                       const FileStatusOptions& options, std::source_location created_at)
    : watched_(std::make_unique<detail::events::WatchedPath>(loop, detail::loop::core_of(loop),
                                                             std::move(path), std::move(function),
                                                             options, created_at)) {}

FileStatus::FileStatus(FileStatus&& other) noexcept = default;
FileStatus& FileStatus::operator=(FileStatus&& other) noexcept = default;
FileStatus::~FileStatus() = default;

Result<> FileStatus::start() noexcept {
  if (path().contains('\0')) return detail::base::failure(EINVAL);
  return watched_->start();
}
void FileStatus::stop() noexcept {
  if (is_started()) watched_->stop();
}
bool FileStatus::is_started() const noexcept {
  return watched_ != nullptr && watched_->is_started();
}
void FileStatus::update() noexcept { watched_->update(); }
const std::string& FileStatus::path() const noexcept { return watched_->path(); }
const FileState& FileStatus::current() const noexcept { return watched_->current(); }
bool FileStatus::is_polling() const noexcept { return watched_->is_polling(); }
int FileStatus::priority() const noexcept { return watched_->priority(); }
void FileStatus::set_priority(int priority) noexcept { watched_->set_priority(priority); }

void FileStatus::set_function(Function function) noexcept {
  watched_->set_function(std::move(function));
}

}  // namespace tambour
