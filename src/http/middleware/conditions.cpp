// evaluate_preconditions() and add_entity_tags().
#include <tambour/http/conditions.h>

#include <array>
#include <utility>

#include <tambour/http/date.h>

#include "http/exchange/response_sink.h"
#include "http/files/conditions.h"
#include "http_message/characters.h"
#include "http_message/ws/sha1.h"

namespace tambour::http {
namespace {

void append_hex(std::string& to, unsigned byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  to.append(1, digits[byte >> 4U]).append(1, digits[byte & 15U]);
}

/// An opaque tag with its quotes: RFC 9110, section 8.8.3.
std::string quoted_tag(std::string_view text) {
  std::string tag = "\"";
  for (const char c : text) {
    if (c > ' ' && c < 0x7F && c != '"' && c != '%') {
      tag += c;
    } else {
      tag += '%';
      append_hex(tag, static_cast<unsigned char>(c));
    }
  }
  return tag += '"';
}

bool reads(const Method& method) noexcept {
  return method == Method::get || method == Method::head;
}

/// Whether any field with this name lists the version. No value if there is no such field.
std::optional<bool> lists_version(const Fields& fields, std::string_view name,
                                  const ResourceVersion& version, std::string_view tag,
                                  bool weak) noexcept {
  std::size_t at = fields.find(name);
  if (at == fields.size()) return std::nullopt;
  for (; at != fields.size(); at = fields.find(name, at + 1)) {
    const std::string_view list = fields[at].value;
    if (trim(list) == "*") {
      if (version.exists) return true;
    } else if (version.exists && !tag.empty() && (weak || !version.is_weak) &&
               has_tag(list, tag, weak)) {
      return true;
    }
  }
  return false;
}

std::optional<std::chrono::sys_seconds> seconds_in(const Fields& fields, std::string_view name) {
  const auto text = fields.get(name);
  if (!text) return std::nullopt;
  const auto date = parse_date(*text);
  if (!date) return std::nullopt;
  return *date;
}

/// Section 13.2.2.
Verdict evaluate(const Request& request, const ResourceVersion& version, std::string_view tag) {
  const Fields& fields = request.headers();
  const bool is_reading = reads(request.method());
  if (const auto matches = lists_version(fields, "If-Match", version, tag, false)) {
    if (!*matches) return Verdict::precondition_failed;
  } else if (version.modified) {
    const auto since = seconds_in(fields, "If-Unmodified-Since");
    if (since && *version.modified > *since) return Verdict::precondition_failed;
  }
  if (const auto matches = lists_version(fields, "If-None-Match", version, tag, true)) {
    if (!*matches) return Verdict::send;
    return is_reading ? Verdict::not_modified : Verdict::precondition_failed;
  }
  if (!is_reading || !version.modified) return Verdict::send;
  const auto since = seconds_in(fields, "If-Modified-Since");
  return since && *version.modified <= *since ? Verdict::not_modified : Verdict::send;
}

void remove_content_fields(Fields& fields) noexcept {
  for (const char* const name : {"Content-Type", "Content-Encoding", "Content-Language"})
    fields.remove(name);
}

/// Makes the tag of a body that is sent at once.
class Tagger final : public detail::ResponseFilter {
 public:
  Tagger(Request& request, Response& response, std::size_t bytes_max) noexcept
      : ResponseFilter(response), request_(request), bytes_max_(bytes_max) {}

 private:
  [[nodiscard]] Result<> begin(ResponseHead& head, BodyPlan plan) override {
    return next().begin(head, plan);
  }
  [[nodiscard]] Result<> send(ResponseHead& head, BodyPlan plan, Buffer&& body) override;
  [[nodiscard]] Task<Result<>> write(Buffer&& piece) override {
    return next().write(std::move(piece));
  }
  [[nodiscard]] Task<Result<>> write_file(const File& file, std::uint64_t offset,
                                          std::uint64_t size) override {
    return next().write_file(file, offset, size);
  }
  [[nodiscard]] Result<> end(const Fields& trailers) override { return next().end(trailers); }
  [[nodiscard]] Task<Result<>> flush() override { return next().flush(); }

  Request& request_;
  std::size_t bytes_max_;
};

Result<> Tagger::send(ResponseHead& head, BodyPlan plan, Buffer&& body) {
  const bool is_tagged = head.status == Status::ok && reads(request_.method()) && !body.empty() &&
                         body.size() <= bytes_max_ && !head.fields.contains("ETag");
  if (!is_tagged) return next().send(head, plan, std::move(body));
  std::string tag = "\"";
  for (const std::byte byte : detail::ws::sha1(body.coalesce()))
    append_hex(tag, std::to_integer<unsigned>(byte));
  tag += '"';
  static_cast<void>(head.fields.set("ETag", tag));
  const auto has = lists_version(request_.headers(), "If-None-Match", {}, tag, true);
  if (!has.value_or(false)) return next().send(head, plan, std::move(body));
  remove_content_fields(head.fields);
  head.status = Status::not_modified;
  return next().send(head, {.kind = BodyPlan::Kind::none}, Buffer());
}

/// The filter is in front of the response while the handler runs.
Task<> run_tagged(std::size_t bytes_max, Request& request, Response& response,
                  const Handler& next) {
  Tagger tagger(request, response, bytes_max);
  co_await next.run(request, response);
}

}  // namespace

bool evaluate_preconditions(const Request& request, Response& response,
                            const ResourceVersion& version) {
  const std::string tag = version.tag.empty() ? std::string() : quoted_tag(version.tag);
  const Verdict verdict = evaluate(request, version, tag);
  if (reads(request.method()) && version.exists) {
    if (!tag.empty())
      static_cast<void>(response.headers().set("ETag", version.is_weak ? "W/" + tag : tag));
    if (version.modified)
      static_cast<void>(response.headers().set("Last-Modified", format_date(*version.modified)));
  }
  if (verdict == Verdict::send) return false;
  if (verdict == Verdict::not_modified) {
    remove_content_fields(response.headers());
    static_cast<void>(response.send(Status::not_modified));
  } else {
    static_cast<void>(response.send_error(Status::precondition_failed));
  }
  return true;
}

Middleware add_entity_tags(std::size_t bytes_max) {
  return [bytes_max](Request& request, Response& response, const Handler& next) -> Task<> {
    return run_tagged(bytes_max, request, response, next);
  };
}

}  // namespace tambour::http
