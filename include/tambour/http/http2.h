// Options of HTTP/2 (RFC 9113) for servers and clients: which connections speak it, and its limits.
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

/// The limits of the HTTP/2 connections of a server. Each limit applies to one connection.
/// MessageLimits and the time limits of ServerOptions apply to HTTP/2 too; docs/limits.md lists
/// what exceeding a limit causes.
struct Http2Options {
  /// Whether the server speaks HTTP/2. Over TLS, the context must offer "h2" too
  /// (tls::ServerOptions::alpn); without TLS, a client with prior knowledge sends the connection
  /// preface (RFC 9113, section 3.3). If false, a context that offers "h2" is rejected with
  /// http::ErrorCode::offered_http_2, and the preface is answered with 505.
  bool is_enabled = true;

  /// The maximum number of requests whose stream is open, or was reset while its handler has not
  /// ended. Handlers that have sent the whole response count separately, up to the same number.
  /// Further requests are refused with REFUSED_STREAM, so that clients repeat them. 0: all are
  /// refused.
  std::uint32_t streams_max = 100;
  /// The number of fields in one message above which the connection is closed, because decoding
  /// them only costs time. A message with more than MessageLimits::fields_max is answered with 431.
  std::size_t fields_hard_max = 1000;

  /// Bytes of bodies of requests that the server buffers until handlers read them: of one stream,
  /// and of all streams of the connection. A value below 65,535, the initial window of RFC 9113, or
  /// above 2^31 - 1 counts as that number.
  std::uint32_t stream_window_bytes = 256 * 1024;
  std::uint32_t connection_window_bytes = 1024 * 1024;
  /// Both grow up to this number of bytes while a client sends as much as they allow within one
  /// round trip, which a PING measures, and the handlers read it. Otherwise an upload would get at
  /// most one window per round trip. A server that buffers half of `server_bytes_max` stops this.
  /// If it is smaller than the windows, they do not grow.
  std::uint32_t window_bytes_max = 4 * 1024 * 1024;

  /// Bytes of responses that one connection buffers because the client does not receive them. When
  /// there are more, the handlers of further requests start later, unless a request is more urgent
  /// than all whose responses are buffered. The responses of handlers that run already come in
  /// addition.
  std::size_t unsent_bytes_max = std::size_t{1024} * 1024;
  /// The kernel accepts no further bytes while it has not sent so many (TCP_NOTSENT_LOWAT, tcp(7)),
  /// from the first 64 KiB of one write on. More need fewer system calls, but delay a response that
  /// is more urgent. 0: as many as the kernel allows, usually 4 MiB (net.ipv4.tcp_wmem).
  std::uint32_t socket_unsent_bytes_max = 64 * 1024;
  /// Bytes of requests and responses that all connections of the server buffer, in steps of 64 KiB
  /// for each connection, and what their codecs take: compress(), decode_requests(). When there are
  /// more, a connection that buffers at least 64 KiB refuses further requests with REFUSED_STREAM;
  /// others are served.
  std::size_t server_bytes_max = std::size_t{256} * 1024 * 1024;

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
  /// each DATA frame that is sent or received by 2, and each second by one. Answers to PINGs of the
  /// server cost nothing. When the budget is used up, the connection ends with ENHANCE_YOUR_CALM.
  std::uint32_t idle_frames_max = 1000;

  /// The time within which the client must acknowledge the settings of the server, if it has sent a
  /// request; then the connection ends with SETTINGS_TIMEOUT. It counts from the last bytes that
  /// the client has received, because some clients write only when there is nothing to read. 0: no
  /// limit.
  Duration settings_timeout = std::chrono::seconds(10);
  /// If nothing has been received for this time while a request is in progress, the server sends
  /// PING. 0: never. If the client sends nothing for `ping_timeout` after that, the connection is
  /// closed, and the reads and writes of its handlers fail with ETIMEDOUT.
  Duration ping_interval = std::chrono::seconds(60);
  Duration ping_timeout = std::chrono::seconds(20);
};

