// serve_files() and send_file().
#include <tambour/http/files.h>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <random>

#include <tambour/file/file.h>
#include <tambour/http/date.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/context.h>

#include "files/file_calls.h"
#include "http/coding/negotiation.h"
#include "http/files/conditions.h"
#include "http/files/ranges.h"
#include "http_message/characters.h"
#include "loop/core.h"

namespace tambour::http {
namespace {

/// An open regular file, or a directory.
struct Opened {
  File file;
  struct stat status{};
  std::string_view coding;  ///< Of a precompressed file: "gzip", for example.
};

/// A precompressed variant of a file.
struct CodedFile {
  std::string_view name;
  std::string_view suffix;
};
constexpr std::array<CodedFile, 3> codings = {{{.name = "br", .suffix = ".br"},
                                               {.name = "zstd", .suffix = ".zst"},
                                               {.name = "gzip", .suffix = ".gz"}}};

/// Replaces what the fields say about the file.
void fail_with(Response& response, Status status) {
  response.headers().remove("Cache-Control");
  static_cast<void>(response.send_error(status));
}

Status status_of(const Error& error) noexcept {
  if (error.category() != std::system_category() && error.category() != std::generic_category())
    return Status::internal_server_error;
  switch (error.value()) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case ESPIPE:
    case ENXIO:
    case ENODEV:
      return Status::not_found;
    case EACCES:
    case EPERM:
      return Status::forbidden;
    case EAGAIN:
    case EMFILE:
    case ENFILE:
      return Status::service_unavailable;
    default:
      return Status::internal_server_error;
  }
}

Task<Result<Opened>> open_file(EventLoop& loop, std::string path) {
  Opened opened;
  Result<File> file = co_await File::open(std::move(path));
  if (!file) co_return std::unexpected(file.error());
  opened.file = std::move(*file);
  // fstat(2) of an open file does not wait.
  const Result<struct stat> status = detail::files::status_of(loop, opened.file);
  if (!status) co_return std::unexpected(status.error());
  opened.status = *status;
  if (!S_ISREG(opened.status.st_mode) && !S_ISDIR(opened.status.st_mode))
    co_return std::unexpected(system_error(ENODEV));
  co_return opened;
}

/// Opens a file, or the best of its precompressed variants.
Task<Result<Opened>> open_best(Request& request, EventLoop& loop, std::string path,
                               bool precompressed) {
  if (precompressed) {
    for (const CodedFile& variant : codings) {
      // "*" does not count: a client that accepts every coding also accepts the file itself.
      if (detail::coding::quality_of(request.headers(), variant.name, false) == 0) continue;
      Result<Opened> opened = co_await open_file(loop, path + std::string(variant.suffix));
      if (!opened || !S_ISREG(opened->status.st_mode)) continue;
      opened->coding = variant.name;
      co_return opened;
    }
  }
  co_return co_await open_file(loop, std::move(path));
}

Validators validators_of(const struct stat& status) {
  std::array<char, 64> text;
  char* at = text.data();
  const auto put = [&](char separator, std::uint64_t number) {
    *at++ = separator;
    at = std::to_chars(at, text.data() + text.size() - 1, number, 16).ptr;
  };
  put('"', static_cast<std::uint64_t>(status.st_ino));
  put('-', static_cast<std::uint64_t>(status.st_size));
  put('-', static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
               static_cast<std::uint64_t>(status.st_mtim.tv_nsec));
  *at++ = '"';
  return {.tag = std::string(text.data(), at),
          .modified = std::chrono::sys_seconds(std::chrono::seconds(status.st_mtim.tv_sec))};
}

std::string content_range(const ByteRange& range, std::uint64_t size) {
  return "bytes " + std::to_string(range.begin) + "-" + std::to_string(range.end - 1) + "/" +
         std::to_string(size);
}

std::string media_type_of(std::string_view path, const FileOptions& options) {
  const std::string_view extension = path.substr(std::min(path.rfind('.'), path.size() - 1) + 1);
  for (const auto& [entry, type] : options.media_types) {
    if (equal_ignoring_case(entry, extension)) return type;
  }
  return std::string(http::media_type_of(path));
}

/// The heads of the parts of a multipart/byteranges body, and its last line: RFC 9110, section
/// 14.6.
struct Multipart {
  std::vector<std::string> heads;
  std::string end;
  std::uint64_t length = 0;
};

/// The boundary is random, so that a file cannot be made to contain it.
Multipart multipart_of(const std::vector<ByteRange>& ranges, std::uint64_t size,
                       Response& response) {
  std::random_device random;
  std::string boundary;
  for (int i = 0; i < 4; ++i) {
    for (unsigned bits = random(), digits = 8; digits > 0; --digits, bits >>= 4U)
      boundary += "0123456789abcdef"[bits & 15U];
  }
  const std::string type(response.headers().get("Content-Type").value_or(""));
  Multipart multipart;
  for (const ByteRange& range : ranges) {
    std::string& head = multipart.heads.emplace_back("\r\n--");
    head.append(boundary).append("\r\nContent-Type: ").append(type);
    head.append("\r\nContent-Range: ").append(content_range(range, size)).append("\r\n\r\n");
    multipart.length += head.size() + range.size();
  }
  multipart.end = "\r\n--" + boundary + "--\r\n";
  multipart.length += multipart.end.size();
  static_cast<void>(
      response.headers().set("Content-Type", "multipart/byteranges; boundary=" + boundary));
  return multipart;
}

Task<> write_ranges(const File& file, Response& response, std::vector<ByteRange> ranges,
                    std::uint64_t size) {
  const Multipart multipart = multipart_of(ranges, size, response);
  response.set_length(multipart.length);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Result<> head = co_await response.write(std::string_view(multipart.heads[i]));
    if (!head) co_return;
    const Result<> sent = co_await response.write_file(file, ranges[i].begin, ranges[i].size());
    if (!sent) co_return;
  }
  static_cast<void>(co_await response.write(std::string_view(multipart.end)));
}

