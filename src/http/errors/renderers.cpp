// The renderers of errors, and the choice between them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <tambour/http/error_renderer.h>
#include <tambour/http/request.h>
#include <tambour/http/response.h>

#include "http/coding/lists.h"
#include "http/errors/escape.h"
#include "http_message/characters.h"

namespace tambour::http {
namespace {

std::string title_of(Status status) {
  const std::string_view phrase = reason_phrase(status);
  return phrase.empty() ? std::string("Error") : std::string(phrase);
}

void send_as(Response& response, std::string_view type, std::string_view body) {
  static_cast<void>(response.headers().set("Content-Type", type));
  static_cast<void>(response.send(body));
}

std::string json_of(const ErrorDescription& error, std::string_view title_name) {
  std::string text = "{\"status\":";
  text.append(std::to_string(code_of(error.status))).append(",\"").append(title_name);
  text.append("\":");
  append_json_string(text, title_of(error.status));
  if (!error.detail.empty()) {
    text += ",\"detail\":";
    append_json_string(text, error.detail);
  }
  return text += "}\n";
}

struct ErrorForm {
  std::string_view type;
  void (*render)(const Request&, Response&, const ErrorDescription&);
};

constexpr std::array<ErrorForm, 4> error_forms{
    {{"application/problem+json", &render_problem_details},
     {"application/json", &render_json},
     {"text/html", &render_html},
     {"text/plain", &render_plain}}};

/// The more exact range of Accept decides: section 12.5.1.
int specificity(std::string_view range, std::string_view type) noexcept {
  if (range == "*/*") return 1;
  const std::size_t slash = type.find('/') + 1;
  if (range.size() == slash + 1 && range.ends_with('*') &&
      equal_ignoring_case(range.substr(0, slash), type.substr(0, slash)))
    return 2;
  return equal_ignoring_case(range, type) ? 3 : 0;
}

int accepted_quality(const Fields& fields, std::string_view type) noexcept {
  int best = 0;
  int quality = 0;
  for (std::size_t at = fields.find("Accept"); at != fields.size();
       at = fields.find("Accept", at + 1)) {
    for (const std::string_view element : detail::coding::ListElements(fields[at].value)) {
      const auto range = detail::coding::parse_preference(element);
      if (!range) continue;
      const int exactness = specificity(range->name, type);
      if (exactness <= best) continue;
      best = exactness;
      quality = range->quality;
    }
  }
  return quality;
}

}  // namespace

void render_plain(const Request& /*request*/, Response& response, const ErrorDescription& error) {
  std::string text = std::to_string(code_of(error.status));
  text.append(" ").append(reason_phrase(error.status));
  if (!error.detail.empty()) text.append(": ").append(error.detail);
  send_as(response, "text/plain", text.append("\n"));
}

void render_json(const Request& /*request*/, Response& response, const ErrorDescription& error) {
  send_as(response, "application/json", json_of(error, "error"));
}

void render_problem_details(const Request& /*request*/, Response& response,
                            const ErrorDescription& error) {
  send_as(response, "application/problem+json", json_of(error, "title"));
}

void render_html(const Request& /*request*/, Response& response, const ErrorDescription& error) {
  std::string title = std::to_string(code_of(error.status));
  title.append(" ").append(title_of(error.status));
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>";
  page.append(title).append("</title></head>\n<body><h1>").append(title).append("</h1>");
  if (!error.detail.empty()) {
    page += "<p>";
    append_html_text(page, error.detail);
    page += "</p>";
  }
  send_as(response, "text/html; charset=utf-8", page.append("</body></html>\n"));
}

void render_negotiated(const Request& request, Response& response, const ErrorDescription& error) {
  Fields& fields = response.headers();
  if (!fields.has_token("Vary", "Accept") && !fields.has_token("Vary", "*"))
    static_cast<void>(fields.add("Vary", "Accept"));
  const ErrorForm* best = error_forms.data();
  int best_quality = 0;
  for (const ErrorForm& form : error_forms) {
    const int quality = accepted_quality(request.headers(), form.type);
    if (quality <= best_quality) continue;
    best = &form;
    best_quality = quality;
  }
  best->render(request, response, error);
}

}  // namespace tambour::http
