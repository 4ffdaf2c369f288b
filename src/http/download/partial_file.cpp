// PartialFile: PATH.part, and PATH.part.info with a line each for the URL, the validator and the
// size of the whole file.
#include "http/download/partial_file.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include <tambour/fs/contents.h>
#include <tambour/fs/paths.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/cancellation.h>

#include "base/parse_number.h"
#include "loop/core.h"

namespace tambour::http::detail::download {
namespace {

constexpr std::string_view info_format = "tambour download 1";
constexpr std::size_t info_bytes_max = std::size_t{256} * 1024;

/// Removes a line from the front.
std::string take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string line(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// A password must not be stored in a file.
std::string without_userinfo(std::string url) {
  const std::size_t scheme_end = url.find("://");
  if (scheme_end == std::string::npos) return url;
  const std::size_t begin = scheme_end + 3;
  const std::size_t end = std::min(url.find_first_of("/?#", begin), url.size());
  const std::size_t at = url.rfind('@', end);
  if (at != std::string::npos && at >= begin && at < end) url.erase(begin, at + 1 - begin);
  return url;
}

/// The paths to which this process downloads, each with its kernel or simulated host.
struct PathsInUse {
  std::mutex mutex;
  std::set<std::pair<const void*, std::string>> paths;
};

PathsInUse& paths_in_use() {
  static PathsInUse in_use;
  return in_use;
}

}  // namespace

PartialFile::PartialFile(std::string url, std::string path)
    : url_(without_userinfo(std::move(url))),
      path_(std::move(path)),
      part_path_(path_ + ".part"),
      info_path_(path_ + ".part.info") {}

PartialFile::~PartialFile() {
  if (system_ == nullptr) return;
  PathsInUse& in_use = paths_in_use();
  const std::scoped_lock lock(in_use.mutex);
  const auto found = std::ranges::find_if(in_use.paths, [this](const auto& entry) {
    return entry.first == system_ && entry.second == path_;
  });
  if (found != in_use.paths.end()) in_use.paths.erase(found);
}

bool PartialFile::lock(const void* system) {
  PathsInUse& in_use = paths_in_use();
  const std::scoped_lock lock(in_use.mutex);
  const bool is_free = in_use.paths.emplace(system, path_).second;
  if (is_free) system_ = system;
  return is_free;
}

Task<Result<>> PartialFile::open() {
  const TaskContext& context = co_await this_task;
  if (!lock(&loop::core_of(*context.loop).backend().system()))
    co_return std::unexpected(system_error(EBUSY));
  // What cannot be read is downloaded again.
  const auto info = co_await fs::read_file(info_path_, info_bytes_max);
  if (!info) co_return {};
  std::string_view text = *info;
  const bool is_same = take_line(text) == info_format && take_line(text) == url_;
  std::string validator = take_line(text);
  const std::string total = take_line(text);
  if (!is_same || validator.empty()) co_return {};
  auto file = co_await File::open(part_path_, FileMode::update);
  if (!file) co_return {};
  const auto size = co_await file->size();
  if (!size) co_return std::unexpected(size.error());
  file_ = std::move(*file);
  bytes_ = *size;
  validator_ = std::move(validator);
  if (const auto number = base::parse_number<std::uint64_t>(total)) total_ = *number;
  // The last byte is asked for again, because a request for nothing would be an error.
  if (total_ && bytes_ >= *total_) bytes_ = *total_ - std::min<std::uint64_t>(*total_, 1);
  co_return {};
}

Task<Result<>> PartialFile::restart(std::string validator, std::optional<std::uint64_t> total) {
  bytes_ = 0;
  validator_ = std::move(validator);
  total_ = total;
  // Contents must never belong to another version than the information says.
  const auto removed = co_await fs::remove_file(info_path_);
  if (!removed && removed.error() != system_error(ENOENT)) co_return removed;
  auto file = co_await File::open(part_path_, FileMode::replace);
  if (!file) co_return std::unexpected(file.error());
  file_ = std::move(*file);
  if (validator_.empty()) co_return {};
  std::string info(info_format);
  info.append("\n").append(url_).append("\n").append(validator_).append("\n");
  info.append(total_ ? std::to_string(*total_) : "").append("\n");
  fs::ReplaceOptions options;
  options.sync = false;
  // The query of the URL may be a secret, too.
  options.permissions = 0600;
  auto written = fs::replace_file(info_path_, std::move(info), options);
  co_return co_await std::move(written);
}

Task<Result<>> PartialFile::append(Buffer bytes) {
  const std::size_t size = bytes.size();
  const auto written = co_await file_.write_at(std::move(bytes), bytes_);
  if (written) bytes_ += size;
  co_return written;
}

Task<Result<>> PartialFile::finish(bool sync) {
  // A file that has become shorter, or an earlier call that wrote more.
  if (const auto cut = co_await file_.truncate(bytes_); !cut) co_return cut;
  if (sync) {
    if (const auto synced = co_await file_.sync(); !synced) co_return synced;
  }
  file_.close();
  const auto renamed = co_await fs::rename(part_path_, path_);
  if (!renamed) co_return renamed;
  if (!validator_.empty()) static_cast<void>(co_await fs::remove_file(info_path_));
  if (sync) {
    if (const auto synced = co_await fs::sync_directory(directory_of(path_)); !synced)
      co_return synced;
  }
  co_return {};
}

Task<> PartialFile::abandon() {
  if (!file_.is_open() || can_continue()) co_return;
  file_.close();
  // Also if the task was asked to stop.
  static_cast<void>(co_await uncancellable(fs::remove_file(part_path_)));
  static_cast<void>(co_await uncancellable(fs::remove_file(info_path_)));
}

}  // namespace tambour::http::detail::download
