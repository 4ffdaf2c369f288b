// send_static_file(): which part of a file answers a request, and how it is sent.
#include "http/files/sending.h"

#include <new>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/files/conditions.h"
#include "http/files/ranges.h"
#include "http_message/field_writer.h"

namespace tambour::http {
namespace {

using detail::FieldWriter;
using detail::KnownName;

std::string content_range(const ByteRange& range, std::uint64_t size) {
  return "bytes " + std::to_string(range.begin) + "-" + std::to_string(range.end - 1) + "/" +
         std::to_string(size);
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

/// Sends bytes of a file as a part of the body.
Task<Result<>> write_part(const StaticFile& file, Response& response, ByteRange part) {
  if (file.has_contents)
    return response.write(file.contents.slice(static_cast<std::size_t>(part.begin),
                                              static_cast<std::size_t>(part.size())));
  return response.write_file(file.file, part.begin, part.size());
}

Task<> write_whole(std::shared_ptr<const StaticFile> file, Response& response, ByteRange part) {
  static_cast<void>(co_await write_part(*file, response, part));
}

Task<> write_ranges(std::shared_ptr<const StaticFile> file, Response& response,
                    std::vector<ByteRange> ranges) {
  const Multipart multipart = multipart_of(ranges, file->version.size, response);
  response.set_length(multipart.length);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Result<> head = co_await response.write(std::string_view(multipart.heads[i]));
    if (!head) co_return;
    const Result<> sent = co_await write_part(*file, response, ranges[i]);
    if (!sent) co_return;
  }
  static_cast<void>(co_await response.write(std::string_view(multipart.end)));
}

void set_fields(Response& response, const StaticFile& file) {
  Fields& fields = response.headers();
  if (fields.empty()) {
    try {
      fields = file.fields;  // Keeps the memory of the former ones.
    } catch (const std::bad_alloc&) {
      fields.clear();  // A part may have been copied.
      throw;
    }
    return;
  }
  for (const Field field : file.fields) {
    // Middleware may have added others.
    if (field.name == "Vary") {
      static_cast<void>(fields.add(field.name, field.value));
    } else {
      static_cast<void>(fields.set(field.name, field.value));
    }
  }
}

/// Returns true if the preconditions of the request are answered by another status.
bool answer_conditions(const Request& request, Response& response, const Validators& validators) {
  const Fields& fields = request.headers();
  if (!FieldWriter::may_have(fields, KnownName("If-Match"), KnownName("If-None-Match"),
                             KnownName("If-Modified-Since"), KnownName("If-Unmodified-Since")))
    return false;
  switch (check_conditions(fields, validators)) {
    case Verdict::send:
      return false;
    case Verdict::not_modified:
      for (const char* name : {"Content-Type", "Content-Encoding", "Accept-Ranges"})
        response.headers().remove(name);
      static_cast<void>(response.send(Status::not_modified));
      return true;
    case Verdict::precondition_failed:
      break;
  }
  fail_with(response, Status::precondition_failed);
  return true;
}

/// The ranges that the request asks for; no value: the whole file.
std::optional<std::vector<ByteRange>> ranges_of(const Request& request, const StaticFile& file) {
  const Fields& fields = request.headers();
  // Range is defined for GET only: section 14.2.
  if (!FieldWriter::may_have(fields, KnownName("Range")) || request.method() != Method::get)
    return std::nullopt;
  const auto range = fields.get("Range");
  if (!range || !range_counts(fields, file.validators)) return std::nullopt;
  return parse_ranges(*range, file.version.size);
}

/// The response to a request for all of the file, or one range of it.
Task<> send_part(const Request& request, Response& response, std::shared_ptr<const StaticFile> file,
                 ByteRange part) {
  response.set_length(part.size());
  if (request.method() == Method::head || part.size() == 0) {
    static_cast<void>(response.send(std::string_view()));
    return {};
  }
  if (!file->has_contents) return write_whole(std::move(file), response, part);
  const bool is_all = part.size() == file->version.size;
  static_cast<void>(
      response.send(is_all ? file->contents.slice()
                           : file->contents.slice(static_cast<std::size_t>(part.begin),
                                                  static_cast<std::size_t>(part.size()))));
  return {};
}

}  // namespace

void fail_with(Response& response, Status status) {
  response.headers().remove("Cache-Control");
  static_cast<void>(response.send_error(status));
}

Task<> send_static_file(Request& request, Response& response,
                        std::shared_ptr<const StaticFile> file) {
  const std::uint64_t size = file->version.size;
  set_fields(response, *file);
  if (answer_conditions(request, response, file->validators)) return {};
  auto ranges = ranges_of(request, *file);
  if (!ranges) return send_part(request, response, std::move(file), {.begin = 0, .end = size});
  if (ranges->empty()) {
    static_cast<void>(response.headers().set("Content-Range", "bytes */" + std::to_string(size)));
    fail_with(response, Status::range_not_satisfiable);
    return {};
  }
  response.set_status(Status::partial_content);
  if (ranges->size() > 1) return write_ranges(std::move(file), response, std::move(*ranges));
  const ByteRange range = ranges->front();
  static_cast<void>(response.headers().set("Content-Range", content_range(range, size)));
  return send_part(request, response, std::move(file), range);
}

}  // namespace tambour::http
