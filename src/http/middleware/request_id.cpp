// request_id().
#include <tambour/http/request_id.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "http/middleware/trusted_peers.h"
#include "http_message/characters.h"
#include "http_message/failure.h"
#include "loop/core.h"

namespace tambour::http {
namespace {

/// No route can have a parameter with this name.
constexpr std::string_view id_parameter = "request.id";

bool is_id(std::string_view text) noexcept {
  constexpr std::size_t size_max = 128;
  constexpr std::string_view others = "-._:+/=@";
  return !text.empty() && text.size() <= size_max && std::ranges::all_of(text, [others](char c) {
    return is_letter(c) || is_digit(c) || others.contains(c);
  });
}

std::string new_id(EventLoop& loop) {
  constexpr std::string_view digits = "0123456789abcdef";
  auto& backend = detail::loop::core_of(loop).backend();
  std::string id;
  id.reserve(32);
  for (int i = 0; i < 2; ++i) {
    std::uint64_t number = backend.random();
    for (int digit = 0; digit < 16; ++digit, number >>= 4U) id += digits[number & 15U];
  }
  return id;
}

struct Issuer {
  std::string field;
  TrustedPeers trusted;

  void set_id(Request& request, Response& response) const {
    Fields& fields = request.head().fields;
    std::string id;
    if (fields.count(field) == 1 && trusted.contains_peer_of(request)) {
      const std::string_view sent = *fields.get(field);
      if (is_id(sent)) id = sent;
    }
    if (id.empty()) id = new_id(request.connection().loop());
    static_cast<void>(fields.set(field, id));
    static_cast<void>(response.headers().set(field, id));
    request.set_parameter(id_parameter, std::move(id));
  }
};

}  // namespace

Result<Middleware> request_id(RequestIdOptions options) {
  if (Fields probe; !probe.add(options.field, "x")) return failure(ErrorCode::bad_field_name);
  const auto issuer = std::make_shared<const Issuer>(
      Issuer{.field = std::move(options.field),
             .trusted = {std::move(options.trusted), options.trusts_unix_peers}});
  return Middleware([issuer](Request& request, Response& response, const Handler& next) {
    issuer->set_id(request, response);
    return next.start(request, response);
  });
}

std::string_view request_id_of(const Request& request) noexcept {
  return request.parameter(id_parameter);
}

}  // namespace tambour::http
