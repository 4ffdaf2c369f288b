// Options of HTTP/2 (RFC 9113) for servers: which connections speak it, and its limits.
//
// A handler does not depend on the version of HTTP. docs/http2.md is a guide.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include <tambour/base/clock.h>
#include <tambour/detail/namespaces.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// Each limit applies to one connection. MessageLimits and the time limits of ServerOptions apply
/// to HTTP/2 too; docs/limits.md lists what exceeding a limit causes.
struct Http2Options {
  /// Whether the server speaks HTTP/2. Over TLS, the context must offer "h2" too
  /// (tls::ServerOptions::alpn); without TLS, a client that begins with the preface of HTTP/2 knows
  /// it already (RFC 9113, section 3.3). If false, a context that offers "h2" is rejected with
  /// http::ErrorCode::offered_http_2, and the preface is answered with 505.
  bool is_enabled = true;

  /// Requests whose stream is open, or whose handler has not ended yet. Further ones are refused
  /// with REFUSED_STREAM, so that clients repeat them.
  std::uint32_t streams_max = 100;
  /// The fields of a message after which the connection ends: they only cost time. A message with
  /// more than MessageLimits::fields_max is answered with 431.
  std::size_t fields_hard_max = 1000;

  /// Bytes of bodies of requests that the server buffers until handlers read them: of one stream,
  /// and of all streams of the connection. At least 65,535; at most 2^31 - 1.
  std::uint32_t stream_window_bytes = 256 * 1024;
  std::uint32_t connection_window_bytes = 1024 * 1024;

  /// The bytes per second that a client must accept while its windows hold up a response. A
  /// response may be held up for ServerOptions::write_timeout in total; each byte that is sent
  /// extends that by 1/send_rate_min seconds, but what is left never exceeds `write_timeout`. Then
  /// the stream is reset. 0: bytes extend nothing.
  std::size_t send_rate_min = 500;

  /// Streams that the client resets, or makes the server reset, before they are complete. A
  /// complete stream makes up for one of them. When they are used up, each further one delays the
  /// next read by 100 ms; after as many again, the connection ends with ENHANCE_YOUR_CALM.
  std::uint32_t resets_max = 100;
  /// Frames that do not advance a request or response: PING, SETTINGS, PRIORITY, PRIORITY_UPDATE,
  /// WINDOW_UPDATE, unknown ones, and DATA without data. Each request makes up for 10, and each
  /// DATA frame that is sent or received for 2. Then the connection ends with ENHANCE_YOUR_CALM.
  std::uint32_t idle_frames_max = 1000;
};

}  // namespace tambour::http

#pragma GCC visibility pop
