// Compares the versions of the files with those that were loaded.
#include "tls/context/source_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

namespace tambour::tls::detail {
namespace {

base::FileVersion version_of(const std::string& path) noexcept {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 ? base::FileVersion::of(status) : base::FileVersion();
}

}  // namespace

void SourceFiles::start(const std::vector<std::string>& paths) {
  files_.reserve(paths.size());
  for (const std::string& path : paths) files_.push_back({path, version_of(path)});
}

bool SourceFiles::have_changed(TimePoint now, Duration interval) noexcept {
  if (files_.empty() || interval <= Duration::zero()) return false;
  const std::size_t calls = (files_.size() + files_per_call - 1) / files_per_call;
  const std::int64_t pause_ns = interval.count() / static_cast<std::int64_t>(calls);
  const std::int64_t now_ns = now.time_since_epoch().count();
  // In both directions: each simulation has a clock of its own.
  if (std::abs(now_ns - examined_ns_.load(std::memory_order_relaxed)) < pause_ns) return false;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  examined_ns_.store(now_ns, std::memory_order_relaxed);
  bool has_changed = is_forgotten_;
  is_forgotten_ = false;
  for (std::size_t i = std::min(files_.size(), files_per_call); i > 0; --i) {
    File& file = files_[next_];
    next_ = (next_ + 1) % files_.size();
    const base::FileVersion version = version_of(file.path);
    if (version.size < 0 || version == file.version) continue;
    file.version = version;
    has_changed = true;
  }
  return has_changed;
}

void SourceFiles::forget() noexcept {
  const std::scoped_lock lock(mutex_);
  is_forgotten_ = true;
}

}  // namespace tambour::tls::detail