/// Counts of the HTTP/2 connections of a server since it was created. Each member belongs to a
/// limit of Http2Options, and docs/limits.md lists them.
struct Http2Stats {
  std::uint64_t connections = 0;          ///< All that have spoken HTTP/2.
  std::uint64_t refused_streams = 0;      ///< Because of streams_max.
  std::uint64_t overloaded_streams = 0;   ///< Refused because of server_bytes_max.
  std::uint64_t postponed_handlers = 0;   ///< Started later because of unsent_bytes_max.
  std::uint64_t oversized_heads = 0;      ///< Requests that were answered with 431.
  std::uint64_t oversized_blocks = 0;     ///< Connections ended by a field block.
  std::uint64_t delayed_reads = 0;        ///< Because of resets_max.
  std::uint64_t reset_floods = 0;         ///< Connections ended by resets_max.
  std::uint64_t idle_frame_floods = 0;    ///< Connections ended by idle_frames_max.
  std::uint64_t unread_answers = 0;       ///< How often reading has waited until answers were sent.
  std::uint64_t stalled_streams = 0;      ///< Reset, because their window stayed closed.
  std::uint64_t stalled_connections = 0;  ///< Ended, because their window stayed closed.
  std::uint64_t settings_timeouts = 0;    ///< Connections ended by settings_timeout.
  std::uint64_t ping_timeouts = 0;        ///< Connections closed by ping_timeout.
  std::uint64_t protocol_errors = 0;      ///< Connections ended because the client broke a rule.
  /// What the connections buffer now: see server_bytes_max.
  std::uint64_t buffered_bytes = 0;
};

/// The versions of HTTP that a client speaks.
enum class VersionChoice : std::uint8_t {
  /// Over TLS, the version that ALPN negotiates; without TLS, HTTP/1.1.
  negotiated,
  http_1,  ///< Only HTTP/1.1.
  /// Only HTTP/2: over TLS by ALPN, and without TLS with prior knowledge (RFC 9113, section 3.3).
  http_2,
};

/// The limits of the HTTP/2 connections of a client. Each limit applies to one connection.
/// MessageLimits and the time limits of ClientOptions apply to HTTP/2 too.
struct Http2ClientOptions {
  /// The maximum number of requests at the same time, if the server does not allow fewer. Further
  /// requests use another connection, or wait: ClientOptions::connections_per_origin_max. 0 counts
  /// as 1.
  std::uint32_t streams_max = 100;
  /// The number of fields in one message above which the connection is closed. A message with more
  /// than MessageLimits::fields_max fails with http::ErrorCode::fields_too_large.
  std::size_t fields_hard_max = 1000;

  /// Bytes of bodies of responses that the client buffers until the program reads them: of one
  /// stream, and of all streams of the connection. The windows grow with the bytes that arrive in a
  /// round trip, which a PING measures, up to the second pair; if that is smaller, they do not. A
  /// value below 65,535 or above 2^31 - 1 counts as that number.
  std::uint32_t stream_window_bytes = 256 * 1024;
  std::uint32_t connection_window_bytes = 1024 * 1024;
  std::uint32_t stream_window_bytes_max = 4 * 1024 * 1024;
  std::uint32_t connection_window_bytes_max = 16 * 1024 * 1024;

  /// If a request is open, and nothing has arrived for this time, the client sends PING; if nothing
  /// arrives within `ping_timeout` after that, the connection is closed, and its requests fail with
  /// ETIMEDOUT. A request that is cancelled before anything has arrived causes a PING too, so that
  /// a dead connection is found although each request ends sooner. An open tunnel counts as a
  /// request: nothing else would find out that its server has disappeared. Zero: no PING.
  Duration ping_interval = std::chrono::seconds(10);
  Duration ping_timeout = std::chrono::seconds(10);

  /// Frames that do not advance a response, as Http2Options::idle_frames_max. When it is used up,
  /// the connection ends with ENHANCE_YOUR_CALM, and its requests fail with
  /// http::ErrorCode::http_2_violation.
  std::uint32_t idle_frames_max = 1000;
};

/// Counts of the HTTP/2 connections of a client since it was created.
struct Http2ClientStats {
  std::uint64_t connections = 0;
  std::uint64_t streams = 0;            ///< Requests that were sent.
  std::uint64_t streams_cancelled = 0;  ///< Reset by the client before their end.
  /// By RST_STREAM with REFUSED_STREAM or HTTP_1_1_REQUIRED.
  std::uint64_t streams_refused = 0;
  std::uint64_t streams_reset = 0;  ///< By the server, for another reason.
  std::uint64_t goaways = 0;
  std::uint64_t requests_repeated = 0;  ///< Requests that the server has not processed.
  std::uint64_t windows_grown = 0;
  std::uint64_t peers_lost = 0;  ///< Connections on which a PING was not answered.
  /// Connections that were closed because the server has broken a rule or exceeded a limit.
  std::uint64_t violations = 0;
};

}  // namespace tambour::http

#pragma GCC visibility pop
