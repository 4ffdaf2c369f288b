// Writes heads and chunks. A value that would end a line is an error, so that no field can inject
// another one.
#include "http_message/h1/writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "bytes/buffer_memory.h"
#include "bytes/short_copy.h"
#include "http_message/characters.h"
#include "http_message/failure.h"
#include "http_message/field_writer.h"
#include "http_message/h1/trailers.h"
#include "http_message/request_target.h"

namespace tambour::http::detail::h1 {
namespace {

constexpr std::string_view line_end = "\r\n";
constexpr std::size_t number_digits_max = 20;

/// Writes text into memory whose size was computed before.
class TextWriter {
 public:
  explicit TextWriter(char* begin) noexcept : begin_(begin) {}

  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(at_ - begin_); }

  TextWriter& operator<<(std::string_view text) noexcept {
    at_ = bytes::copy_short(at_, text);
    return *this;
  }
  /// A literal, whose size the compiler knows.
  template <std::size_t size>
  TextWriter& operator<<(const char (&text)[size]) noexcept {
    std::memcpy(at_, text, size - 1);
    at_ += size - 1;
    return *this;
  }

  TextWriter& operator<<(std::uint64_t number) noexcept {
    at_ = std::to_chars(at_, at_ + number_digits_max, number).ptr;
    return *this;
  }

  void field(std::string_view name, std::string_view value) noexcept {
    *this << name << ": " << value << "\r\n";
  }

 private:
  char* begin_;
  char* at_ = begin_;
};

/// The memory of a buffer behind its bytes.
class BufferEnd {
 public:
  explicit BufferEnd(Buffer& buffer) noexcept : buffer_(buffer) {}

  [[nodiscard]] char* prepare(std::size_t size) {
    return reinterpret_cast<char*>(buffer_.prepare(size).data());
  }
  void commit(std::size_t size) noexcept {
    tambour::detail::BufferMemory::commit_in_place(buffer_, size);
  }

 private:
  Buffer& buffer_;
};

/// Memory that may be too small.
class Memory {
 public:
  explicit Memory(std::span<char> memory) noexcept : memory_(memory) {}

  /// Null if it is too small.
  [[nodiscard]] char* prepare(std::size_t size) noexcept {
    return size <= memory_.size() ? memory_.data() : nullptr;
  }
  void commit(std::size_t size) noexcept { size_ = size; }
  /// What was written.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::span<char> memory_;
  std::size_t size_ = 0;
};

bool is_written_by_options(std::string_view name, bool is_request) noexcept {
  switch (name.size()) {
    case 4:
      return is_request && equal_ignoring_case(name, "Host");
    case 10:
      return equal_ignoring_case(name, "Connection");
    case 14:
      return equal_ignoring_case(name, "Content-Length");
    case 17:
      return equal_ignoring_case(name, "Transfer-Encoding");
    default:
      return false;
  }
}

/// At least the size of what write_fields() writes.
std::size_t size_of_fields(const Fields& fields, const HeadOptions& options) noexcept {
  constexpr std::size_t own_fields = 128;
  return FieldWriter::lines_bytes(fields) + options.connection.size() + options.date_line.size() +
         own_fields;
}

/// The fields of the program. Most have the form in which they are sent, and none is replaced.
[[gnu::always_inline]] inline void write_own_fields(TextWriter& writer, const Fields& fields,
                                                    bool is_request) noexcept {
  const std::optional<std::string_view> lines = FieldWriter::lines(fields);
  const bool may_have_others =
      FieldWriter::may_have(fields, KnownName("Connection"), KnownName("Content-Length"),
                            KnownName("Transfer-Encoding")) ||
      (is_request && FieldWriter::may_have(fields, KnownName("Host")));
  if (lines && !may_have_others) {
    writer << *lines;
    return;
  }
  for (const Field field : fields) {
    if (!is_written_by_options(field.name, is_request)) writer.field(field.name, field.value);
  }
}

/// Inlined, so that the writer is in registers.
[[gnu::always_inline]] inline void write_fields(TextWriter& writer, const Fields& fields,
                                                const HeadOptions& options,
                                                bool is_request) noexcept {
  write_own_fields(writer, fields, is_request);
  if (!options.date_line.empty() && !FieldWriter::contains(fields, "Date"))
    writer << options.date_line;
  if (options.framing.kind == BodyKind::chunked) writer << "Transfer-Encoding: chunked\r\n";
  if (options.framing.kind == BodyKind::length)
    writer << "Content-Length: " << options.framing.length << "\r\n";
  if (!options.connection.empty()) writer << "Connection: " << options.connection << "\r\n";
  writer << "\r\n";
}

}  // namespace

