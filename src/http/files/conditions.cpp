// Evaluates the preconditions of a request in the order of RFC 9110, section 13.2.2.
#include "http/files/conditions.h"

#include <optional>

#include <tambour/http/date.h>

#include "http_message/characters.h"

namespace tambour::http {
namespace {

/// Whether any field with this name has the tag. No value if there is no such field.
std::optional<bool> any_has_tag(const Fields& fields, std::string_view name, std::string_view tag,
                                bool weak) noexcept {
  std::size_t at = fields.find(name);
  if (at == fields.size()) return std::nullopt;
  for (; at != fields.size(); at = fields.find(name, at + 1)) {
    if (has_tag(fields[at].value, tag, weak)) return true;
  }
  return false;
}

/// No value if the field is missing or no date, which makes a recipient ignore it.
std::optional<std::chrono::sys_seconds> date_of(const Fields& fields,
                                                std::string_view name) noexcept {
  const auto text = fields.get(name);
  if (!text) return std::nullopt;
  const auto date = parse_date(*text);
  if (!date) return std::nullopt;
  return *date;
}

}  // namespace

bool has_tag(std::string_view list, std::string_view tag, bool weak) noexcept {
  if (trim(list) == "*") return true;
  while (true) {
    while (!list.empty() && (list.front() == ',' || list.front() == ' ' || list.front() == '\t'))
      list.remove_prefix(1);
    const bool is_weak = list.starts_with("W/");
    if (is_weak) list.remove_prefix(2);
    if (!list.starts_with('"')) return false;
    const std::size_t end = list.find('"', 1);
    if (end == std::string_view::npos) return false;
    if (list.substr(0, end + 1) == tag && (weak || !is_weak)) return true;
    list.remove_prefix(end + 1);
  }
}

Verdict check_conditions(const Fields& request, const Validators& current) noexcept {
  if (const auto matches = any_has_tag(request, "If-Match", current.tag, false)) {
    if (!*matches) return Verdict::precondition_failed;
  } else if (const auto since = date_of(request, "If-Unmodified-Since")) {
    if (current.modified > *since) return Verdict::precondition_failed;
  }
  if (const auto matches = any_has_tag(request, "If-None-Match", current.tag, true))
    return *matches ? Verdict::not_modified : Verdict::send;
  if (const auto since = date_of(request, "If-Modified-Since")) {
    if (current.modified <= *since) return Verdict::not_modified;
  }
  return Verdict::send;
}

bool range_counts(const Fields& request, const Validators& current) noexcept {
  const auto condition = request.get("If-Range");
  if (!condition) return true;
  if (condition->starts_with('"')) return *condition == current.tag;
  const auto date = parse_date(*condition);
  return date && *date == current.modified;
}

}  // namespace tambour::http
