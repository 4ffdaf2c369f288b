// FormReader and read_form().
#include <cerrno>
#include <utility>

#include <tambour/http/form.h>
#include <tambour/http/url.h>

#include "http/forms/multipart_parser.h"
#include "http/forms/parameters.h"
#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http {
namespace {

using detail::forms::MultipartParser;
using detail::forms::Parameterized;

constexpr std::size_t form_piece_bytes = std::size_t{64} * 1024;

/// Decodes what browsers encode in names (HTML Standard, "multipart/form-data encoding algorithm"),
/// and nothing else.
std::string decode_name(std::string_view text) {
  std::string name;
  while (!text.empty()) {
    const std::string_view code = text.substr(0, 3);
    char decoded = '\0';
    if (code == "%22") decoded = '"';
    if (equal_ignoring_case(code, "%0d")) decoded = '\r';
    if (equal_ignoring_case(code, "%0a")) decoded = '\n';
    name += decoded != '\0' ? decoded : text.front();
    text.remove_prefix(decoded != '\0' ? code.size() : 1);
  }
  return name;
}

/// The only value of a field.
std::optional<Parameterized> parse_single(const Fields& fields, std::string_view name) {
  if (fields.count(name) != 1) return std::nullopt;
  return detail::forms::parse_parameters(*fields.get(name));
}

bool is_encoded_form(const Fields& fields) {
  const auto type = parse_single(fields, "Content-Type");
  return type && equal_ignoring_case(type->value, "application/x-www-form-urlencoded");
}

Task<Result<Form>> read_encoded_form(Request& request, std::size_t bytes_max,
                                     std::size_t count_max) {
  Result<Buffer> body = co_await request.body().read_all(bytes_max);
  if (!body) co_return std::unexpected(body.error());
  auto parameters = parse_query(body->coalesce(), count_max);
  if (!parameters) co_return request.body().reject(ErrorCode::too_many_form_parts);
  Form form;
  form.fields.reserve(parameters->size());
  for (auto& [name, value] : *parameters) {
    FormField& field = form.fields.emplace_back();
    field.name = std::move(name);
    field.value = std::move(value);
  }
  co_return form;
}

}  // namespace

FormReader::FormReader(Request& request,
                       tambour::detail::OwnedPointer<MultipartParser> parser) noexcept
    : request_(&request), parser_(std::move(parser)) {}
FormReader::FormReader(FormReader&& other) noexcept = default;
FormReader& FormReader::operator=(FormReader&& other) noexcept = default;
FormReader::~FormReader() = default;

Result<FormReader> FormReader::open(Request& request, const FormLimits& limits) {
  const auto type = parse_single(request.headers(), "Content-Type");
  if (!type || !equal_ignoring_case(type->value, "multipart/form-data"))
    return request.body().reject(ErrorCode::not_a_form);
  const std::string* const boundary = type->find("boundary");
  if (boundary == nullptr || !detail::forms::is_boundary(*boundary))
    return request.body().reject(ErrorCode::bad_boundary);
  return FormReader(request, std::make_unique<MultipartParser>(*boundary, limits));
}

/// Waits for more input of the parser. Fails at the end of the body if the parser needs more.
Task<Result<>> FormReader::receive() {
  Result<Buffer> piece = co_await request_->body().read(form_piece_bytes);
  if (!piece) co_return std::unexpected(piece.error());
  const bool is_end = piece->empty();
  input_.append(std::move(*piece));
  if (!is_end) co_return {};
  const Result<> ended = parser_->end_input();
  if (!ended) co_return request_->body().reject(ended.error());
  co_return {};
}

Result<> FormReader::begin_part() {
  part_ = {};
  const auto disposition = parse_single(parser_->headers(), "Content-Disposition");
  if (!disposition || !equal_ignoring_case(disposition->value, "form-data"))
    return failure(ErrorCode::bad_disposition);
  const std::string* const name = disposition->find("name");
  if (name == nullptr) return failure(ErrorCode::bad_disposition);
  part_.name = decode_name(*name);
  if (const std::string* const file = disposition->find("filename"))
    part_.file_name = decode_name(*file);
  part_.fields = std::exchange(parser_->headers(), Fields());
  part_.content_type = part_.fields.get("Content-Type").value_or("text/plain");
  in_part_ = true;
  return {};
}

Task<Result<bool>> FormReader::next() {
  while (true) {
    Buffer discarded;
    const auto event = parser_->parse(input_, discarded, form_piece_bytes);
    if (!event) co_return request_->body().reject(event.error());
    if (*event == MultipartParser::Event::part) {
      const Result<> begun = begin_part();
      if (!begun) co_return request_->body().reject(begun.error());
      co_return true;
    }
    if (*event != MultipartParser::Event::none) continue;
    const bool is_last = request_->body().is_complete();
    const Result<> received = co_await receive();
    if (!received) co_return std::unexpected(received.error());
    if (is_last) break;
  }
  in_part_ = false;
  co_return false;
}

Task<Result<Buffer>> FormReader::read(std::size_t bytes_max) {
  Buffer piece;
  while (in_part_) {
    const auto event = parser_->parse(input_, piece, bytes_max > 0 ? bytes_max : std::size_t{1});
    if (!event) co_return request_->body().reject(event.error());
    if (*event == MultipartParser::Event::data) break;
    if (*event == MultipartParser::Event::part_end) in_part_ = false;
    if (*event != MultipartParser::Event::none) break;
    const Result<> received = co_await receive();
    if (!received) co_return std::unexpected(received.error());
  }
  co_return piece;
}

Task<Result<Buffer>> FormReader::read_all(std::size_t bytes_max) {
  Buffer all;
  while (true) {
    Result<Buffer> piece = co_await read(form_piece_bytes);
    if (!piece) co_return std::unexpected(piece.error());
    if (piece->empty()) co_return all;
    if (piece->size() > bytes_max - all.size())
      co_return request_->body().reject(ErrorCode::form_part_too_large);
    all.append(std::move(*piece));
  }
}

const FormField* Form::find(std::string_view name) const noexcept {
  for (const FormField& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

std::string_view Form::value(std::string_view name) const noexcept {
  const FormField* const field = find(name);
  return field != nullptr ? std::string_view(field->value) : std::string_view();
}

Task<Result<Form>> read_form(Request& request, std::size_t bytes_max, FormLimits limits) {
  if (is_encoded_form(request.headers()))
    co_return co_await read_encoded_form(request, bytes_max, limits.parts_max);
  Result<FormReader> reader = FormReader::open(request, limits);
  if (!reader) co_return std::unexpected(reader.error());
  if (request.body().length().value_or(0) > bytes_max)
    co_return request.body().reject(ErrorCode::body_too_large);
  Form form;
  std::size_t left = bytes_max;
  while (true) {
    const Result<bool> more = co_await reader->next();
    if (!more) co_return std::unexpected(more.error());
    if (!*more) co_return form;
    Result<Buffer> value = co_await reader->read_all(left);
    if (!value) co_return std::unexpected(value.error());
    const std::size_t used = value->size() + reader->part().fields.bytes();
    if (used > left) co_return request.body().reject(ErrorCode::body_too_large);
    left -= used;
    FormField& field = form.fields.emplace_back();
    field.name = reader->part().name;
    field.value = value->to_string();
    field.file_name = reader->part().file_name;
    field.content_type = reader->part().content_type;
  }
}

}  // namespace tambour::http
