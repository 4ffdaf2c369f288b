// serve_files() and send_file(): which file answers a request.
#include <tambour/http/files.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "http/coding/negotiation.h"
#include "http/files/file_cache.h"
#include "http/files/sending.h"

namespace tambour::http {
namespace {

/// A precompressed variant of a file.
struct CodedFile {
  std::string_view name;
  std::string_view suffix;
};
constexpr std::array<CodedFile, 3> codings = {{{.name = "br", .suffix = ".br"},
                                               {.name = "zstd", .suffix = ".zst"},
                                               {.name = "gzip", .suffix = ".gz"}}};

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

/// True if the client accepts the coding. "*" does not count: a client that accepts every coding
/// also accepts the file itself.
bool is_accepted(const Request& request, const CodedFile& variant) noexcept {
  return detail::coding::quality_of(request.headers(), variant.name, false) != 0;
}

/// Opens a file, or the best of its precompressed variants. Fails with EAGAIN if open_best() must
/// wait for one of them.
Result<StaticFilePtr> open_best_now(const Request& request, FileCache& cache,
                                    std::string_view name) {
  if (cache.served().options.precompressed) {
    for (const CodedFile& variant : codings) {
      if (!is_accepted(request, variant)) continue;
      std::string coded(name);
      coded += variant.suffix;
      auto opened = cache.open_now(
          {.text = coded, .coding = variant.name, .suffix_bytes = variant.suffix.size()});
      if (!opened && opened.error() == system_error(EAGAIN)) return opened;
      if (opened && !(*opened)->is_directory()) return opened;
    }
  }
  return cache.open_now({.text = name});
}

/// The same, and waits.
Task<Result<StaticFilePtr>> open_best(const Request& request, FileCache& cache, std::string name) {
  if (cache.served().options.precompressed) {
    for (const CodedFile& variant : codings) {
      if (!is_accepted(request, variant)) continue;
      std::string coded = name;
      coded += variant.suffix;
      auto opened = cache.open_now(
          {.text = coded, .coding = variant.name, .suffix_bytes = variant.suffix.size()});
      if (!opened && opened.error() == system_error(EAGAIN))
        opened = co_await cache.open(std::move(coded), variant.name, variant.suffix.size());
      if (opened && !(*opened)->is_directory()) co_return opened;
    }
  }
  auto opened = cache.open_now({.text = name});
  if (!opened && opened.error() == system_error(EAGAIN))
    opened = co_await cache.open(std::move(name), {}, 0);
  co_return opened;
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

void redirect_to_folder(Request& request, Response& response) {
  std::string target(request.path());
  target += '/';
  if (const auto query = request.query()) target.append("?").append(*query);
  static_cast<void>(response.headers().set("Location", target));
  static_cast<void>(response.headers().set("Content-Type", "text/plain"));
  static_cast<void>(response.send(Status::moved_permanently, "301 Moved Permanently\n"));
}

/// `is_folder`: the name is that of the index of a directory.
Task<> send_opened(Request& request, Response& response, Result<StaticFilePtr> opened,
                   bool is_folder) {
  if (!opened) {
    fail_with(response, status_of(opened.error()));
  } else if (!(*opened)->is_directory()) {
    return send_static_file(request, response, std::move(*opened));
  } else if (is_folder) {
    fail_with(response, Status::not_found);
  } else {
    redirect_to_folder(request, response);
  }
  return {};
}

/// The kernel must wait for a disk, or cannot tell. The cache may end while a task waits, but not
/// before its handler.
Task<> wait_for_path(Request& request, Response& response,
                     std::shared_ptr<const ServedFiles> served, std::string name, bool is_folder) {
  FileCache& cache = FileCaches::of(request.connection().loop(), served);
  auto opened = co_await open_best(request, cache, std::move(name));
  Task<> sending = send_opened(request, response, std::move(opened), is_folder);
  if (sending) co_await std::move(sending);
}

Task<> serve_path(Request& request, Response& response,
                  const std::shared_ptr<const ServedFiles>& served) {
  const FileOptions& options = served->options;
  std::string_view name = request.parameter("path");
  const bool is_folder = name.empty() || name.ends_with('/');
  if (name == "/" || !is_plain_path(name, options.hidden) || (is_folder && options.index.empty())) {
    fail_with(response, Status::not_found);
    return {};
  }
  std::string index;
  if (is_folder) {
    index.append(name).append(options.index);
    name = index;
  }
  FileCache& cache = FileCaches::of(request.connection().loop(), served);
  auto opened = open_best_now(request, cache, name);
  if (!opened && opened.error() == system_error(EAGAIN))
    return wait_for_path(request, response, served, std::string(name), is_folder);
  return send_opened(request, response, std::move(opened), is_folder);
}

bool is_read(const Request& request, Response& response) {
  if (request.method() == Method::get || request.method() == Method::head) return true;
  static_cast<void>(response.headers().set("Allow", "GET, HEAD"));
  fail_with(response, Status::method_not_allowed);
  return false;
}

}  // namespace

Handler serve_files(std::string folder, FileOptions options) {
  folder += '/';
  const std::shared_ptr<const ServedFiles> served =
      std::make_shared<const ServedFiles>(std::move(folder), std::move(options));
  return [served](Request& request, Response& response) -> Task<> {
    if (!is_read(request, response)) return {};
    return serve_path(request, response, served);
  };
}

Task<> send_file(Request& request, Response& response, std::string path, FileOptions options) {
  if (!is_read(request, response)) co_return;
  options.memory_bytes_max = 0;
  const auto served = std::make_shared<const ServedFiles>(std::string(), std::move(options));
  FileCache without_cache(request.connection().loop(), served);
  auto opened = co_await open_best(request, without_cache, std::move(path));
  if (opened && (*opened)->is_directory()) opened = std::unexpected(system_error(ENOENT));
  if (!opened) co_return fail_with(response, status_of(opened.error()));
  Task<> sending = send_static_file(request, response, std::move(*opened));
  if (sending) co_await std::move(sending);
}

}  // namespace tambour::http
