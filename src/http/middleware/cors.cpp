// cors().
#include <tambour/http/cors.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http {
namespace {

/// The values of the fields, made once.
struct CorsPolicy {
  std::vector<std::string> origins;
  bool any_origin = false;
  bool credentials = false;
  std::string methods;
  std::string fields;
  std::string exposed_fields;
  std::string max_age;

  [[nodiscard]] bool allows(std::string_view origin) const noexcept {
    return any_origin || std::ranges::find(origins, origin) != origins.end();
  }
  void add_origin(Response& response, std::string_view origin) const;
};

bool is_name_list(const std::vector<std::string>& names) noexcept {
  return std::ranges::all_of(
      names, [](const std::string& name) { return !name.empty() && all_are(name, token_char); });
}

/// A scheme and a host without a path, or one of the two other values.
bool is_origin(std::string_view text) noexcept {
  if (text == "*" || text == "null") return true;
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view host = text.substr(colon + 3);
  constexpr std::string_view others = "-._:[]";
  return std::ranges::all_of(text.substr(0, colon), [](char c) { return is(c, scheme_char); }) &&
         !host.empty() && std::ranges::all_of(host, [others](char c) {
           return is_letter(c) || is_digit(c) || others.find(c) != std::string_view::npos;
         });
}

std::string join(const auto& parts, auto text_of) {
  std::string list;
  for (const auto& part : parts) list.append(list.empty() ? "" : ", ").append(text_of(part));
  return list;
}

Result<CorsPolicy> policy_of(CorsOptions options) {
  if (!std::ranges::all_of(options.origins, is_origin)) return failure(ErrorCode::bad_origin);
  if (!is_name_list(options.fields) || !is_name_list(options.exposed_fields))
    return failure(ErrorCode::bad_field_name);
  const auto itself = [](const std::string& text) -> std::string_view { return text; };
  CorsPolicy policy;
  policy.any_origin = std::ranges::find(options.origins, "*") != options.origins.end();
  policy.credentials = options.credentials;
  if (policy.any_origin && policy.credentials)
    return failure(ErrorCode::credentials_for_any_origin);
  policy.origins = std::move(options.origins);
  policy.methods = join(options.methods, [](const Method& method) { return method.name(); });
  policy.fields = join(options.fields, itself);
  policy.exposed_fields = join(options.exposed_fields, itself);
  policy.max_age = std::to_string(std::max<std::int64_t>(options.max_age.count(), 0));
  return policy;
}

void set_field(Response& response, std::string_view name, std::string_view value) {
  if (!value.empty()) static_cast<void>(response.headers().set(name, value));
}

/// `origin` is allowed.
void CorsPolicy::add_origin(Response& response, std::string_view origin) const {
  set_field(response, "Access-Control-Allow-Origin", any_origin ? "*" : origin);
  if (credentials) set_field(response, "Access-Control-Allow-Credentials", "true");
}

void answer_preflight(const CorsPolicy& policy, std::string_view origin, Response& response) {
  if (!policy.allows(origin)) {
    static_cast<void>(response.send(Status::forbidden));
    return;
  }
  // The browser compares the lists with the request, and tells the developer what is missing.
  policy.add_origin(response, origin);
  set_field(response, "Access-Control-Allow-Methods", policy.methods);
  set_field(response, "Access-Control-Allow-Headers", policy.fields);
  set_field(response, "Access-Control-Max-Age", policy.max_age);
  static_cast<void>(response.send(Status::no_content));
}

}  // namespace

Result<Middleware> cors(CorsOptions options) {
  auto checked = policy_of(std::move(options));
  if (!checked) return std::unexpected(checked.error());
  const auto policy = std::make_shared<const CorsPolicy>(std::move(*checked));
  return Middleware([policy](Request& request, Response& response, const Handler& next) -> Task<> {
    // Caches must not give the response for one origin to another one.
    if (!policy->any_origin) static_cast<void>(response.headers().add("Vary", "Origin"));
    const bool has_origin = request.headers().count("Origin") == 1;
    if (!has_origin) return next.start(request, response);
    const std::string_view origin = *request.headers().get("Origin");
    if (request.method() == Method::options &&
        request.headers().contains("Access-Control-Request-Method")) {
      answer_preflight(*policy, origin, response);
      return {};
    }
    if (policy->allows(origin)) {
      policy->add_origin(response, origin);
      set_field(response, "Access-Control-Expose-Headers", policy->exposed_fields);
    }
    return next.start(request, response);
  });
}

}  // namespace tambour::http
