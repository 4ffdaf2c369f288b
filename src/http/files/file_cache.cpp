// FileCache: when a file is used again, opened again, and forgotten.
#include "http/files/file_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include <tambour/file/file.h>

#include "base/clock.h"
#include "io/transport.h"
#include "loop/core.h"

namespace tambour::http {
namespace {

/// The memory of an entry without the contents of its file: names, fields, and the objects.
constexpr std::size_t entry_bytes = 1024;

/// After so many responses, the kernel gets the contents of a file. Files that are requested
/// rarely, or change often, are not worth the system calls.
constexpr unsigned kept_by_kernel_uses = 16;

/// False if File::open() finds out what is the matter: the kernel would have to wait, or does not
/// have the call.
bool is_final(const Error& error) noexcept {
  switch (error.value()) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case EACCES:
    case ENODEV:
    case ENXIO:
      return true;
    default:
      return false;
  }
}

bool are_descriptors_exhausted(const Error& error) noexcept {
  return error == system_error(EMFILE) || error == system_error(ENFILE);
}

}  // namespace

FileCache::Entry* FileCache::find(std::string_view name) noexcept {
  const auto found = entries_.find(name);
  return found != entries_.end() ? &found->second : nullptr;
}

bool FileCache::is_fresh(const Entry& entry) const noexcept {
  const detail::loop::Core& core = detail::loop::core_of(loop_);
  if (entry.checked_in == core.iteration_number()) return true;
  if (core.now_ns() - entry.checked_at_ns >= served_->options.check_interval.count()) return false;
  if (entry.file->has_contents) return true;
  // The head of a response must describe what the file contains now.
  const auto version = detail::files::version_of(loop_, entry.file->file);
  return version && *version == entry.file->version;
}

void FileCache::note_check(Entry& entry) noexcept {
  const detail::loop::Core& core = detail::loop::core_of(loop_);
  entry.checked_in = core.iteration_number();
  entry.checked_at_ns = core.now_ns();
}

StaticFilePtr FileCache::use(Entry& entry) {
  entry.used_at_ns = detail::loop::core_of(loop_).now_ns();
  entry.unlink();
  used_.push_back(entry);
  ++stats_.hits;
  if (!entry.file->may_have_contents()) {
    if (entry.uses == kept_by_kernel_uses) return entry.file;
    ++entry.uses;
    if (entry.uses == kept_by_kernel_uses) [[unlikely]]
      keep_often_used(entry);
    return entry.file;
  }
  // Responses that use the descriptor may be in progress: the file stays open.
  const std::shared_ptr<StaticFile> file = entry.file;
  load_contents(loop_, *file);
  stats_.memory_bytes += file->contents.size();
  entry.memory_bytes += file->contents.size();
  enforce_limits();
  return file;
}

/// Sockets get contents of some size from pages of the kernel, without a copy.
void FileCache::keep_often_used(Entry& entry) {
  const bool may_be_sent_so = entry.file->contents.size() >= detail::io::Transport::file_part_min &&
                              !entry.file->has_descriptor();
  if (!may_be_sent_so) return;
  if (stats_.open_files < served_->options.open_files_max) let_kernel_keep(loop_, *entry.file);
  if (entry.file->has_descriptor())
    ++stats_.open_files;
  else
    entry.uses = 0;  // Tries again later: other files may have been closed.
}

Result<StaticFilePtr> FileCache::open_now(const Name& name) {
  if (Entry* const entry = find(name.text)) {
    if (is_fresh(*entry)) return use(*entry);
    const auto version = detail::files::version_of(loop_, entry->path.c_str());
    if (version && *version == entry->file->version) {
      ++stats_.checks;
      note_check(*entry);
      return use(*entry);
    }
    if (!version && !is_final(version.error())) return std::unexpected(system_error(EAGAIN));
    erase(*entry);
  }
  std::string path = served_->prefix;
  path += name.text;
  // File::open() rejects it.
  if (path.contains('\0')) return std::unexpected(system_error(EAGAIN));
  auto opened = open_cached(path);
  if (!opened && !is_final(opened.error())) return std::unexpected(system_error(EAGAIN));
  if (!opened) return std::unexpected(opened.error());
  return admit(name, std::move(path), std::move(*opened));
}

