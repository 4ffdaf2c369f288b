// Trace contexts, and the spans of servers and clients.
#include <tambour/http/tracing.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <span>
#include <utility>

#include <tambour/loop/event_loop.h>

#include "http/middleware/trusted_peers.h"
#include "http_message/characters.h"
#include "loop/core.h"

namespace tambour::http {
namespace {

constexpr std::string_view parent_field = "traceparent";
constexpr std::string_view state_field = "tracestate";
constexpr std::size_t state_bytes_max = 512;

std::string hex_of(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

/// Returns false unless the text has two digits in lower case for each byte, and not only zeros.
bool read_hex(std::string_view text, std::span<std::uint8_t> to) noexcept {
  const auto is_lower_hex = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); };
  if (text.size() != 2 * to.size() || !std::ranges::all_of(text, is_lower_hex)) return false;
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] = static_cast<std::uint8_t>(hex_value(text[2 * i]) * 16 + hex_value(text[2 * i + 1]));
  return true;
}

bool is_zero(std::span<const std::uint8_t> id) noexcept {
  return std::ranges::all_of(id, [](std::uint8_t byte) { return byte == 0; });
}

void fill_randomly(std::span<std::uint8_t> id, EventLoop& loop) noexcept {
  auto& backend = detail::loop::core_of(loop).backend();
  do {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < id.size(); ++i, number >>= 8U) {
      if (i % 8 == 0) number = backend.random();
      id[i] = static_cast<std::uint8_t>(number & 0xffU);
    }
  } while (is_zero(id));
}

WallTime wall_now(EventLoop& loop) noexcept {
  return WallTime(Duration(detail::loop::core_of(loop).wall_ns()));
}
std::int64_t clock_ns(EventLoop& loop) noexcept { return detail::loop::core_of(loop).clock_ns(); }

struct Tracing {
  SpanHook on_span;
  double sampled;
  TrustedPeers trusted;

  /// The span of the request, whose fields it replaces.
  Span begin(Request& request) const {
    EventLoop& loop = request.connection().loop();
    Span span;
    std::optional<TraceContext> sent;
    if (trusted.empty() || trusted.contains_peer_of(request)) sent = trace_context_of(request);
    if (sent) {
      span.context = sent->child(loop);
      span.parent = sent->span_id;
    } else {
      span.context = TraceContext::create(loop);
      span.context.is_sampled = is_chosen(span.context);
    }
    set_trace_context(request.head().fields, span.context);
    span.began_at = wall_now(loop);
    return span;
  }

  /// The last bytes of the id are random, so that all services would choose the same traces.
  [[nodiscard]] bool is_chosen(const TraceContext& context) const noexcept {
    std::uint32_t number = 0;
    for (std::size_t i = 12; i < 16; ++i) number = number << 8U | context.trace_id[i];
    return static_cast<double>(number) < sampled * 4294967296.0;
  }

  void end(Span& span, std::int64_t began_ns, const Request& request,
           const Response& response) const noexcept {
    if (!span.context.is_sampled || !on_span) return;
    span.duration = Duration(clock_ns(request.connection().loop()) - began_ns);
    span.method = request.method().name();
    span.name = request.route();
    span.status = response.status();
    on_span(span);
  }
};

Task<> trace_handler(Task<> task, std::shared_ptr<const Tracing> tracing, Span span,
                     std::int64_t began_ns, const Request& request, const Response& response) {
  std::exception_ptr thrown;
  try {
    co_await std::move(task);
  } catch (...) {
    thrown = std::current_exception();
  }
  span.has_thrown = thrown != nullptr;
  tracing->end(span, began_ns, request, response);
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

}  // namespace