void set_fields(Response& response, const Opened& opened, const std::string& path,
                const FileOptions& options, const Validators& validators,
                std::chrono::sys_seconds now) {
  Fields& fields = response.headers();
  static_cast<void>(fields.set("ETag", validators.tag));
  // RFC 9110, section 8.8.2.1: not later than the time of the response.
  const auto modified = std::min(validators.modified, now);
  static_cast<void>(fields.set("Last-Modified", format_date(modified)));
  static_cast<void>(fields.set("Accept-Ranges", "bytes"));
  if (options.precompressed) static_cast<void>(fields.add("Vary", "Accept-Encoding"));
  if (!opened.coding.empty()) static_cast<void>(fields.set("Content-Encoding", opened.coding));
  if (!options.cache_control.empty())
    static_cast<void>(fields.set("Cache-Control", options.cache_control));
  static_cast<void>(fields.set("Content-Type", media_type_of(path, options)));
  static_cast<void>(fields.set("X-Content-Type-Options", "nosniff"));
}

/// Sends an open regular file. `path` decides its type.
Task<> send_opened(Request& request, Response& response, const Opened& opened, std::string path,
                   const FileOptions& options) {
  const auto size = static_cast<std::uint64_t>(opened.status.st_size);
  const Validators validators = validators_of(opened.status);
  const TaskContext& context = co_await this_task;
  const std::chrono::nanoseconds now(detail::loop::core_of(*context.loop).wall_ns());
  set_fields(response, opened, path, options, validators,
             std::chrono::sys_seconds(std::chrono::floor<std::chrono::seconds>(now)));
  const Verdict verdict = check_conditions(request.headers(), validators);
  if (verdict == Verdict::not_modified) {
    for (const char* name : {"Content-Type", "Content-Encoding", "Accept-Ranges"})
      response.headers().remove(name);
    static_cast<void>(response.send(Status::not_modified));
    co_return;
  }
  if (verdict == Verdict::precondition_failed)
    co_return fail_with(response, Status::precondition_failed);
  std::vector<ByteRange> ranges(1, ByteRange{.begin = 0, .end = size});
  const auto range = request.headers().get("Range");
  // Range is defined for GET only: section 14.2.
  bool is_partial = false;
  if (range && request.method() == Method::get && range_counts(request.headers(), validators)) {
    if (auto parsed = parse_ranges(*range, size)) {
      ranges = std::move(*parsed);
      is_partial = true;
    }
  }
  if (ranges.empty()) {
    static_cast<void>(response.headers().set("Content-Range", "bytes */" + std::to_string(size)));
    co_return fail_with(response, Status::range_not_satisfiable);
  }
  if (is_partial) response.set_status(Status::partial_content);
  if (ranges.size() > 1) co_return co_await write_ranges(opened.file, response, ranges, size);
  const ByteRange whole = ranges.front();
  if (is_partial)
    static_cast<void>(response.headers().set("Content-Range", content_range(whole, size)));
  response.set_length(whole.size());
  if (request.method() == Method::head || whole.size() == 0) {
    static_cast<void>(response.send(std::string_view()));
    co_return;
  }
  static_cast<void>(co_await response.write_file(opened.file, whole.begin, whole.size()));
}

