// WatchedPath: which entries and links of a path inotify watches, and when stat(2) is called at
// intervals instead.
#include "events/file_status_path.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/system_call.h"
#include "loop/core.h"
#include "loop/loop_callback.h"

namespace tambour::detail::events {
namespace {

/// File systems that only this machine modifies, so that inotify reports every change (f_type of
/// statfs(2)). On any other, the path is polled as well.
constexpr std::array<unsigned long, 15> local_file_systems{
    0xEF53,      // ext2, ext3, ext4
    0x01021994,  // tmpfs
    0x858458f6,  // ramfs
    0x9123683E,  // btrfs
    0x58465342,  // XFS
    0xF2F52010,  // F2FS
    0x794c7630,  // overlayfs
    0xca451a4e,  // bcachefs
    0x2fc12fc1,  // ZFS
    0x3153464a,  // JFS
    0x52654973,  // ReiserFS
    0x4d44,      // FAT
    0x2011BAB0,  // exFAT
    0x73717368,  // SquashFS
    0xe0f5e1e2,  // EROFS
};

bool only_changes_here(const char* path) noexcept {
  struct statfs found{};
  if (base::system_call(base::Call::statfs, ::statfs, path, &found) != 0) return false;
  // On some architectures f_type is signed and 32 bits wide.
  const auto type = static_cast<unsigned long>(found.f_type) & 0xffffffff;
  return std::ranges::find(local_file_systems, type) != local_file_systems.end();
}

FileState state_of(const char* path) noexcept {
  FileState state;
  state.exists = base::system_call(base::Call::stat, ::stat, path, &state.status) == 0;
  if (!state.exists) {
    state.error = system_error(errno);
    state.status = {};
  }
  return state;
}

bool same_file(const FileState& a, const FileState& b) noexcept {
  if (!a.exists || !b.exists) return a.exists == b.exists;
  return a.status.st_dev == b.status.st_dev && a.status.st_ino == b.status.st_ino;
}

/// Returns the last component of a path, and sets `path` to its directory.
std::string_view split(std::string_view& path) noexcept {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return std::exchange(path, ".");
  const std::string_view name = path.substr(slash + 1);
  path = path.substr(0, slash == 0 ? 1 : slash);
  return name;
}

/// Returns true if the target of a link in `directory` is a link too, or if that cannot be
/// determined.
bool leads_to_link(const char* link, std::string_view directory) noexcept {
  std::array<char, PATH_MAX> target;
  const auto size =
      base::system_call(base::Call::stat, ::readlink, link, target.data(), target.size());
  if (size <= 0) return true;
  std::string_view name(target.data(), static_cast<std::size_t>(size));
  while (name.size() > 1 && name.back() == '/') name.remove_suffix(1);
  try {
    std::string path;
    if (name.front() != '/') path.append(directory).push_back('/');
    path += name;
    struct ::stat status{};
    return base::system_call(base::Call::stat, ::lstat, path.c_str(), &status) != 0 ||
           S_ISLNK(status.st_mode);
  } catch (const std::bad_alloc&) {
    return true;
  }
}

Duration interval_of(const FileStatusOptions& options) noexcept {
  if (options.interval <= Duration::zero()) return FileStatusOptions::interval_default;
  return std::max(options.interval, FileStatusOptions::interval_min);
}

}  // namespace

WatchedPath::WatchedPath(EventLoop& loop, loop::Core& core, std::string path,
                         FileStatus::Function function, const FileStatusOptions& options,
                         std::source_location created_at)
    : Handle(core, std::move(function), &run, created_at),
      path_(std::move(path)),
      options_(options),
      target_(*this),
      holder_(*this),
      timer_(loop, [this] { queue_check(false); }, created_at) {
  scratch_.reserve(path_.size() + 1);
}

WatchedPath::~WatchedPath() { stop(); }

Result<> WatchedPath::start() noexcept {
  core_->check_thread();
  if (is_started()) return {};
  auto service = core_->open_service<Inotify>();
  if (!service) return std::unexpected(service.error());
  (*service)->enter(*this);
  core_->add_reference();
  must_renew_ = true;
  current_ = read_state();
  return {};
}

void WatchedPath::stop() noexcept {
  if (!is_started()) return;
  core_->check_thread();
  unlink();
  set_polling(false);
  Inotify& inotify = core_->service<Inotify>();
  inotify.unwatch(target_);
  inotify.unwatch(holder_);
  inotify.leave(*this);
  core_->drop_reference();
}

void WatchedPath::update() noexcept {
  core_->check_thread();
  unlink();
  current_ = is_started() ? read_state() : state_of(path_.c_str());
}

void WatchedPath::queue_check(bool must_renew) noexcept {
  must_renew_ |= must_renew;
  core_->queue_now(*this);
}

void WatchedPath::set_function(FileStatus::Function function) noexcept {
  core_->check_thread();
  replace_function(std::move(function));
}

void WatchedPath::run(detail::ReadyNode& ready) {
  auto& self = static_cast<WatchedPath&>(ready);
  const FileState now = self.read_state();
  const FileState before = std::exchange(self.current_, now);
  if (!now.is_same_as(before)) self.function_(before, now);
}

FileState WatchedPath::read_state() noexcept {
  const FileState state = state_of(path_.c_str());
  const bool watches_it = target_.watched() && !must_renew_ && same_file(state, current_);
  return watches_it ? state : renew_watches();
}

/// Watches the file that the path leads to now, and reads its state again afterwards, because a
/// change before the watch was added is not reported.
FileState WatchedPath::renew_watches() noexcept {
  must_renew_ = false;
  bool is_notified = false;
  FileState state = state_of(path_.c_str());
  // If the path changes faster than watches can be added, it is polled.
  for (int attempt = 0; attempt < 5; ++attempt) {
    is_notified = state.exists ? watch_existing() : watch_ancestor(state);
    const FileState former = std::exchange(state, state_of(path_.c_str()));
    if (same_file(former, state) && (state.exists || !missed_a_directory())) break;
    is_notified = false;
  }
  set_polling(!is_notified || options_.always_poll);
  return state;
}

/// Returns true if inotify will report every change.
bool WatchedPath::watch_existing() noexcept {
  Inotify& inotify = core_->service<Inotify>();
  bool is_notified =
      inotify.watch_file(target_, path_.c_str()) == 0 && only_changes_here(path_.c_str());
  struct ::stat link{};
  if (base::system_call(base::Call::stat, ::lstat, path_.c_str(), &link) != 0 ||
      !S_ISLNK(link.st_mode)) {
    inotify.unwatch(holder_);
    return is_notified;
  }
  std::string_view directory = path_;
  const std::string_view name = split(directory);
  scratch_ = directory;
  if (inotify.watch_entry(holder_, scratch_.c_str(), name) != 0) is_notified = false;
  // Of a chain of symbolic links, only the first is watched.
  return is_notified && !leads_to_link(path_.c_str(), directory);
}

bool WatchedPath::watch_ancestor(const FileState& state) noexcept {
  Inotify& inotify = core_->service<Inotify>();
  inotify.unwatch(holder_);
  struct ::stat link{};
  // Of a dangling symbolic link, only the link itself can be watched.
  bool is_notified = base::system_call(base::Call::stat, ::lstat, path_.c_str(), &link) != 0 &&
                     (state.error.value() == ENOENT || state.error.value() == ENOTDIR);
  std::string_view directory = path_;
  int error = ENOENT;
  while (error == ENOENT || error == ENOTDIR) {
    if (directory == "/" || directory == "." || directory.empty()) return false;
    const std::string_view name = split(directory);
    scratch_ = directory;
    error = inotify.watch_entry(target_, scratch_.c_str(), name);
  }
  if (error != 0 || !only_changes_here(scratch_.c_str())) is_notified = false;
  return is_notified;
}

/// Returns true if the missing directory, whose parent is watched, exists by now: if it was created
/// after the path was looked up and before the parent was watched, no event reports it.
bool WatchedPath::missed_a_directory() noexcept {
  if (!target_.watched()) return false;
  // The name is a substring of the path.
  const char* const end = target_.name.data() + target_.name.size();
  scratch_.assign(path_, 0, static_cast<std::size_t>(end - path_.data()));
  const FileState state = state_of(scratch_.c_str());
  return state.exists && S_ISDIR(state.status.st_mode);
}

void WatchedPath::set_polling(bool polling) noexcept {
  if (polling == timer_.is_started()) return;
  // The path holds the reference that keeps run() from returning; the timer's own reference would
  // outlast an EventLoop::unref().
  if (polling) {
    timer_.start(interval_of(options_), interval_of(options_));
    core_->drop_reference();
  } else {
    core_->add_reference();
    timer_.stop();
  }
}

}  // namespace tambour::detail::events
