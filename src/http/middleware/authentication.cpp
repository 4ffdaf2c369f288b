// Basic and Bearer authentication.
#include <tambour/http/authentication.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/failure.h"
#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http {
namespace {

/// No route can have a parameter with this name.
constexpr std::string_view user_parameter = "authentication.user";

/// `realm="..."`, a quoted string.
Result<std::string> realm_of(std::string_view realm) {
  std::string text = "realm=\"";
  for (const char c : realm) {
    if (c < ' ' || c > '~') return failure(ErrorCode::bad_field_value);
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text += '"';
}

void refuse(Response& response, Status status, std::string_view challenge) {
  response.drop_handler_fields();
  static_cast<void>(response.headers().set("WWW-Authenticate", challenge));
  static_cast<void>(response.send_error(status));
}

struct Basic {
  BasicVerifier verifier;
  std::string challenge;
};

Task<> run_basic(std::shared_ptr<const Basic> basic, Request& request, Response& response,
                 const Handler& next) {
  const Fields& fields = request.headers();
  std::optional<BasicCredentials> credentials;
  if (fields.count("Authorization") == 1)
    credentials = parse_basic_credentials(*fields.get("Authorization"));
  bool is_valid = false;
  if (credentials) is_valid = co_await basic->verifier.verify(request, *credentials);
  if (!is_valid) co_return refuse(response, Status::unauthorized, basic->challenge);
  set_authenticated_user(request, std::move(credentials->user));
  co_await next.run(request, response);
}

struct Bearer {
  BearerVerifier verifier;
  std::string challenge;
};

/// RFC 6750, section 2.1: b64token.
bool is_token(std::string_view text) noexcept {
  constexpr std::string_view others = "-._~+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  return !text.empty() && std::ranges::all_of(text, [others](char c) {
    return is_letter(c) || is_digit(c) || others.contains(c);
  });
}

/// No value if the field has no credentials of this scheme; an empty token if it is malformed.
std::optional<std::string> bearer_token(const Fields& fields) {
  const auto value = fields.get("Authorization");
  if (!value) return std::nullopt;
  if (fields.count("Authorization") > 1) return std::string();
  constexpr std::string_view scheme = "Bearer";
  const std::size_t space = std::min(value->find(' '), value->size());
  if (!equal_ignoring_case(value->substr(0, space), scheme)) return std::nullopt;
  const std::string_view token = trim(value->substr(space));
  return is_token(token) ? std::string(token) : std::string();
}

Task<> run_bearer(std::shared_ptr<const Bearer> bearer, Request& request, Response& response,
                  const Handler& next) {
  const std::optional<std::string> token = bearer_token(request.headers());
  if (!token) co_return refuse(response, Status::unauthorized, bearer->challenge);
  if (token->empty())
    co_return refuse(response, Status::bad_request,
                     bearer->challenge + ", error=\"invalid_request\"");
  const bool is_valid = co_await bearer->verifier.verify(request, *token);
  if (!is_valid)
    co_return refuse(response, Status::unauthorized,
                     bearer->challenge + ", error=\"invalid_token\"");
  co_await next.run(request, response);
}

}  // namespace

Result<Middleware> basic_authentication(std::string_view realm, BasicVerifier verifier) {
  if (!verifier) return detail::base::failure(EINVAL);
  const auto text = realm_of(realm);
  if (!text) return std::unexpected(text.error());
  const auto basic = std::make_shared<const Basic>(Basic{
      .verifier = std::move(verifier), .challenge = "Basic " + *text + ", charset=\"UTF-8\""});
  return Middleware([basic](Request& request, Response& response, const Handler& next) {
    return run_basic(basic, request, response, next);
  });
}

Result<Middleware> bearer_authentication(std::string_view realm, BearerVerifier verifier) {
  if (!verifier) return detail::base::failure(EINVAL);
  const auto text = realm_of(realm);
  if (!text) return std::unexpected(text.error());
  const auto bearer = std::make_shared<const Bearer>(
      Bearer{.verifier = std::move(verifier), .challenge = "Bearer " + *text});
  return Middleware([bearer](Request& request, Response& response, const Handler& next) {
    return run_bearer(bearer, request, response, next);
  });
}

BasicVerifier fixed_credentials(std::vector<BasicCredentials> credentials) {
  return [all = std::move(credentials)](Request&, const BasicCredentials& given) {
    bool is_valid = false;
    for (const BasicCredentials& entry : all) {
      const bool has_user = constant_time_equal(given.user, entry.user);
      const bool has_password = constant_time_equal(given.password, entry.password);
      is_valid = is_valid || (has_user && has_password);
    }
    return is_valid;
  };
}

BearerVerifier fixed_tokens(std::vector<std::string> tokens) {
  return [all = std::move(tokens)](Request&, const std::string& given) {
    bool is_valid = false;
    for (const std::string& token : all) {
      const bool is_same = constant_time_equal(given, token);
      is_valid = is_valid || is_same;
    }
    return is_valid;
  };
}

std::string_view authenticated_user(const Request& request) noexcept {
  return request.parameter(user_parameter);
}

void set_authenticated_user(Request& request, std::string user) {
  request.set_parameter(user_parameter, std::move(user));
}

}  // namespace tambour::http
