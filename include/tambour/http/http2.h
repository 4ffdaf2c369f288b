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
  /// (tls::ServerOptions::alpn); without TLS, a client with prior knowledge sends the connection
  /// preface (RFC 9113, section 3.3). If false, a context that offers "h2" is rejected with
  /// http::ErrorCode::offered_http_2, and the preface is answered with 505.
  bool is_enabled = true;

  /// The maximum number of requests whose stream is open, or whose handler has not ended yet.
  /// Further ones are refused with REFUSED_STREAM, so that clients repeat them.
  std::uint32_t streams_max = 100;
  /// The number of fields in one message above which the connection is closed, because decoding
  /// them only costs time. A message with more than MessageLimits::fields_max is answered with 431.
  std::size_t fields_hard_max = 1000;

  /// Bytes of bodies of requests that the server buffers until handlers read them: of one stream,
  /// and of all streams of the connection. At least 65,535; at most 2^31 - 1.
  std::uint32_t stream_window_bytes = 256 * 1024;
  std::uint32_t connection_window_bytes = 1024 * 1024;

  /// The bytes per second that a client must accept while its windows block a response. A response
  /// may be blocked for ServerOptions::write_timeout in total, after which the stream is reset.
  /// Each sent byte extends that time by 1/send_rate_min seconds, up to a remaining time of
  /// `write_timeout`. 0: bytes do not extend it.
  std::size_t send_rate_min = 500;

  /// Streams that the client resets, or makes the server reset, before they are complete. Each
  /// complete stream refills the budget by one. When it is used up, each further reset delays the
  /// next read by 100 ms; after as many again, the connection ends with ENHANCE_YOUR_CALM.
  std::uint32_t resets_max = 100;
  /// Frames that do not advance a request or response: PING, SETTINGS, PRIORITY, PRIORITY_UPDATE,
  /// WINDOW_UPDATE, unknown ones, and DATA without data. Each request refills the budget by 10, and
  /// each DATA frame that is sent or received by 2. When it is used up, the connection ends with
  /// ENHANCE_YOUR_CALM.
  std::uint32_t idle_frames_max = 1000;
};

}  // namespace tambour::http

#pragma GCC visibility pop
