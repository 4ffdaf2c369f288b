// The files that a handler has sent, for its next responses.
//
// A file is kept with its fields, and either with its contents or open. Before it is used again,
// its name is looked up again: once in each iteration of the loop, or after
// FileOptions::check_interval. Nothing here waits, except open().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/files.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/task.h>

#include "http/files/static_file.h"
#include "loop/service.h"

namespace tambour::http {

/// What a handler of files serves. Several loops may use it.
struct ServedFiles {
  std::string prefix;  ///< Of the names of files: a directory with a "/" at its end, or nothing.
  FileOptions options;
};

using StaticFilePtr = std::shared_ptr<const StaticFile>;

/// The files of one handler on one loop. Thread: that of the loop.
class FileCache {
 public:
  /// A handler must have `served` during each call of open_now() and open().
  FileCache(EventLoop& loop, const std::shared_ptr<const ServedFiles>& served) noexcept
      : loop_(loop), served_(served.get()), handlers_(served) {}
  FileCache(const FileCache&) = delete;
  FileCache& operator=(const FileCache&) = delete;
  ~FileCache() { clear(); }

  [[nodiscard]] const ServedFiles& served() const noexcept { return *served_; }
  [[nodiscard]] bool is_of(const ServedFiles& served) const noexcept { return served_ == &served; }

  struct Name {
    std::string_view text;  ///< With the suffix of `coding`.
    std::string_view coding{};
    std::size_t suffix_bytes = 0;
  };
  /// A file with the current version, or a directory. Fails with EAGAIN if open() must wait for it,
  /// and like File::open(). Throws std::bad_alloc.
  [[nodiscard]] Result<StaticFilePtr> open_now(const Name& name);
  /// The same, after open_now() has failed with EAGAIN.
  [[nodiscard]] Task<Result<StaticFilePtr>> open(std::string text, std::string_view coding,
                                                 std::size_t suffix_bytes);

  /// Forgets the files that were not used for `idle_ns`, and returns when the next one is due.
  static constexpr std::int64_t idle_ns = 10'000'000'000;
  std::int64_t drop_idle(std::int64_t now_ns) noexcept;
  void clear() noexcept;
  void disown() noexcept;
  /// True if no handler uses the cache any more.
  [[nodiscard]] bool is_abandoned() const noexcept { return handlers_.expired(); }
  void add_to(FileCacheStats& stats) const noexcept;

 private:
  struct Entry : detail::ListHook<Entry> {
    const std::string* name = nullptr;  ///< The key.
    std::string path;
    std::shared_ptr<StaticFile> file;
    std::size_t memory_bytes = 0;
    std::uint64_t checked_in = 0;  ///< The number of the iteration.
    std::int64_t checked_at_ns = 0;
    std::int64_t used_at_ns = 0;
    unsigned uses = 0;  ///< Up to kept_by_kernel_uses.
  };
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name.
    [[nodiscard]] std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>()(text);
    }
  };

  [[nodiscard]] Entry* find(std::string_view name) noexcept;
  [[nodiscard]] bool is_fresh(const Entry& entry) const noexcept;
  void note_check(Entry& entry) noexcept;
  [[nodiscard]] StaticFilePtr use(Entry& entry);
  void keep_often_used(Entry& entry);
  [[nodiscard]] Result<detail::files::OpenedFile> open_cached(const std::string& path);
  [[nodiscard]] StaticFilePtr admit(const Name& name, std::string&& path,
                                    detail::files::OpenedFile&& opened);
  void insert(const Name& name, std::string&& path, const std::shared_ptr<StaticFile>& file);
  void enforce_limits() noexcept;
  void erase(Entry& entry) noexcept;
  void erase_open_files() noexcept;

  EventLoop& loop_;
  const ServedFiles* served_;
  std::weak_ptr<const ServedFiles> handlers_;  ///< Keeps the address from being used again.
  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_;
  detail::IntrusiveList<Entry> used_;  ///< The one that was used last is the last.
  FileCacheStats stats_;
};

/// The caches of a loop.
class FileCaches final : public detail::loop::Service {
 public:
  explicit FileCaches(detail::loop::Core& core) noexcept : core_(core) {}

  /// Throws std::bad_alloc.
  [[nodiscard]] static FileCache& of(EventLoop& loop,
                                     const std::shared_ptr<const ServedFiles>& served);

  /// A file was added.
  void schedule() noexcept;
  [[nodiscard]] FileCacheStats stats() const noexcept;

  [[nodiscard]] std::int64_t before_wait() noexcept override { return due_ns_; }
  void expire(std::int64_t now_ns) noexcept override;
  void disown_if_lost(bool has_all) noexcept override;
  [[nodiscard]] Result<> reopen() noexcept override;
  void close() noexcept override;

 private:
  [[nodiscard]] FileCache& find(EventLoop& loop, const std::shared_ptr<const ServedFiles>& served);
  void drop_abandoned() noexcept;

  detail::loop::Core& core_;
  std::vector<std::unique_ptr<FileCache>> caches_;
  std::int64_t due_ns_ = detail::base::end_of_time_ns;
};

}  // namespace tambour::http
