// Media types by extension.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <tambour/http/files.h>

#include "http_message/characters.h"

namespace tambour::http {

std::string_view media_type_of(std::string_view name) noexcept {
  using Entry = std::pair<std::string_view, std::string_view>;
  static constexpr auto types = std::to_array<Entry>({
      {"avif", "image/avif"},
      {"bin", "application/octet-stream"},
      {"css", "text/css; charset=utf-8"},
      {"csv", "text/csv; charset=utf-8"},
      {"gif", "image/gif"},
      {"gz", "application/gzip"},
      {"htm", "text/html; charset=utf-8"},
      {"html", "text/html; charset=utf-8"},
      {"ico", "image/x-icon"},
      {"jpeg", "image/jpeg"},
      {"jpg", "image/jpeg"},
      {"js", "text/javascript; charset=utf-8"},
      {"json", "application/json"},
      {"map", "application/json"},
      {"md", "text/markdown; charset=utf-8"},
      {"mjs", "text/javascript; charset=utf-8"},
      {"mp3", "audio/mpeg"},
      {"mp4", "video/mp4"},
      {"ogg", "audio/ogg"},
      {"otf", "font/otf"},
      {"pdf", "application/pdf"},
      {"png", "image/png"},
      {"svg", "image/svg+xml"},
      {"tar", "application/x-tar"},
      {"ttf", "font/ttf"},
      {"txt", "text/plain; charset=utf-8"},
      {"wasm", "application/wasm"},
      {"wav", "audio/wav"},
      {"webm", "video/webm"},
      {"webmanifest", "application/manifest+json"},
      {"webp", "image/webp"},
      {"woff", "font/woff"},
      {"woff2", "font/woff2"},
      {"xml", "application/xml"},
      {"zip", "application/zip"},
      {"zst", "application/zstd"},
  });
  const std::size_t dot = name.rfind('.');
  const std::string_view extension =
      dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
  const auto found = std::ranges::find_if(types, [extension](const Entry& entry) {
    return equal_ignoring_case(entry.first, extension);
  });
  return found != types.end() ? found->second : "application/octet-stream";
}

}  // namespace tambour::http
