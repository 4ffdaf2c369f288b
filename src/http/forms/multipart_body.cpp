// MultipartForm: the texts between the contents of a form, and the files that are read when the
// form is sent.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include <tambour/file/file.h>
#include <tambour/http/files.h>
#include <tambour/http/multipart.h>
#include <tambour/net/stream_error.h>

#include "http_message/characters.h"
#include "http_message/failure.h"
#include "loop/core.h"

namespace tambour::http {
namespace {

constexpr std::size_t file_piece_bytes_max = std::size_t{64} * 1024;

/// As browsers write names: URL Standard, "multipart/form-data encoding algorithm" of HTML.
std::string quoted_name(std::string_view name) {
  std::string text = "\"";
  for (const char character : name) {
    switch (character) {
      case '"':
        text += "%22";
        break;
      case '\r':
        text += "%0D";
        break;
      case '\n':
        text += "%0A";
        break;
      default:
        text += character;
    }
  }
  return text += '"';
}

std::string boundary_of(EventLoop& loop) {
  auto& backend = detail::loop::core_of(loop).backend();
  char text[64];
  const int size = std::snprintf(text, sizeof text, "tambour-%016llx%016llx",
                                 static_cast<unsigned long long>(backend.random()),
                                 static_cast<unsigned long long>(backend.random()));
  return {text, static_cast<std::size_t>(size)};
}

/// A text or contents in memory, and then a file, or none.
struct Piece {
  Buffer bytes{};
  File file{};
  std::uint64_t file_bytes = 0;
};

class FormSource final : public BodySource {
 public:
  explicit FormSource(std::vector<Piece> pieces) noexcept : pieces_(std::move(pieces)) {}

  Task<Result<>> read(Buffer& into) override {
    for (; index_ < pieces_.size(); ++index_, offset_ = 0) {
      Piece& piece = pieces_[index_];
      into.append(std::move(piece.bytes));
      if (!into.empty()) co_return {};
      if (offset_ == piece.file_bytes) continue;
      const auto wanted = static_cast<std::size_t>(
          std::min<std::uint64_t>(file_piece_bytes_max, piece.file_bytes - offset_));
      const std::span<std::byte> memory = into.prepare(wanted).first(wanted);
      const auto got = co_await piece.file.read_at(memory, offset_);
      if (!got) co_return std::unexpected(got.error());
      if (*got == 0) co_return std::unexpected(Error(StreamError::truncated));
      into.commit(*got);
      offset_ += *got;
      if (offset_ == piece.file_bytes) piece.file.close();
      co_return {};
    }
    co_return {};
  }

 private:
  std::vector<Piece> pieces_;
  std::size_t index_ = 0;
  std::uint64_t offset_ = 0;  ///< In the file of the current piece.
};

}  // namespace

void MultipartForm::add(std::string_view name, std::string_view value) {
  Part& part = parts_.emplace_back();
  part.name = name;
  part.contents.append(value);
}

void MultipartForm::add_contents(std::string_view name, Buffer contents, FormFile file) {
  Part& part = parts_.emplace_back();
  part.name = name;
  part.is_file = true;
  part.file = std::move(file);
  part.contents = std::move(contents);
}

void MultipartForm::add_file(std::string_view name, std::string path, FormFile file) {
  Part& part = parts_.emplace_back();
  part.name = name;
  part.is_file = true;
  part.file = std::move(file);
  if (part.file.file_name.empty()) part.file.file_name = path.substr(path.rfind('/') + 1);
  part.path = std::move(path);
  part.is_read_from_path = true;
}

Task<Result<>> MultipartForm::attach_to(ClientRequest& request) {
  const TaskContext& context = co_await this_task;
  const std::string boundary = boundary_of(*context.loop);
  std::vector<Piece> pieces(1);
  std::uint64_t size = 0;
  bool has_files = false;
  for (Part& part : parts_) {
    std::string head = "--" + boundary + "\r\nContent-Disposition: form-data; name=";
    head += quoted_name(part.name);
    if (part.is_file) {
      std::string& type = part.file.content_type;
      if (type.empty()) type = media_type_of(part.file.file_name);
      if (!is_field_value(type)) co_return failure(ErrorCode::bad_field_value);
      head += "; filename=" + quoted_name(part.file.file_name) + "\r\nContent-Type: " + type;
    }
    head += "\r\n\r\n";
    size += head.size();
    pieces.back().bytes.append(head);
    if (!part.is_read_from_path) {
      size += part.contents.size();
      pieces.back().bytes.append(std::move(part.contents));
    } else {
      has_files = true;
      auto file = co_await File::open(part.path);
      if (!file) co_return std::unexpected(file.error());
      const auto file_bytes = co_await file->size();
      if (!file_bytes) co_return std::unexpected(file_bytes.error());
      size += *file_bytes;
      pieces.back().file = std::move(*file);
      pieces.back().file_bytes = *file_bytes;
      pieces.emplace_back();
    }
    size += 2;
    pieces.back().bytes.append("\r\n");
  }
  const std::string end = "--" + boundary + "--\r\n";
  size += end.size();
  pieces.back().bytes.append(end);
  parts_.clear();
  if (auto set = request.fields.set("Content-Type", "multipart/form-data; boundary=" + boundary);
      !set)
    co_return set;
  request.source.reset();
  request.source_bytes.reset();
  if (!has_files) {
    request.body = std::move(pieces.front().bytes);
    co_return {};
  }
  request.body.clear();
  request.source = std::make_unique<FormSource>(std::move(pieces));
  request.source_bytes = size;
  co_return {};
}

}  // namespace tambour::http