Task<Result<StaticFilePtr>> FileCache::open(std::string text, std::string_view coding,
                                            std::size_t suffix_bytes) {
  std::string path = served_->prefix + text;
  ++stats_.waits;
  Result<File> file = co_await File::open(path);
  if (!file && are_descriptors_exhausted(file.error()) && stats_.open_files > 0) {
    erase_open_files();
    file = co_await File::open(path);
  }
  Entry* const entry = find(text);
  if (!file) {
    if (entry != nullptr && !are_descriptors_exhausted(file.error())) erase(*entry);
    co_return std::unexpected(file.error());
  }
  const auto version = detail::files::version_of(loop_, *file);
  if (!version) co_return std::unexpected(version.error());
  if (!S_ISREG(version->mode) && !S_ISDIR(version->mode))
    co_return std::unexpected(system_error(ENODEV));
  if (entry != nullptr && entry->file->version == *version) {
    note_check(*entry);
    co_return use(*entry);
  }
  if (entry != nullptr) erase(*entry);
  detail::files::OpenedFile opened{.file = std::move(*file), .version = *version};
  const Name name{.text = text, .coding = coding, .suffix_bytes = suffix_bytes};
  co_return admit(name, std::move(path), std::move(opened));
}

Result<detail::files::OpenedFile> FileCache::open_cached(const std::string& path) {
  auto opened = detail::files::open_cached(loop_, path.c_str());
  if (opened || !are_descriptors_exhausted(opened.error()) || stats_.open_files == 0) return opened;
  erase_open_files();
  return detail::files::open_cached(loop_, path.c_str());
}

StaticFilePtr FileCache::admit(const Name& name, std::string&& path,
                               detail::files::OpenedFile&& opened) {
  // Before the contents are read: a change after that has another time, if the last one is past.
  const std::int64_t wall_ns = detail::loop::core_of(loop_).wall_ns();
  const StaticFileName named{
      .path = std::string_view(path).substr(0, path.size() - name.suffix_bytes),
      .coding = name.coding};
  std::shared_ptr<StaticFile> file =
      make_static_file(loop_, std::move(opened), named, served_->options);
  if (file->is_directory()) return file;
  ++stats_.misses;
  if (is_settled(file->version, wall_ns)) insert(name, std::move(path), file);
  return file;
}

void FileCache::insert(const Name& name, std::string&& path,
                       const std::shared_ptr<StaticFile>& file) {
  const FileOptions& options = served_->options;
  const std::size_t bytes = entry_bytes + path.size() + file->contents.size();
  const std::size_t descriptors = file->has_descriptor() ? 1 : 0;
  if (bytes > options.memory_bytes_max || descriptors > options.open_files_max) return;
  const auto [place, is_new] = entries_.try_emplace(std::string(name.text));
  if (!is_new) return;
  Entry& entry = place->second;
  entry.name = &place->first;
  entry.path = std::move(path);
  entry.file = file;
  entry.memory_bytes = bytes;
  entry.used_at_ns = detail::loop::core_of(loop_).now_ns();
  note_check(entry);
  used_.push_back(entry);
  ++stats_.files;
  stats_.open_files += descriptors;
  stats_.memory_bytes += bytes;
  detail::loop::core_of(loop_).service<FileCaches>().schedule();
  enforce_limits();
}

void FileCache::enforce_limits() noexcept {
  const FileOptions& options = served_->options;
  while (stats_.memory_bytes > options.memory_bytes_max ||
         stats_.open_files > options.open_files_max) {
    ++stats_.evictions;
    erase(*used_.front());
  }
}