Result<> append_head(Buffer& to, const RequestHead& head, const HeadOptions& options) {
  if (auto checked = check_target(head); !checked) return checked;
  const bool is_absolute = head.form == TargetForm::absolute;
  constexpr std::size_t separators = 64;
  BufferEnd memory(to);
  TextWriter writer(memory.prepare(head.method.name().size() + head.scheme.size() +
                                   2 * head.authority.size() + head.target.size() + separators +
                                   size_of_fields(head.fields, options)));
  writer << head.method.name() << " ";
  if (is_absolute) writer << head.scheme << "://" << head.authority;
  // The server as a whole is named by an absolute target without a path.
  if (!is_absolute || head.target != "*") writer << head.target;
  writer << " HTTP/1.1\r\n";
  writer.field("Host", head.authority);
  write_fields(writer, head.fields, options, true);
  memory.commit(writer.size());
  return {};
}

/// Writes the head of a response, unless the memory is too small.
template <class Destination>
[[gnu::always_inline]] inline Result<> write_response(Destination& to, const ResponseHead& head,
                                                      const HeadOptions& options) {
  const int code = code_of(head.status);
  if (code < 100 || code > 999) return failure(http::ErrorCode::bad_status);
  if (!all_are(head.reason, value_char)) return failure(http::ErrorCode::bad_reason);
  const bool is_usual = head.status == Status::ok && head.reason.empty();
  const std::string_view reason = is_usual              ? "OK"
                                  : head.reason.empty() ? reason_phrase(head.status)
                                                        : std::string_view(head.reason);
  constexpr std::size_t separators = 32;
  char* const begin = to.prepare(reason.size() + separators + size_of_fields(head.fields, options) +
                                 options.body.size());
  if (begin == nullptr) return {};
  TextWriter writer(begin);
  if (is_usual) {
    writer << "HTTP/1.1 200 OK\r\n";
  } else {
    writer << "HTTP/1.1 " << static_cast<std::uint64_t>(code) << " " << reason << "\r\n";
  }
  write_fields(writer, head.fields, options, false);
  writer << options.body;
  to.commit(writer.size());
  return {};
}

Result<> append_head(Buffer& to, const ResponseHead& head, const HeadOptions& options) {
  BufferEnd memory(to);
  return write_response(memory, head, options);
}

Result<std::size_t> write_head(std::span<char> to, const ResponseHead& head,
                               const HeadOptions& options) {
  Memory memory(to);
  const Result<> written = write_response(memory, head, options);
  if (!written) return std::unexpected(written.error());
  return memory.size();
}

void append_chunk(Buffer& to, Buffer data) {
  std::array<char, number_digits_max> line;
  char* const end = std::to_chars(line.data(), line.data() + line.size() - 2, data.size(), 16).ptr;
  line_end.copy(end, line_end.size());
  to.append(std::string_view(line.data(), end + line_end.size()));
  to.append(std::move(data));
  to.append(line_end);
}

Result<> append_last_chunk(Buffer& to, const Fields& trailers) {
  for (const Field field : trailers) {
    if (!may_be_trailer(field.name)) return failure(http::ErrorCode::trailer_not_allowed);
  }
  BufferEnd memory(to);
  TextWriter writer(memory.prepare(trailers.bytes() + 4 * trailers.size() + 5));
  writer << "0\r\n";
  for (const Field field : trailers) writer.field(field.name, field.value);
  writer << "\r\n";
  memory.commit(writer.size());
  return {};
}

}  // namespace tambour::http::detail::h1
