// Handshakes for the layers client and server.
#pragma once

#include <cstdint>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>
#include <tambour/tls/context.h>

namespace tambour::tls::detail {

/// When accept() returns.
enum class Start : std::uint8_t {
  when_complete,
  with_early_data,  ///< Also when early data has been received.
};

/// Like tls::accept(), but if it fails, `stream` stays open for a last look at its endpoints. The
/// caller must close it.
[[nodiscard]] Task<Result<>> accept(SocketStream& stream, tls::ServerContext context, Start start);

/// Counts an unfinished handshake that the server has closed because there were too many.
void count_displaced(const tls::ServerContext& context) noexcept;

}  // namespace tambour::tls::detail