void FileCache::erase(Entry& entry) noexcept {
  --stats_.files;
  if (entry.file->has_descriptor()) --stats_.open_files;
  stats_.memory_bytes -= entry.memory_bytes;
  entries_.erase(entries_.find(*entry.name));
}

void FileCache::erase_open_files() noexcept {
  for (Entry* entry = used_.front(); entry != nullptr;) {
    Entry& candidate = *std::exchange(entry, used_.after(*entry));
    if (!candidate.file->has_descriptor()) continue;
    ++stats_.evictions;
    erase(candidate);
  }
}

std::int64_t FileCache::drop_idle(std::int64_t now_ns) noexcept {
  while (Entry* const entry = used_.front()) {
    const std::int64_t due_ns = detail::base::saturating_add(entry->used_at_ns, idle_ns);
    if (due_ns > now_ns) return due_ns;
    erase(*entry);
  }
  return detail::base::end_of_time_ns;
}

void FileCache::clear() noexcept {
  while (Entry* const entry = used_.front()) erase(*entry);
}

void FileCache::disown() noexcept {
  for (const Entry* entry = used_.front(); entry != nullptr; entry = used_.after(*entry)) {
    StaticFile& file = *entry->file;
    if (file.file.is_open()) detail::files::disown(file.file);
    if (file.kernel_contents != nullptr) file.kernel_contents->disown();
  }
}

void FileCache::add_to(FileCacheStats& stats) const noexcept {
  stats.hits += stats_.hits;
  stats.checks += stats_.checks;
  stats.misses += stats_.misses;
  stats.waits += stats_.waits;
  stats.evictions += stats_.evictions;
  stats.files += stats_.files;
  stats.open_files += stats_.open_files;
  stats.memory_bytes += stats_.memory_bytes;
}

FileCache& FileCaches::of(EventLoop& loop, const std::shared_ptr<const ServedFiles>& served) {
  const auto caches = detail::loop::core_of(loop).open_service<FileCaches>();
  if (!caches) throw std::bad_alloc();
  return (*caches)->find(loop, served);
}

FileCache& FileCaches::find(EventLoop& loop, const std::shared_ptr<const ServedFiles>& served) {
  const auto found =
      std::ranges::find_if(caches_, [&](const auto& cache) { return cache->is_of(*served); });
  if (found != caches_.end()) return **found;
  // A program may make a handler for each request.
  drop_abandoned();
  return *caches_.emplace_back(std::make_unique<FileCache>(loop, served));
}

void FileCaches::schedule() noexcept {
  if (due_ns_ == detail::base::end_of_time_ns)
    due_ns_ = detail::base::saturating_add(core_.now_ns(), FileCache::idle_ns);
}

void FileCaches::expire(std::int64_t now_ns) noexcept {
  if (now_ns < due_ns_) return;
  due_ns_ = detail::base::end_of_time_ns;
  for (const auto& cache : caches_) due_ns_ = std::min(due_ns_, cache->drop_idle(now_ns));
  drop_abandoned();
}

void FileCaches::drop_abandoned() noexcept {
  std::erase_if(caches_, [](const auto& cache) { return cache->is_abandoned(); });
}

FileCacheStats FileCaches::stats() const noexcept {
  FileCacheStats stats;
  for (const auto& cache : caches_) cache->add_to(stats);
  return stats;
}

void FileCaches::disown_if_lost(bool has_all) noexcept {
  if (has_all) return;
  for (const auto& cache : caches_) cache->disown();
}

Result<> FileCaches::reopen() noexcept {
  for (const auto& cache : caches_) cache->clear();
  return {};
}

void FileCaches::close() noexcept { caches_.clear(); }

FileCacheStats file_cache_stats(EventLoop& loop) noexcept {
  const auto caches = detail::loop::core_of(loop).open_service<FileCaches>();
  return caches ? (*caches)->stats() : FileCacheStats();
}

}  // namespace tambour::http
