// Distributed tracing: the context of a trace in requests (W3C Trace Context), and spans that a
// program passes to a collector. docs/observing.md and examples/open_telemetry.cpp show the use.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/client.h>
#include <tambour/http/router.h>
#include <tambour/http/status.h>
#include <tambour/net/ip_address.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// Which trace a request belongs to, and which span of it: the fields `traceparent` and
/// `tracestate` (https://www.w3.org/TR/trace-context/). Contains no user data, and no secret.
struct TraceContext {
  /// Ids of W3C Trace Context, in network byte order.
  using TraceId = std::array<std::uint8_t, 16>;
  using SpanId = std::array<std::uint8_t, 8>;

  /// Not an aggregate: see ClientRequest.
  TraceContext() noexcept = default;

  TraceId trace_id{};
  SpanId span_id{};
  /// The spans of this trace are recorded.
  bool is_sampled = false;
  /// The field `tracestate`, which is passed on unchanged. Empty: none.
  std::string state{};

  /// The context of these fields. No value if `traceparent` is invalid: its ids must not be zero,
  /// and its digits are in lower case. Fields of versions after 00 are accepted if they begin like
  /// this version. `tracestate` of more than 512 bytes, or with bytes that are not printable, is
  /// dropped. Throws std::bad_alloc.
  [[nodiscard]] static std::optional<TraceContext> parse(std::string_view traceparent,
                                                         std::string_view tracestate = {});
  /// The first span of a new trace, with random ids. In a simulation, the seed determines them.
  [[nodiscard]] static TraceContext create(EventLoop& loop, bool is_sampled = true);
  /// A new span of the same trace.
  [[nodiscard]] TraceContext child(EventLoop& loop) const;

  /// The value of the field: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".
  [[nodiscard]] std::string traceparent() const;
};

/// The digits of an id, in hexadecimal.
[[nodiscard]] std::string to_hex(const TraceContext::TraceId& id);
[[nodiscard]] std::string to_hex(const TraceContext::SpanId& id);

/// A request that was served or sent. The texts are valid during the call of the hook.
struct Span {
  /// Whether the request was served or sent.
  enum class Kind : std::uint8_t { server, client };

  Span() noexcept = default;

  Kind kind = Kind::server;
  TraceContext context;
  /// The span that it belongs to; zero: none.
  TraceContext::SpanId parent{};
  std::string_view method;
  /// Of a server: Request::route(), empty if no route matched. Of a client: the host of the URL.
  /// Targets and fields, which may contain secrets, are not in spans.
  std::string_view name;
  WallTime began_at{};
  Duration duration{};
  /// Of a client whose request failed, no value.
  std::optional<Status> status{};
  /// Of a client whose request failed.
  Error error{};
  /// Of a server whose handler threw.
  bool has_thrown = false;
};

/// Called at the end of each sampled span, on the thread of the loop. Must not throw and not block.
using SpanHook = std::function<void(const Span&)>;

/// Which requests become spans.
struct TracingOptions {
  SpanHook on_span{};
  /// The fraction of new traces that are sampled, from 0 to 1. Traces that come with a request are
  /// sampled as the peer has decided.
  double sampled = 1.0;
  /// Peers whose traces are continued. Empty: all. A trace that another peer sends is ignored, and
  /// a new one begins: a client could otherwise make the service record all of its requests.
  std::vector<IpNetwork> trusted{};
};

/// Middleware that makes a span of each request: from the start of the handler to its end. It
/// replaces the fields of the request by those of the span, so that a reverse proxy passes them on.
/// Throws std::bad_alloc.
///
///   router.use(http::trace_requests({.on_span = [&](const http::Span& span) { ... }}));
[[nodiscard]] Middleware trace_requests(TracingOptions options);

/// The span of a request that has passed through trace_requests(), or what the client has sent; no
/// value if there is none. Throws std::bad_alloc.
[[nodiscard]] std::optional<TraceContext> trace_context_of(const Request& request);

/// Sets the fields of a request that a client sends. Throws std::bad_alloc.
void set_trace_context(Fields& headers, const TraceContext& context);

/// Sends a request as a child of `parent`, and calls `on_span` when the head of the response has
/// arrived or the request has failed. `client` and `on_span` must exist until then.
///
///   auto response = co_await http::send_traced(client, std::move(request), context, on_span);
[[nodiscard]] Task<Result<ClientResponse>> send_traced(Client& client, ClientRequest request,
                                                       TraceContext parent,
                                                       const SpanHook& on_span);

}  // namespace tambour::http

#pragma GCC visibility pop
