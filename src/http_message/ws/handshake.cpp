// Makes and checks both sides of the opening handshake.
#include "http_message/ws/handshake.h"

#include <algorithm>
#include <utility>

#include "http_message/base64.h"
#include "http_message/characters.h"
#include "http_message/ws/sha1.h"

namespace tambour::http::detail::ws {
namespace {

constexpr std::string_view version = "13";
constexpr std::size_t key_bytes = 16;
/// As for extensions: a list is short, and each of its elements takes memory.
constexpr std::size_t subprotocols_max = 64;

std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The value of a field that must occur once.
std::optional<std::string_view> only_value(const Fields& fields, std::string_view name) noexcept {
  return fields.count(name) == 1 ? fields.get(name) : std::nullopt;
}

bool has_element(const auto& list, std::string_view wanted) noexcept {
  return std::ranges::find(list, wanted) != list.end();
}

bool is_token(std::string_view text) noexcept { return !text.empty() && all_are(text, token_char); }

Result<std::vector<std::string_view>> read_subprotocols(const Fields& fields) {
  std::vector<std::string_view> subprotocols;
  for (const Field field : fields) {
    if (!equal_ignoring_case(field.name, "Sec-WebSocket-Protocol")) continue;
    for (std::string_view rest = field.value; !rest.empty();) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      const std::string_view name = trim(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      if (name.empty()) continue;
      if (!is_token(name) || subprotocols.size() == subprotocols_max ||
          has_element(subprotocols, name))
        return failure(WebSocketError::bad_subprotocols);
      subprotocols.push_back(name);
    }
  }
  return subprotocols;
}

/// What requests of all versions of HTTP have in common.
Result<HandshakeRequest> read_fields(const Fields& fields) {
  HandshakeRequest request;
  if (only_value(fields, "Sec-WebSocket-Version") != version)
    return failure(WebSocketError::unsupported_version);
  auto subprotocols = read_subprotocols(fields);
  if (!subprotocols) return std::unexpected(subprotocols.error());
  request.subprotocols = std::move(*subprotocols);
  auto extensions = parse_extensions(fields);
  if (!extensions) return std::unexpected(extensions.error());
  request.extensions = std::move(*extensions);
  request.origin = fields.get("Origin");
  // Which of several is right cannot be told.
  if (fields.count("Origin") > 1) return failure(WebSocketError::origin_not_allowed);
  return request;
}

/// The host and port of an origin without the default port of its scheme; empty if it has none, as
/// the origin "null".
std::string_view without_default_port(std::string_view authority,
                                      std::string_view scheme) noexcept {
  const std::string_view port = equal_ignoring_case(scheme, "https")  ? ":443"
                                : equal_ignoring_case(scheme, "http") ? ":80"
                                                                      : "";
  if (!port.empty() && authority.ends_with(port)) authority.remove_suffix(port.size());
  return authority;
}

Result<> check_response_status(const ResponseHead& head, const HandshakeOffer& offer) {
  const int status = code_of(head.status);
  if (offer.key.empty()) {
    if (status < 200 || status > 299) return failure(WebSocketError::unexpected_status);
    return {};
  }
  if (head.status != Status::switching_protocols) return failure(WebSocketError::unexpected_status);
  const auto upgrade = only_value(head.fields, "Upgrade");
  if (!upgrade || !equal_ignoring_case(*upgrade, "websocket") ||
      !head.fields.has_token("Connection", "upgrade"))
    return failure(WebSocketError::bad_upgrade);
  if (only_value(head.fields, "Sec-WebSocket-Accept") != accept_for(offer.key))
    return failure(WebSocketError::bad_accept);
  return {};
}

}  // namespace

std::string make_key(std::span<const std::byte, 16> random) {
  return encode_base64(text_of(random));
}

std::string accept_for(std::string_view key) {
  // RFC 6455, section 1.3.
  const auto digest = sha1(std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
  return encode_base64(text_of(digest));
}

Result<HandshakeRequest> read_request(const RequestHead& head) {
  const Fields& fields = head.fields;
  if (head.method != Method::get) return failure(WebSocketError::bad_method);
  if (head.version != Version::http_1_1) return failure(WebSocketError::bad_http_version);
  if (!fields.has_token("Upgrade", "websocket") || !fields.has_token("Connection", "upgrade"))
    return failure(WebSocketError::not_an_upgrade);
  if (fields.contains("Transfer-Encoding") || fields.get("Content-Length").value_or("0") != "0")
    return failure(WebSocketError::request_with_body);
  auto request = read_fields(fields);
  if (!request) return request;
  const auto key = only_value(fields, "Sec-WebSocket-Key");
  const auto decoded = decode_base64(key.value_or(""));
  if (!decoded || decoded->size() != key_bytes) return failure(WebSocketError::bad_key);
  request->key = *key;
  return request;
}

Result<HandshakeRequest> read_connect_request(const RequestHead& head, std::string_view protocol) {
  if (head.method != Method::connect) return failure(WebSocketError::bad_method);
  if (protocol != "websocket") return failure(WebSocketError::not_an_upgrade);
  return read_fields(head.fields);
}

std::optional<std::string_view> choose_subprotocol(
    const HandshakeRequest& request, std::span<const std::string_view> supported) noexcept {
  for (const std::string_view name : request.subprotocols) {
    if (has_element(supported, name)) return name;
  }
  return std::nullopt;
}

Result<> check_origin(const HandshakeRequest& request, std::string_view authority,
                      std::span<const std::string_view> allowed) noexcept {
  if (!request.origin) return {};
  const std::string_view origin = *request.origin;
  const auto is_origin = [&](std::string_view other) { return equal_ignoring_case(origin, other); };
  if (std::ranges::any_of(allowed, is_origin)) return {};
  constexpr std::string_view separator = "://";
  const std::size_t end = origin.find(separator);
  if (end != std::string_view::npos) {
    const std::string_view scheme = origin.substr(0, end);
    const std::string_view host =
        without_default_port(origin.substr(end + separator.size()), scheme);
    // A proxy in front of this server may end TLS, so the scheme of the origin counts.
    if (!host.empty() && equal_ignoring_case(host, without_default_port(authority, scheme)))
      return {};
  }
  return failure(WebSocketError::origin_not_allowed);
}

Result<> add_response_fields(Fields& fields, const HandshakeRequest& request,
                             std::string_view subprotocol, std::string_view extensions) {
  std::vector<std::pair<std::string_view, std::string>> added;
  if (!request.key.empty()) {
    added.emplace_back("Upgrade", "websocket");
    added.emplace_back("Sec-WebSocket-Accept", accept_for(request.key));
  }
  if (!subprotocol.empty()) added.emplace_back("Sec-WebSocket-Protocol", subprotocol);
  if (!extensions.empty()) added.emplace_back("Sec-WebSocket-Extensions", extensions);
  for (const auto& [name, value] : added) {
    if (auto result = fields.add(name, value); !result) return result;
  }
  return {};
}

void add_rejection_fields(Fields& fields, const Error& error) {
  // These names and values are valid, so nothing can fail but the allocation.
  static_cast<void>(fields.add("Sec-WebSocket-Version", version));
  const Status status = handshake_status_for(error);
  if (status == Status::upgrade_required) static_cast<void>(fields.add("Upgrade", "websocket"));
  if (status == Status::method_not_allowed) static_cast<void>(fields.add("Allow", "GET"));
}

Result<> add_request_fields(Fields& fields, const HandshakeOffer& offer) {
  std::string subprotocols;
  for (std::size_t i = 0; i < offer.subprotocols.size(); ++i) {
    const std::string& name = offer.subprotocols[i];
    const auto before = std::span(offer.subprotocols).first(i);
    if (!is_token(name) || has_element(before, name))
      return failure(WebSocketError::bad_subprotocols);
    subprotocols.append(i == 0 ? "" : ", ").append(name);
  }
  std::vector<std::pair<std::string_view, std::string>> added;
  if (!offer.key.empty()) {
    added.emplace_back("Upgrade", "websocket");
    added.emplace_back("Sec-WebSocket-Key", offer.key);
  }
  added.emplace_back("Sec-WebSocket-Version", version);
  if (!subprotocols.empty()) added.emplace_back("Sec-WebSocket-Protocol", subprotocols);
  if (offer.deflate) added.emplace_back("Sec-WebSocket-Extensions", offer_deflate(*offer.deflate));
  for (const auto& [name, value] : added) {
    if (auto result = fields.add(name, value); !result) return result;
  }
  return {};
}

Result<HandshakeResponse> read_response(const ResponseHead& head, const HandshakeOffer& offer) {
  if (auto checked = check_response_status(head, offer); !checked)
    return std::unexpected(checked.error());
  HandshakeResponse response;
  if (head.fields.contains("Sec-WebSocket-Protocol")) {
    const auto chosen = only_value(head.fields, "Sec-WebSocket-Protocol");
    if (!chosen || !has_element(offer.subprotocols, *chosen))
      return failure(WebSocketError::unexpected_subprotocol);
    response.subprotocol = *chosen;
  }
  const auto extensions = parse_extensions(head.fields);
  if (!extensions) return std::unexpected(extensions.error());
  auto deflate = confirm_deflate(*extensions, offer.deflate ? &*offer.deflate : nullptr);
  if (!deflate) return std::unexpected(deflate.error());
  response.deflate = *deflate;
  return response;
}

}  // namespace tambour::http::detail::ws
