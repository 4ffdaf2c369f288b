// Spans of a server and of its client, exported to a collector of OpenTelemetry as OTLP/JSON over
// HTTP (https://opentelemetry.io/docs/specs/otlp/).
//
//   open_telemetry [URL]     the default is a collector of its own;
//   "http://localhost:4318/v1/traces"
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include <tambour/tambour.h>

using namespace std::chrono_literals;
using namespace tambour;

namespace {

std::string nanoseconds(Duration time) { return '"' + std::to_string(time.count()) + '"'; }

/// All texts are method names, routes and hosts, of which only routes may need escaping.
std::string quoted(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  return json + '"';
}

std::string to_json(const http::Span& span) {
  const bool is_server = span.kind == http::Span::Kind::server;
  const Duration began = span.began_at.time_since_epoch();
  std::string json = "{\"traceId\":" + quoted(http::to_hex(span.context.trace_id)) +
                     ",\"spanId\":" + quoted(http::to_hex(span.context.span_id));
  if (span.parent != http::TraceContext::SpanId{})
    json += ",\"parentSpanId\":" + quoted(http::to_hex(span.parent));
  json += ",\"name\":" + quoted(std::string(span.method) + ' ' + std::string(span.name)) +
          ",\"kind\":" + (is_server ? "2" : "3") + ",\"startTimeUnixNano\":" + nanoseconds(began) +
          ",\"endTimeUnixNano\":" + nanoseconds(began + span.duration);
  if (span.status)
    json += R"(,"attributes":[{"key":"http.response.status_code","value":{"intValue":)" +
            std::to_string(http::code_of(*span.status)) + "}}]";
  return json + (span.has_thrown || span.error ? R"(,"status":{"code":2}})" : "}");
}

/// Sends the spans of each second in one request. Spans beyond the limit are dropped and counted.
class Exporter {
 public:
  Exporter(EventLoop& loop, std::string url) : client_(loop), url_(std::move(url)) {}

  void add(const http::Span& span) {
    if (spans_.size() > 1'000'000) return void(++dropped_);
    if (!spans_.empty()) spans_ += ',';
    spans_ += to_json(span);
  }

  Task<> flush() {
    if (spans_.empty()) co_return;
    std::string body = R"({"resourceSpans":[{"resource":{"attributes":[{"key":"service.name",)"
                       R"("value":{"stringValue":"shop"}}]},"scopeSpans":[{"spans":[)" +
                       std::exchange(spans_, {}) + "]}]}]}";
    http::ClientRequest request(http::Method::post, url_, Buffer(body));
    static_cast<void>(request.fields.set("Content-Type", "application/json"));
    const auto response = co_await client_.send(std::move(request));
    if (!response || response->status() != http::Status::ok) std::puts("the collector failed");
  }

  Task<> run() {
    while (const auto slept = co_await sleep_for(1s)) co_await flush();
  }

 private:
  http::Client client_;
  std::string url_;
  std::string spans_;
  std::size_t dropped_ = 0;
};

/// For the test: prints what it receives.
Task<> collect(http::Request& request, http::Response& response) {
  const auto body = co_await request.body().read_text();
  std::printf("%s\n", body ? body->c_str() : "incomplete");
  response.send("{}");
}

}  // namespace

int main(int argc, char** argv) {
  EventLoop loop;
  const Endpoint any = Endpoint::loopback_v4(0);
  http::Server collector = or_throw(http::Server::listen(loop, any, collect));
  const std::string local = "http://" + collector.endpoint().to_string() + "/v1/traces";
  Exporter exporter(loop, argc > 1 ? argv[1] : local);
  const http::SpanHook add = [&](const http::Span& span) { exporter.add(span); };

  http::Router router;
  router.use(http::trace_requests({.on_span = add}));
  router.get("/orders/{id}",
             [](http::Request&, http::Response& response) { response.send("one"); });
  http::Server server = or_throw(http::Server::listen(loop, any, std::move(router).handler()));

  TaskScope exporting(loop);
  exporting.spawn(exporter.run());
  block_on(loop, [&]() -> Task<> {
    http::Client client(loop);
    http::ClientRequest request("http://" + server.endpoint().to_string() + "/orders/7");
    const auto order = co_await http::send_traced(client, std::move(request),
                                                  http::TraceContext::create(loop), add);
    std::puts(order ? "ordered" : "failed");
    co_await exporter.flush();
  }());
}
