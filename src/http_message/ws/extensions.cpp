// Parses and writes Sec-WebSocket-Extensions, and negotiates permessage-deflate.
#include "http_message/ws/extensions.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "http_message/characters.h"

namespace tambour::http::detail::ws {
namespace {

constexpr std::size_t extensions_max = 16;
constexpr std::size_t parameters_max = 16;
constexpr std::string_view permessage_deflate = "permessage-deflate";
constexpr int window_bits_max = 15;

/// Reads the value of one field.
class ExtensionReader {
 public:
  explicit ExtensionReader(std::string_view text) noexcept : text_(text) {}

  /// extension-list = 1#extension. Elements of a list may be empty: RFC 9110, section 5.6.1.
  bool read_list(std::vector<Extension>& extensions) {
    for (;;) {
      skip_space();
      if (!text_.empty() && text_.front() != ',') {
        if (extensions.size() == extensions_max || !read_extension(extensions.emplace_back()))
          return false;
      }
      skip_space();
      if (text_.empty()) return true;
      if (!skip(',')) return false;
    }
  }

 private:
  /// extension = token *( ";" token [ "=" ( token / quoted-string ) ] )
  bool read_extension(Extension& extension) {
    extension.name = take_token();
    if (extension.name.empty()) return false;
    for (skip_space(); skip(';'); skip_space()) {
      if (extension.parameters.size() == parameters_max) return false;
      ExtensionParameter& parameter = extension.parameters.emplace_back();
      skip_space();
      parameter.name = take_token();
      if (parameter.name.empty()) return false;
      skip_space();
      if (!skip('=')) continue;
      skip_space();
      parameter.value.emplace();
      if (!read_value(*parameter.value)) return false;
    }
    return true;
  }

  /// What a quoted string contains must be a token, too.
  bool read_value(std::string& value) {
    if (!skip('"')) {
      value = take_token();
      return !value.empty();
    }
    while (!text_.empty() && text_.front() != '"') {
      if (skip('\\') && text_.empty()) return false;
      value += text_.front();
      text_.remove_prefix(1);
    }
    return skip('"') && !value.empty() && all_are(value, token_char);
  }

  std::string_view take_token() noexcept {
    const auto end = std::ranges::find_if(text_, [](char c) { return !is(c, token_char); });
    const std::string_view token = text_.substr(0, static_cast<std::size_t>(end - text_.begin()));
    text_.remove_prefix(token.size());
    return token;
  }
  void skip_space() noexcept {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\t'))
      text_.remove_prefix(1);
  }
  bool skip(char wanted) noexcept {
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }

