// StaticFile: its fields, its contents, and whether its version identifies them.
#include "http/files/static_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <span>
#include <utility>

#include <tambour/http/date.h>

#include "http_message/characters.h"
#include "loop/core.h"

namespace tambour::http {
namespace {

Validators validators_of(const detail::files::FileVersion& version) {
  std::array<char, 64> text;
  char* at = text.data();
  const auto put = [&](char separator, std::uint64_t number) {
    *at++ = separator;
    at = std::to_chars(at, text.data() + text.size() - 1, number, 16).ptr;
  };
  put('"', version.inode);
  put('-', version.size);
  put('-', static_cast<std::uint64_t>(version.modified_ns));
  *at++ = '"';
  const std::chrono::nanoseconds modified(version.modified_ns);
  return {.tag = std::string(text.data(), at),
          .modified = std::chrono::sys_seconds(std::chrono::floor<std::chrono::seconds>(modified))};
}

std::string_view media_type_of(std::string_view path, const FileOptions& options) {
  const std::string_view extension = path.substr(std::min(path.rfind('.'), path.size() - 1) + 1);
  for (const auto& [entry, type] : options.media_types) {
    if (equal_ignoring_case(entry, extension)) return type;
  }
  return http::media_type_of(path);
}

Fields fields_of(const Validators& validators, const StaticFileName& name,
                 const FileOptions& options, std::int64_t wall_ns) {
  Fields fields;
  static_cast<void>(fields.add("ETag", validators.tag));
  // RFC 9110, section 8.8.2.1: not later than the time of the response.
  const std::chrono::nanoseconds now(wall_ns);
  const auto modified = std::min(
      validators.modified, std::chrono::sys_seconds(std::chrono::floor<std::chrono::seconds>(now)));
  static_cast<void>(fields.add("Last-Modified", format_date(modified)));
  static_cast<void>(fields.add("Accept-Ranges", "bytes"));
  if (options.precompressed) static_cast<void>(fields.add("Vary", "Accept-Encoding"));
  if (!name.coding.empty()) static_cast<void>(fields.add("Content-Encoding", name.coding));
  if (!options.cache_control.empty())
    static_cast<void>(fields.add("Cache-Control", options.cache_control));
  static_cast<void>(fields.add("Content-Type", media_type_of(name.path, options)));
  static_cast<void>(fields.add("X-Content-Type-Options", "nosniff"));
  return fields;
}

/// The file system may round times to multiples of this. Most use those of the kernel's clock,
/// which advances at least every 10 ms; times in whole milliseconds may be those of one with whole
/// seconds, or two.
std::int64_t resolution_of(std::int64_t time_ns) noexcept {
  constexpr std::int64_t clock_ns = 20'000'000;
  constexpr std::int64_t coarse_ns = 2'000'000'000;
  return time_ns % 1'000'000 == 0 ? coarse_ns : clock_ns;
}

}  // namespace

bool StaticFile::is_directory() const noexcept { return S_ISDIR(version.mode); }

void load_contents(EventLoop& loop, StaticFile& file) {
  if (!file.may_have_contents()) return;
  const auto size = static_cast<std::size_t>(file.version.size);
  if (size > 0) {
    // NOLINTNEXTLINE(modernize-avoid-c-arrays): memory that is not initialized.
    auto memory = std::make_shared_for_overwrite<std::byte[]>(size);
    const std::span<std::byte> bytes(memory.get(), size);
    if (!detail::files::read_cached(file.file, bytes, 0)) return;
    const auto version = detail::files::version_of(loop, file.file);
    if (!version || *version != file.version) return;
    file.contents.append_shared(bytes, std::move(memory));
  }
  file.has_contents = true;
}

void let_kernel_keep(EventLoop& loop, StaticFile& file) {
  auto kept = detail::files::MemoryFile::copy_of(loop, file.contents);
  if (kept == nullptr) return;
  file.contents = detail::files::MemoryFile::contents_of(kept);
  file.kernel_contents = std::move(kept);
}

std::shared_ptr<StaticFile> make_static_file(EventLoop& loop, detail::files::OpenedFile&& opened,
                                             const StaticFileName& name,
                                             const FileOptions& options) {
  auto file = std::make_shared<StaticFile>();
  file->file = std::move(opened.file);
  file->version = opened.version;
  if (file->is_directory()) return file;
  file->validators = validators_of(file->version);
  file->fields = fields_of(file->validators, name, options, detail::loop::core_of(loop).wall_ns());
  load_contents(loop, *file);
  if (file->has_contents) file->file.close();
  return file;
}

bool is_settled(const detail::files::FileVersion& version, std::int64_t wall_ns) noexcept {
  const auto is_past = [wall_ns](std::int64_t time_ns) {
    return time_ns < wall_ns - resolution_of(time_ns);
  };
  return is_past(version.modified_ns) && is_past(version.changed_ns);
}

}  // namespace tambour::http
