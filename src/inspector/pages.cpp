// The pages of an inspector.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/http/status.h>
#include <tambour/threads/worker_pool.h>

#include "inspector/json.h"
#include "inspector/page_files.h"
#include "inspector/sockets.h"
#include "inspector/state.h"
#include "inspector/tasks.h"

namespace tambour::inspector {
namespace {

using State = InspectorPages::State;
using StatePointer = std::shared_ptr<State>;
using http::Request;
using http::Response;

constexpr std::size_t rows_max = 500;  ///< Of one answer.

double seconds(std::int64_t ns) noexcept { return static_cast<double>(ns) / 1e9; }
double seconds(Duration time) noexcept { return seconds(time.count()); }

/// Nothing of the page comes from another origin, and nothing is stored by the browser or a proxy.
void set_fields(Response& response, std::string_view type) {
  auto& fields = response.headers();
  fields.set("Content-Type", std::string(type));
  fields.set("Cache-Control", "no-store");
  fields.set("X-Content-Type-Options", "nosniff");
  fields.set("Referrer-Policy", "no-referrer");
  fields.set("Content-Security-Policy",
             "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
}

void send_json(Response& response, Json& json, http::Status status = http::Status::ok) {
  set_fields(response, "application/json");
  response.send(status, json.take());
}

/// How long the callback that runs has taken; zero if the loop waits.
std::int64_t running_ns(Monitor& monitor, const Monitor::Reading& reading) noexcept {
  if (reading.running_since_ns == 0) return 0;
  return std::max<std::int64_t>(monitor.clock_ns() - reading.running_since_ns, 0);
}

void append_loop(Json& json, const ObservedLoop& loop) {
  json.begin_object().member("name", loop.name());
  if (const auto monitor = loop.monitor(); monitor != nullptr) {
    const Monitor::Reading reading = monitor->read();
    const LoopStats& stats = reading.stats;
    json.member("iterations", stats.iterations)
        .member("waits", stats.waits)
        .member("callbacks", stats.callbacks)
        .member("posted", stats.posted)
        .member("posted_waiting", reading.posted_waiting)
        .member("system_calls", stats.system_calls)
        .member("wakeups", stats.wakeups)
        .member("wait_seconds", seconds(stats.wait_time))
        .member("callback_seconds", seconds(stats.callback_time))
        .member("lag_max_seconds", seconds(stats.lag_max))
        .member("timers", stats.timers)
        .member("pending", stats.pending)
        .member("references", stats.references)
        .member("stalls", reading.stalls);
    json.key("lags").begin_array();
    for (const std::uint64_t count : reading.lags) json.value(count);
    json.end_array();
    const std::int64_t ns = running_ns(*monitor, reading);
    json.member("running_seconds", seconds(ns));
    json.member("running", ns > 0 ? text_of(reading.running) : std::string());
  }
  json.end_object();
}

void send_loops(const State& state, Response& response) {
  Json json;
  json.begin_object();
  json.member("title", state.options.title);
  json.key("lag_bounds").begin_array();
  for (const std::int64_t bound : Monitor::lag_bounds_ns) json.value(seconds(bound));
  json.end_array();
  json.key("loops").begin_array();
  for (const auto& loop : state.loops()) append_loop(json, *loop);
  json.end_array().end_object();
  send_json(response, json);
}

struct Totals {
  std::uint64_t calls = 0;
  std::int64_t total_ns = 0;
  std::int64_t longest_ns = 0;
};

/// Of all loops; a line of a header may have several entries of one loop.
void send_callbacks(const State& state, Response& response) {
  std::map<std::string, Totals> places;
  for (const auto& loop : state.loops()) {
    const auto monitor = loop->monitor();
    if (monitor == nullptr) continue;
    for (const auto& times : monitor->callbacks()) {
      Totals& totals = places[text_of(times.place)];
      totals.calls += times.calls;
      totals.total_ns += times.total_ns;
      totals.longest_ns = std::max(totals.longest_ns, times.longest_ns);
    }
  }
  std::vector<std::pair<std::string, Totals>> rows(places.begin(), places.end());
  std::ranges::sort(rows, std::greater<>(), [](const auto& row) { return row.second.total_ns; });
  if (rows.size() > rows_max) rows.resize(rows_max);
  Json json;
  json.begin_object().key("callbacks").begin_array();
  for (const auto& [place, totals] : rows) {
    json.begin_object()
        .member("place", place)
        .member("calls", totals.calls)
        .member("total_seconds", seconds(totals.total_ns))
        .member("longest_seconds", seconds(totals.longest_ns))
        .end_object();
  }
  json.end_array().end_object();
  send_json(response, json);
}

void append_socket(Json& json, const SocketRow& row) {
  json.begin_object()
      .member("fd", row.fd)
      .member("loop", row.loop)
      .member("type", row.type)
      .member("state", row.state)
      .member("awaits", row.awaits)
      .member("peer", row.peer)
      .member("local", row.local)
      .member("idle_ms", row.idle_ms)
      .member("unread_bytes", row.unread_bytes)
      .member("unsent_bytes", row.unsent_bytes)
      .member("rtt_us", row.rtt_us)
      .member("backlog", row.backlog)
      .member("place", row.place)
      .end_object();
}

void append_task(Json& json, const TaskRow& row) {
  json.begin_object()
      .member("loop", row.loop)
      .member("depth", row.depth)
      .member("spawned_at", row.spawned_at)
      .member("awaits", row.awaits)
      .member("awaits_at", row.awaits_at)
      .member("fd", row.fd)
      .member("waited_seconds", seconds(row.waited_ns))
      .end_object();
}

/// Begins the object of a list. Its rows follow.
void begin_list(Json& json, const auto& list, std::size_t offset) {
  json.begin_object()
      .member("total", list.total)
      .member("matching", list.rows.size())
      .member("offset", offset)
      .member("is_complete", list.is_complete);
  json.key("silent_loops").begin_array();
  for (const std::string& name : list.silent_loops) json.value(name);
  json.end_array();
}

/// Empty if the request was rejected.
std::optional<SocketQuery> query_of(Request& request) {
  SocketQuery query;
  query.text = request.query_parameter("q").value_or("");
  query.sort = request.query_parameter("sort").value_or("fd");
  query.is_descending = request.query_parameter("order") == "desc";
  const auto offset = request.query_parameter_as<std::uint32_t>("offset");
  const auto limit = request.query_parameter_as<std::uint32_t>("limit");
  if (!offset || !limit) return std::nullopt;
  query.offset = offset->value_or(0);
  query.limit = std::min<std::size_t>(limit->value_or(100), rows_max);
  return query;
}

Task<> send_connections(StatePointer state, Request& request, Response& response) {
  const std::optional<SocketQuery> query = query_of(request);
  if (!query) co_return;
  Task<SocketList> listing = list_sockets(state->loops(), state->options.patience,
                                          state->options.connections_max, query->text);
  const SocketList list = co_await std::move(listing);
  Json json;
  begin_list(json, list, query->offset);
  json.key("connections").begin_array();
  for (const SocketRow* row : select_rows(list.rows, *query)) append_socket(json, *row);
  json.end_array().end_object();
  send_json(response, json);
}

Task<> send_tasks(StatePointer state, Request& request, Response& response) {
  const std::optional<SocketQuery> query = query_of(request);
  if (!query) co_return;
  Task<TaskRows> listing =
      list_tasks(state->loops(), state->options.patience, state->options.tasks_max, query->text);
  TaskRows list = co_await std::move(listing);
  std::vector<TaskRow>& rows = list.rows;
  const auto begin = rows.begin() + std::ptrdiff_t(std::min(query->offset, rows.size()));
  const auto end = begin + std::min(std::ptrdiff_t(query->limit), rows.end() - begin);
  if (query->sort == "waited")
    std::ranges::partial_sort(rows, end, std::greater<>(), &TaskRow::waited_ns);
  Json json;
  begin_list(json, list, query->offset);
  json.key("tasks").begin_array();
  for (auto row = begin; row != end; ++row) append_task(json, *row);
  json.end_array().end_object();
  send_json(response, json);
}

void send_workers(Response& response) {
  const std::array<std::pair<const char*, const WorkerPool*>, 3> pools = {{
      {"shared", &WorkerPool::shared()},
      {"files", &WorkerPool::files()},
      {"names", &WorkerPool::names()},
  }};
  Json json;
  json.begin_object().key("pools").begin_array();
  for (const auto& [name, pool] : pools) {
    const WorkerPoolStats stats = pool->stats();
    json.begin_object()
        .member("name", name)
        .member("threads", stats.threads)
        .member("threads_max", pool->threads())
        .member("running", stats.running)
        .member("queued", stats.queued)
        .member("queued_max", pool->queued_max())
        .member("completed", stats.completed)
        .member("refused", stats.refused)
        .end_object();
  }
  json.end_array().end_object();
  send_json(response, json);
}

void send_health(const State& state, Response& response) {
  Json blocked;
  bool is_blocked = false;
  blocked.begin_array();
  for (const auto& loop : state.loops()) {
    const auto monitor = loop->monitor();
    if (monitor == nullptr) continue;
    const Monitor::Reading reading = monitor->read();
    const std::int64_t ns = running_ns(*monitor, reading);
    if (ns <= state.options.stall_max.count()) continue;
    is_blocked = true;
    blocked.begin_object()
        .member("loop", loop->name())
        .member("running", text_of(reading.running))
        .member("seconds", seconds(ns))
        .end_object();
  }
  blocked.end_array();
  set_fields(response, "application/json");
  const std::string text = std::string(R"({"is_healthy":)") + (is_blocked ? "false" : "true") +
                           R"(,"blocked":)" + blocked.take() + '}';
  response.send(is_blocked ? http::Status::service_unavailable : http::Status::ok, text);
}

void send_ready(const State& state, Response& response) {
  const bool drains = state.options.shutdown.stop_requested();
  const bool is_ready = state.is_ready && !drains;
  Json json;
  json.begin_object().member("is_ready", is_ready).member("is_draining", drains).end_object();
  send_json(response, json, is_ready ? http::Status::ok : http::Status::service_unavailable);
}

/// A name that a page of another origin cannot use for this host: see InspectorOptions.
bool is_local_name(std::string_view authority) {
  if (authority.starts_with("[::1]")) return true;
  const std::string_view host = authority.substr(0, authority.find(':'));
  if (host == "localhost") return true;
  const auto address = Endpoint::parse(host, 0);
  return address && is_loopback(*address);
}

Task<> check_access(StatePointer state, Request& request, Response& response,
                    const http::Handler& next) {
  if (state->options.authenticate) {
    Task<> checked = state->options.authenticate(request, response, next);
    if (checked) co_await std::move(checked);
    co_return;
  }
  const auto peer = request.connection().peer_endpoint();
  const bool is_unix = peer && !peer->is_ip();
  const bool is_local =
      is_unix || (peer && is_loopback(*peer) && is_local_name(request.head().authority));
  if (!is_local) {
    response.send_error(http::Status::forbidden,
                        "the inspector answers only this host: see InspectorOptions::authenticate");
    co_return;
  }
  co_await next.run(request, response);
}

http::Handler file_handler(std::string_view contents, std::string_view type) {
  return [contents, type](Request&, Response& response) {
    set_fields(response, type);
    response.send(contents);
  };
}

}  // namespace

http::Router InspectorPages::router(const StatePointer& state) {
  http::Router router;
  router.use([state](Request& request, Response& response, const http::Handler& next) {
    return check_access(state, request, response, next);
  });
  router.get("/", file_handler(page_html, "text/html; charset=utf-8"))
      .get("/page.css", file_handler(page_css, "text/css; charset=utf-8"))
      .get("/page.js", file_handler(page_js, "text/javascript; charset=utf-8"))
      .get("/loops", [state](Request&, Response& response) { send_loops(*state, response); })
      .get("/callbacks",
           [state](Request&, Response& response) { send_callbacks(*state, response); })
      .get("/connections",
           [state](Request& request, Response& response) {
             return send_connections(state, request, response);
           })
      .get("/tasks", [state](Request& request,
                             Response& response) { return send_tasks(state, request, response); })
      .get("/workers", [](Request&, Response& response) { send_workers(response); })
      .get("/health", [state](Request&, Response& response) { send_health(*state, response); })
      .get("/ready", [state](Request&, Response& response) { send_ready(*state, response); });
  if (state->options.collector != nullptr)
    router.get("/metrics", state->options.collector->handler());
  return router;
}

}  // namespace tambour::inspector