  std::string_view text_;
};

/// The parameters of one offer or answer.
struct Parameters {
  bool has_server_no_takeover = false;
  bool has_client_no_takeover = false;
  bool has_client_bits = false;  ///< An offer may lack the value.
  std::optional<int> server_bits{};
  std::optional<int> client_bits{};
};

/// A decimal number from 8 to 15 without leading zeros.
std::optional<int> parse_bits(const std::optional<std::string>& value) noexcept {
  if (value == "8" || value == "9") return value->front() - '0';
  if (!value || value->size() != 2 || value->front() != '1') return std::nullopt;
  const char last = value->back();
  if (last < '0' || last > '5') return std::nullopt;
  return 10 + (last - '0');
}

/// Returns false if a parameter is unknown, is repeated, or has a wrong value.
bool set_parameter(Parameters& parameters, const ExtensionParameter& parameter) noexcept {
  const auto is_named = [&](std::string_view name) {
    return equal_ignoring_case(parameter.name, name);
  };
  const auto set_flag = [&](bool& flag) {
    return !std::exchange(flag, true) && !parameter.value.has_value();
  };
  if (is_named("server_no_context_takeover")) return set_flag(parameters.has_server_no_takeover);
  if (is_named("client_no_context_takeover")) return set_flag(parameters.has_client_no_takeover);
  if (is_named("server_max_window_bits")) {
    if (parameters.server_bits) return false;
    parameters.server_bits = parse_bits(parameter.value);
    return parameters.server_bits.has_value();
  }
  if (!is_named("client_max_window_bits") || std::exchange(parameters.has_client_bits, true))
    return false;
  parameters.client_bits = parse_bits(parameter.value);
  return parameters.client_bits.has_value() || !parameter.value;
}

std::optional<Parameters> read_parameters(const Extension& extension) noexcept {
  Parameters parameters;
  for (const ExtensionParameter& parameter : extension.parameters) {
    if (!set_parameter(parameters, parameter)) return std::nullopt;
  }
  return parameters;
}

void append_parameter(std::string& field, std::string_view name, int bits = 0) {
  field.append("; ").append(name);
  if (bits > 0) field.append("=").append(std::to_string(bits));
}

AcceptedDeflate accept_offer(const Parameters& offer, const DeflateOptions& options) {
  AcceptedDeflate accepted;
  DeflateAgreement& agreement = accepted.agreement;
  agreement.has_server_context_takeover =
      options.has_context_takeover && !offer.has_server_no_takeover;
  agreement.has_client_context_takeover =
      options.has_peer_context_takeover && !offer.has_client_no_takeover;
  agreement.server_window_bits =
      std::min(options.window_bits, offer.server_bits.value_or(window_bits_max));
  // A server may limit the window of a client only if the client supports that.
  if (offer.has_client_bits)
    agreement.client_window_bits =
        std::min(options.peer_window_bits, offer.client_bits.value_or(window_bits_max));
  std::string& field = accepted.field;
  field = permessage_deflate;
  if (!agreement.has_server_context_takeover) append_parameter(field, "server_no_context_takeover");
  if (!agreement.has_client_context_takeover) append_parameter(field, "client_no_context_takeover");
  if (offer.server_bits || agreement.server_window_bits < window_bits_max)
    append_parameter(field, "server_max_window_bits", agreement.server_window_bits);
  if (offer.has_client_bits && agreement.client_window_bits < window_bits_max)
    append_parameter(field, "client_max_window_bits", agreement.client_window_bits);
  return accepted;
}

}  // namespace

Result<std::vector<Extension>> parse_extensions(const Fields& fields) {
  std::vector<Extension> extensions;
  for (const Field field : fields) {
    if (!equal_ignoring_case(field.name, "Sec-WebSocket-Extensions")) continue;
    if (!ExtensionReader(field.value).read_list(extensions))
      return failure(WebSocketError::bad_extensions);
  }
  return extensions;
}

std::optional<AcceptedDeflate> accept_deflate(std::span<const Extension> offers,
                                              const DeflateOptions& options) {
  for (const Extension& offer : offers) {
    if (!equal_ignoring_case(offer.name, permessage_deflate)) continue;
    if (const auto parameters = read_parameters(offer)) return accept_offer(*parameters, options);
  }
  return std::nullopt;
}

std::string offer_deflate(const DeflateOptions& options) {
  std::string offer(permessage_deflate);
  if (!options.has_peer_context_takeover) append_parameter(offer, "server_no_context_takeover");
  if (!options.has_context_takeover) append_parameter(offer, "client_no_context_takeover");
  append_parameter(offer, "client_max_window_bits",
                   options.window_bits < window_bits_max ? options.window_bits : 0);
  if (options.peer_window_bits == window_bits_max) return offer;
  // A server that does not know the parameter must decline the first offer.
  const std::string any_window = offer;
  append_parameter(offer, "server_max_window_bits", options.peer_window_bits);
  return offer + ", " + any_window;
}

Result<std::optional<DeflateAgreement>> confirm_deflate(std::span<const Extension> chosen,
                                                        const DeflateOptions* options) {
  if (chosen.empty()) return std::nullopt;
  if (options == nullptr || chosen.size() > 1 ||
      !equal_ignoring_case(chosen.front().name, permessage_deflate))
    return failure(WebSocketError::unexpected_extension);
  const auto parameters = read_parameters(chosen.front());
  // An answer has the value, and repeats what the client has asked for.
  if (!parameters || (parameters->has_client_bits && !parameters->client_bits) ||
      (!options->has_peer_context_takeover && !parameters->has_server_no_takeover))
    return failure(WebSocketError::unexpected_extension);
  DeflateAgreement agreement;
  agreement.has_server_context_takeover = !parameters->has_server_no_takeover;
  agreement.has_client_context_takeover =
      options->has_context_takeover && !parameters->has_client_no_takeover;
  agreement.server_window_bits = parameters->server_bits.value_or(window_bits_max);
  agreement.client_window_bits =
      std::min(options->window_bits, parameters->client_bits.value_or(window_bits_max));
  return agreement;
}

}  // namespace tambour::http::detail::ws
