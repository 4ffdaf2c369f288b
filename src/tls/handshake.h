// The handshake of a server, for layer server.
#pragma once

#include <cstdint>

#include <tambour/result.h>
#include <tambour/socket_stream.h>
#include <tambour/task.h>
#include <tambour/tls_context.h>

namespace tambour::tls {

/// When accept() returns.
enum class Start : std::uint8_t {
  when_complete,
  with_early_data,  ///< Also when early data has been received.
};

/// Like tls_accept(), but if it fails, `stream` stays open for a last look at its endpoints. The
/// caller must close it.
[[nodiscard]] Task<Result<>> accept(SocketStream& stream, TlsServerContext context, Start start);

}  // namespace tambour::tls
