// Access to the pages of an inspector, and what their answers share.
#include "inspector/responses.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "inspector/page_files.h"
#include "inspector/state.h"

namespace tambour::inspector {
namespace {

using http::Request;
using http::Response;

/// A name that a page of another origin cannot use for this host: see InspectorOptions.
bool is_local_name(std::string_view authority) {
  if (authority.starts_with("[::1]")) return true;
  const std::string_view host = authority.substr(0, authority.find(':'));
  if (host == "localhost") return true;
  const auto address = Endpoint::parse(host, 0);
  return address && is_loopback(*address);
}

Task<> check_peer(Request& request, Response& response, const http::Handler& next) {
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

}  // namespace

http::Middleware access_check(http::Middleware authenticate) {
  if (authenticate) return authenticate;
  return [](Request& request, Response& response, const http::Handler& next) {
    return check_peer(request, response, next);
  };
}

void add_page(http::Router& router) {
  router.get("/", file_handler(page_html, "text/html; charset=utf-8"))
      .get("/page.css", file_handler(page_css, "text/css; charset=utf-8"))
      .get("/page.js", file_handler(page_js, "text/javascript; charset=utf-8"));
}

/// Nothing of the page comes from another origin, and nothing is stored by the browser or a proxy.
void set_fields(Response& response, std::string_view type) {
  auto& fields = response.headers();
  fields.set("Content-Type", type);
  fields.set("Cache-Control", "no-store");
  fields.set("X-Content-Type-Options", "nosniff");
  fields.set("Referrer-Policy", "no-referrer");
  fields.set("Content-Security-Policy",
             "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
}

void send_json(Response& response, Json& json, http::Status status) {
  set_fields(response, "application/json");
  response.send(status, json.take());
}

std::optional<ListQuery> query_of(Request& request) {
  ListQuery query;
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

Task<> send_sockets(Request& request, Response& response, const SocketList& list,
                    std::size_t offset) {
  Json json;
  begin_list(json, list, offset);
  json.key("connections").begin_array();
  Task<bool> appending = append_rows(request.connection().loop(), json, list.rows, &append_socket);
  const bool is_complete = co_await std::move(appending);
  if (!is_complete) co_return;
  json.end_array().end_object();
  send_json(response, json);
}

void send_callbacks(Response& response, const std::map<std::string, CallTotals>& places) {
  std::vector<std::pair<std::string, CallTotals>> rows(places.begin(), places.end());
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

void send_health(Response& response, bool is_blocked, Json& blocked) {
  set_fields(response, "application/json");
  const std::string text = std::string(R"({"is_healthy":)") + (is_blocked ? "false" : "true") +
                           R"(,"blocked":)" + blocked.take() + '}';
  response.send(is_blocked ? http::Status::service_unavailable : http::Status::ok, text);
}

void send_ready(Response& response, bool is_ready, bool is_draining) {
  Json json;
  json.begin_object().member("is_ready", is_ready).member("is_draining", is_draining).end_object();
  send_json(response, json, is_ready ? http::Status::ok : http::Status::service_unavailable);
}

void begin_loops(Json& json, std::string_view title, std::string_view views) {
  json.begin_object();
  json.member("title", title);
  json.member("views", views);
  json.key("lag_bounds").begin_array();
  for (const std::int64_t bound : LagHistogram::bounds_ns) json.value(seconds(bound));
  json.end_array();
  json.key("loops").begin_array();
}

void append_lags(Json& json, const LagHistogram::Counts& lags) {
  json.key("lags").begin_array();
  for (const std::uint64_t count : lags) json.value(count);
  json.end_array();
}

}  // namespace tambour::inspector
