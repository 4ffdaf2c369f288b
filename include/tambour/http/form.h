// Forms that browsers send: application/x-www-form-urlencoded and multipart/form-data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/http/fields.h>
#include <tambour/http/request.h>
#include <tambour/task/task.h>

namespace tambour::http::detail::forms {
class MultipartParser;
}  // namespace tambour::http::detail::forms

#pragma GCC visibility push(default)

namespace tambour::http {

/// The limits of the parts of a form. The size of the whole form is limited by
/// MessageLimits::body_bytes_max.
struct FormLimits {
  std::size_t parts_max = 1000;
  /// Of the fields of one part, of which there are at most 32.
  std::size_t head_bytes_max = std::size_t{8} * 1024;
  /// Of the contents of one part.
  std::uint64_t part_bytes_max = std::uint64_t{64} * 1024 * 1024;
};

/// What precedes the contents of a part of multipart/form-data.
struct FormPart {
  std::string name{};  ///< Of the control of the form. Names may repeat.
  /// The name of a file, as the client sent it: it may be a path, contain control characters, or be
  /// invalid as UTF-8. No value if the part is not a file.
  std::optional<std::string> file_name{};
  std::string content_type{};  ///< As sent, or "text/plain".
  Fields fields{};

  /// See http::safe_file_name(); empty if there is no name.
  [[nodiscard]] std::string safe_file_name() const;
};

/// The last component of a file name that a client has sent, as a name that can be created in a
/// directory: without control characters, "/" and "\", without dots in front, valid as UTF-8, and
/// at most 255 bytes. Empty if nothing is left. Two names may become equal. Throws std::bad_alloc.
[[nodiscard]] std::string safe_file_name(std::string_view name);

/// Reads the parts of multipart/form-data (RFC 7578) one after the other, as they arrive. Memory is
/// used for 64 KiB at a time, whatever the size of files.
///
///   auto form = http::FormReader::open(request);
///   if (!form) co_return;                             // The server answers: 400 or 415.
///   for (;;) {
///     const auto more = co_await form->next();
///     if (!more) co_return;                           // The server answers: 400, 408, 413.
///     if (!*more) break;
///     for (;;) {
///       auto piece = co_await form->read();
///       if (!piece) co_return;
///       if (piece->empty()) break;
///       co_await store(form->part(), *piece);
///     }
///   }
///
/// Lines end with CRLF, and each part has one Content-Disposition "form-data" with one name. What
/// precedes the first part, follows the last one, or pads a boundary with spaces and tabs is
/// ignored, up to 64 KiB in total (RFC 2046, section 5.1.1). In names, "%22", "%0D" and "%0A"
/// become the characters that browsers encode so; "filename*" is ignored.
///
/// Errors: as those of IncomingBody::read(): the server answers if the handler does not. An error
/// is final. Lifetime: the request must exist longer. May be moved while no task waits.
class FormReader {
 public:
  /// Fails with http::ErrorCode::not_a_form if Content-Type is not multipart/form-data, and
  /// bad_boundary.
  [[nodiscard]] static Result<FormReader> open(Request& request, const FormLimits& limits = {});

  FormReader(FormReader&& other) noexcept;
  FormReader& operator=(FormReader&& other) noexcept;
  ~FormReader();

  /// Discards what is left of the current part, and waits for the head of the next one. Returns
  /// false after the last one, at the end of the body. Fails like IncomingBody::read(), with
  /// http::ErrorCode::bad_delimiter, bad_disposition, too_many_form_parts, form_part_too_large,
  /// body_too_large if too much is to be ignored, with the errors of fields, and with
  /// StreamError::truncated. Throws std::bad_alloc.
  [[nodiscard]] Task<Result<bool>> next();
  /// The current part. Valid until the call of next().
  [[nodiscard]] const FormPart& part() const noexcept { return part_; }

  /// Waits for contents of the current part, and returns at most `bytes_max` bytes; an empty buffer
  /// at its end. Fails like next().
  [[nodiscard]] Task<Result<Buffer>> read(std::size_t bytes_max = std::size_t{64} * 1024);
  /// Reads the rest of the current part. Fails with http::ErrorCode::form_part_too_large too if
  /// that has more than `bytes_max` bytes.
  [[nodiscard]] Task<Result<Buffer>> read_all(std::size_t bytes_max = std::size_t{1024} * 1024);

 private:
  FormReader(Request& request,
             tambour::detail::OwnedPointer<detail::forms::MultipartParser> parser) noexcept;
  [[nodiscard]] Task<Result<>> receive();
  [[nodiscard]] Result<> begin_part();

  Request* request_;
  tambour::detail::OwnedPointer<detail::forms::MultipartParser> parser_;
  Buffer input_;
  FormPart part_;
  bool in_part_ = false;
};

/// One control of a form that was read into memory.
struct FormField {
  std::string name{};
  std::string value{};  ///< The text, or the contents of the file.
  std::optional<std::string> file_name{};
  std::string content_type{};  ///< Empty for application/x-www-form-urlencoded.
};

/// A form that was read into memory, in the order in which it was sent.
struct Form {
  std::vector<FormField> fields{};

  /// The first field with this name; null if there is none.
  [[nodiscard]] const FormField* find(std::string_view name) const noexcept;
  /// The value of the first field with this name; empty if there is none.
  [[nodiscard]] std::string_view value(std::string_view name) const noexcept;
};

/// Reads a form of either type into memory. Uses at most about 2 * `bytes_max` bytes. Fails like
/// FormReader, and with http::ErrorCode::body_too_large if the body has more than `bytes_max`
/// bytes.
[[nodiscard]] Task<Result<Form>> read_form(Request& request,
                                           std::size_t bytes_max = std::size_t{1024} * 1024,
                                           FormLimits limits = {});

}  // namespace tambour::http

#pragma GCC visibility pop
