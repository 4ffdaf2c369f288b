// The field Sec-WebSocket-Extensions (RFC 6455, section 9.1), and the negotiation of
// permessage-deflate in it (RFC 7692, sections 5 and 7.1).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/fields.h>

#include "http_message/ws/error.h"

namespace tambour::http::detail::ws {

struct ExtensionParameter {
  std::string_view name{};
  std::optional<std::string> value{};
};

/// An extension that an endpoint offers or has chosen. The names refer to the fields.
struct Extension {
  std::string_view name{};
  std::vector<ExtensionParameter> parameters{};
};

/// All extensions in the fields with the name Sec-WebSocket-Extensions, in their order. Fails with
/// WebSocketError::bad_extensions, also for more than 16 extensions or 16 parameters of one. Throws
/// std::bad_alloc.
[[nodiscard]] Result<std::vector<Extension>> parse_extensions(const Fields& fields);

/// What an endpoint wants of permessage-deflate. A window of n bits has 2^n bytes, n is from 8 to
/// 15. Compressing with 12 bits takes 38 KiB of memory, and with 15 bits 150 KiB; decompressing 11
/// and 39 KiB.
struct DeflateOptions {
  int window_bits = 12;       ///< The maximum for the messages that this end compresses.
  int peer_window_bits = 12;  ///< What the peer is asked for. It may not know the parameter.
  /// Whether messages refer to earlier ones, which makes small ones much smaller. Without, no
  /// memory is needed between messages.
  bool has_context_takeover = true;
  bool has_peer_context_takeover = true;
};

/// What both ends have agreed on.
struct DeflateAgreement {
  int server_window_bits = 15;
  int client_window_bits = 15;
  bool has_server_context_takeover = true;
  bool has_client_context_takeover = true;

  bool operator==(const DeflateAgreement&) const = default;
};

struct AcceptedDeflate {
  DeflateAgreement agreement{};
  std::string field{};  ///< The value of the server's Sec-WebSocket-Extensions.
};

/// Server: accepts the first offer of permessage-deflate whose parameters are valid. No value if
/// there is none. Throws std::bad_alloc.
[[nodiscard]] std::optional<AcceptedDeflate> accept_deflate(std::span<const Extension> offers,
                                                            const DeflateOptions& options);

/// Client: the value of its Sec-WebSocket-Extensions. Throws std::bad_alloc.
[[nodiscard]] std::string offer_deflate(const DeflateOptions& options);

/// Client: the server's answer to offer_deflate(options), or to no offer if `options` is null. No
/// value if the server has chosen no extension. Fails with WebSocketError::unexpected_extension.
[[nodiscard]] Result<std::optional<DeflateAgreement>> confirm_deflate(
    std::span<const Extension> chosen, const DeflateOptions* options);

}  // namespace tambour::http::detail::ws