/// True if each segment is a name: the path cannot leave its directory.
bool is_plain_path(std::string_view path, bool hidden) noexcept {
  if (path.find('\0') != std::string_view::npos) return false;
  // A "/" at the end is allowed.
  if (path.ends_with('/')) path.remove_suffix(1);
  if (path.empty()) return true;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view segment = path.substr(begin, end - begin);
    if (segment.empty() || segment == "." || segment == "..") return false;
    if (segment.starts_with('.') && !hidden) return false;
    begin = end + 1;
  }
  return true;
}

struct Served {
  std::string folder;
  FileOptions options;
};

void redirect_to_folder(Request& request, Response& response) {
  std::string target(request.path());
  target += '/';
  if (const auto query = request.query()) target.append("?").append(*query);
  static_cast<void>(response.headers().set("Location", target));
  static_cast<void>(response.headers().set("Content-Type", "text/plain"));
  static_cast<void>(response.send(Status::moved_permanently, "301 Moved Permanently\n"));
}

Task<> serve_path(Request& request, Response& response, std::shared_ptr<const Served> served) {
  const FileOptions& options = served->options;
  std::string relative(request.parameter("path"));
  if (relative == "/" || !is_plain_path(relative, options.hidden))
    co_return fail_with(response, Status::not_found);
  const bool is_folder = relative.empty() || relative.ends_with('/');
  if (is_folder && options.index.empty()) co_return fail_with(response, Status::not_found);
  if (is_folder) relative += options.index;
  const std::string path = served->folder + "/" + relative;
  EventLoop& loop = request.connection().loop();
  Result<Opened> opened = co_await open_best(request, loop, path, options.precompressed);
  if (!opened) co_return fail_with(response, status_of(opened.error()));
  if (S_ISREG(opened->status.st_mode))
    co_return co_await send_opened(request, response, *opened, path, options);
  if (is_folder) co_return fail_with(response, Status::not_found);
  redirect_to_folder(request, response);
}

bool is_read(const Request& request, Response& response) {
  if (request.method() == Method::get || request.method() == Method::head) return true;
  static_cast<void>(response.headers().set("Allow", "GET, HEAD"));
  fail_with(response, Status::method_not_allowed);
  return false;
}

}  // namespace

Handler serve_files(std::string folder, FileOptions options) {
  const std::shared_ptr<const Served> served =
      std::make_shared<const Served>(std::move(folder), std::move(options));
  return [served](Request& request, Response& response) -> Task<> {
    if (!is_read(request, response)) return {};
    return serve_path(request, response, served);
  };
}

Task<> send_file(Request& request, Response& response, std::string path, FileOptions options) {
  if (!is_read(request, response)) co_return;
  EventLoop& loop = request.connection().loop();
  Result<Opened> opened = co_await open_best(request, loop, path, options.precompressed);
  if (opened && !S_ISREG(opened->status.st_mode)) opened = std::unexpected(system_error(ENOENT));
  if (!opened) co_return fail_with(response, status_of(opened.error()));
  co_await send_opened(request, response, *opened, path, options);
}

}  // namespace tambour::http
