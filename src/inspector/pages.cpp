// The pages of an inspector.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
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
#include "inspector/profiles.h"
#include "inspector/responses.h"
#include "inspector/sockets.h"
#include "inspector/state.h"
#include "inspector/tasks.h"

namespace tambour::inspector {
namespace {

using State = InspectorPages::State;
using StatePointer = std::shared_ptr<State>;
using http::Request;
using http::Response;

constexpr std::string_view views =
    "loops callbacks tasks connections http names metrics workers profiles";

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
    append_lags(json, reading.lags);
    const std::int64_t ns = running_ns(*monitor, reading);
    json.member("running_seconds", seconds(ns));
    json.member("running", ns > 0 ? text_of(reading.running) : std::string());
  }
  json.end_object();
}

void send_loops(const State& state, Response& response) {
  Json json;
  begin_loops(json, state.options.title, views);
  for (const auto& loop : state.loops()) append_loop(json, *loop);
  json.end_array().end_object();
  send_json(response, json);
}

/// Of all loops; a line of a header may have several entries of one loop.
void send_callbacks(const State& state, Response& response) {
  std::map<std::string, CallTotals> places;
  for (const auto& loop : state.loops()) {
    const auto monitor = loop->monitor();
    if (monitor == nullptr) continue;
    for (const auto& times : monitor->callbacks().rows()) {
      places[text_of(times.place)].add(times);
    }
  }
  inspector::send_callbacks(response, places);
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

Task<> send_connections(StatePointer state, Request& request, Response& response) {
  const std::optional<ListQuery> query = query_of(request);
  if (!query) co_return;
  Task<SocketList> listing =
      list_sockets(request.connection().loop(), state->loops(), state->options.patience,
                   state->options.connections_max, *query);
  const SocketList list = co_await std::move(listing);
  Task<> sending = send_sockets(request, response, list, query->offset);
  co_await std::move(sending);
}

Task<> send_tasks(StatePointer state, Request& request, Response& response) {
  const std::optional<ListQuery> query = query_of(request);
  if (!query) co_return;
  EventLoop& loop = request.connection().loop();
  Task<TaskRows> listing =
      list_tasks(loop, state->loops(), state->options.patience, state->options.tasks_max, *query);
  const TaskRows list = co_await std::move(listing);
  Json json;
  begin_list(json, list, query->offset);
  json.key("tasks").begin_array();
  Task<bool> appending = append_rows(loop, json, list.rows, &append_task);
  const bool is_complete = co_await std::move(appending);
  if (!is_complete) co_return;
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
    std::int64_t ns = loop->silence().count();
    std::string running;
    if (const auto monitor = loop->monitor(); ns == 0 && monitor != nullptr) {
      const Monitor::Reading reading = monitor->read();
      ns = running_ns(*monitor, reading);
      running = text_of(reading.running);
    }
    if (ns <= state.options.stall_max.count()) continue;
    is_blocked = true;
    blocked.begin_object()
        .member("loop", loop->name())
        .member("running", running)
        .member("seconds", seconds(ns))
        .end_object();
  }
  blocked.end_array();
  inspector::send_health(response, is_blocked, blocked);
}

void send_ready(const State& state, Response& response) {
  const bool drains = state.options.shutdown.stop_requested();
  inspector::send_ready(response, state.is_ready && !drains, drains);
}

}  // namespace

http::Router InspectorPages::router(const StatePointer& state) {
  http::Router router;
  router.use(access_check(state->options.authenticate));
  add_page(router);
  router.get("/loops", [state](Request&, Response& response) { send_loops(*state, response); })
      .get("/callbacks",
           [state](Request&, Response& response) { send_callbacks(*state, response); })
      .get("/connections",
           [state](Request& request, Response& response) {
             return send_connections(state, request, response);
           })
      .get("/tasks", [state](Request& request,
                             Response& response) { return send_tasks(state, request, response); })
      .get("/profiles", [](Request&, Response& response) { send_profiles(response); })
      .get("/profiles/cpu", &send_cpu_profile)
      .get("/profiles/heap", &send_heap_profile)
      .get("/workers", [](Request&, Response& response) { send_workers(response); })
      .get("/health", [state](Request&, Response& response) { send_health(*state, response); })
      .get("/ready", [state](Request&, Response& response) { send_ready(*state, response); });
  if (state->options.collector != nullptr)
    router.get("/metrics", state->options.collector->handler());
  return router;
}

}  // namespace tambour::inspector