std::optional<TraceContext> TraceContext::parse(std::string_view traceparent,
                                                std::string_view tracestate) {
  // version "-" trace-id "-" parent-id "-" trace-flags, and in later versions more.
  constexpr std::size_t size = 55;
  if (traceparent.size() < size) return std::nullopt;
  std::array<std::uint8_t, 1> version{};
  std::array<std::uint8_t, 1> flags{};
  TraceContext context;
  if (traceparent[2] != '-' || traceparent[35] != '-' || traceparent[52] != '-' ||
      !read_hex(traceparent.substr(0, 2), version) ||
      !read_hex(traceparent.substr(3, 32), context.trace_id) ||
      !read_hex(traceparent.substr(36, 16), context.span_id) ||
      !read_hex(traceparent.substr(53, 2), flags))
    return std::nullopt;
  const bool has_more = traceparent.size() > size;
  if (version[0] == 0xff || (version[0] == 0 && has_more) ||
      (has_more && traceparent[size] != '-') || is_zero(context.trace_id) ||
      is_zero(context.span_id))
    return std::nullopt;
  context.is_sampled = (flags[0] & 1U) != 0;
  const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (tracestate.size() <= state_bytes_max && std::ranges::all_of(tracestate, is_printable))
    context.state = tracestate;
  return context;
}

TraceContext TraceContext::create(EventLoop& loop, bool is_sampled) {
  TraceContext context;
  fill_randomly(context.trace_id, loop);
  fill_randomly(context.span_id, loop);
  context.is_sampled = is_sampled;
  return context;
}

TraceContext TraceContext::child(EventLoop& loop) const {
  TraceContext context = *this;
  fill_randomly(context.span_id, loop);
  return context;
}

std::string TraceContext::traceparent() const {
  return "00-" + hex_of(trace_id) + '-' + hex_of(span_id) + (is_sampled ? "-01" : "-00");
}

std::string to_hex(const TraceContext::TraceId& id) { return hex_of(id); }
std::string to_hex(const TraceContext::SpanId& id) { return hex_of(id); }

std::optional<TraceContext> trace_context_of(const Request& request) {
  const Fields& fields = request.headers();
  // More than one is invalid.
  if (fields.count(parent_field) != 1) return std::nullopt;
  const std::string_view state =
      fields.count(state_field) == 1 ? *fields.get(state_field) : std::string_view();
  return TraceContext::parse(*fields.get(parent_field), state);
}

void set_trace_context(Fields& headers, const TraceContext& context) {
  static_cast<void>(headers.set(parent_field, context.traceparent()));
  if (context.state.empty()) {
    headers.remove(state_field);
  } else {
    static_cast<void>(headers.set(state_field, context.state));
  }
}

Middleware trace_requests(TracingOptions options) {
  const auto tracing =
      std::make_shared<const Tracing>(Tracing{.on_span = std::move(options.on_span),
                                              .sampled = options.sampled,
                                              .trusted = {.networks = std::move(options.trusted)}});
  return Middleware([tracing](Request& request, Response& response, const Handler& next) -> Task<> {
    Span span = tracing->begin(request);
    const std::int64_t began_ns = clock_ns(request.connection().loop());
    try {
      if (Task<> task = next.start(request, response))
        return trace_handler(std::move(task), tracing, std::move(span), began_ns, request,
                             response);
    } catch (...) {
      span.has_thrown = true;
      tracing->end(span, began_ns, request, response);
      throw;
    }
    tracing->end(span, began_ns, request, response);
    return {};
  });
}

Task<Result<ClientResponse>> send_traced(Client& client, ClientRequest request, TraceContext parent,
                                         const SpanHook& on_span) {
  const TaskContext& task = co_await this_task;
  EventLoop& loop = *task.loop;
  Span span;
  span.kind = Span::Kind::client;
  span.context = parent.child(loop);
  span.parent = parent.span_id;
  span.began_at = wall_now(loop);
  set_trace_context(request.fields, span.context);
  const std::int64_t began_ns = clock_ns(loop);
  const std::string method(request.method.name());
  const Result<Url> url = Url::parse(request.url);
  const std::string host(url ? url->host() : std::string_view());
  Result<ClientResponse> response = co_await client.send(std::move(request));
  if (span.context.is_sampled && on_span) {
    span.duration = Duration(clock_ns(loop) - began_ns);
    span.method = method;
    span.name = host;
    if (response) {
      span.status = response->status();
    } else {
      span.error = response.error();
    }
    on_span(span);
  }
  co_return response;
}

}  // namespace tambour::http
