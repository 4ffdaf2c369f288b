// Collector: registers the statistics of each kind of object, and refreshes them.
#include <tambour/inspector/collector.h>

#include <array>
#include <utility>

#include <tambour/http/metrics.h>

#include "inspector/collector_state.h"

namespace tambour::inspector {
namespace {

struct ServerStats {
  std::size_t connections = 0;
  std::size_t connections_max = 0;
  std::uint64_t accepted = 0;
  std::uint64_t exceptions = 0;
  std::uint64_t accept_pauses = 0;
};

template <class Server>
ServerStats stats_of(const Server& server) noexcept {
  return {.connections = server.connections(),
          .connections_max = server.connections_max(),
          .accepted = server.accepted(),
          .exceptions = server.handler_exceptions(),
          .accept_pauses = server.accept_pauses()};
}

constexpr std::array server_rows = {
    Row<ServerStats>{"tambour_server_connections", "Connections that are open.",
                     &value_of<&ServerStats::connections>},
    Row<ServerStats>{"tambour_server_connections_max", "The limit of connections.",
                     &value_of<&ServerStats::connections_max>},
    Row<ServerStats>{"tambour_server_accepted_total", "Connections that were accepted.",
                     &value_of<&ServerStats::accepted>},
    Row<ServerStats>{"tambour_server_exceptions_total",
                     "Exceptions of handlers and callbacks, each of which ended its connection.",
                     &value_of<&ServerStats::exceptions>},
    Row<ServerStats>{"tambour_server_accept_pauses_total",
                     "How often accepting was paused: the server is full, or accept() has failed.",
                     &value_of<&ServerStats::accept_pauses>},
};

using http::Http2Stats;
constexpr std::array http_2_rows = {
    Row<Http2Stats>{"tambour_http2_connections_total", "Connections that have spoken HTTP/2.",
                    &value_of<&Http2Stats::connections>},
    Row<Http2Stats>{"tambour_http2_buffered_bytes", "Bytes that the connections buffer.",
                    &value_of<&Http2Stats::buffered_bytes>},
    Row<Http2Stats>{"tambour_http2_refused_streams_total", "Streams beyond streams_max.",
                    &value_of<&Http2Stats::refused_streams>},
    Row<Http2Stats>{"tambour_http2_overloaded_streams_total", "Streams beyond server_bytes_max.",
                    &value_of<&Http2Stats::overloaded_streams>},
    Row<Http2Stats>{"tambour_http2_stalled_streams_total",
                    "Streams that were reset, because the client did not read.",
                    &value_of<&Http2Stats::stalled_streams>},
    Row<Http2Stats>{"tambour_http2_reset_floods_total", "Connections ended by resets_max.",
                    &value_of<&Http2Stats::reset_floods>},
    Row<Http2Stats>{"tambour_http2_ping_timeouts_total", "Connections closed by ping_timeout.",
                    &value_of<&Http2Stats::ping_timeouts>},
    Row<Http2Stats>{"tambour_http2_protocol_errors_total",
                    "Connections ended because the client broke a rule.",
                    &value_of<&Http2Stats::protocol_errors>},
};

constexpr std::array tls_rows = {
    Row<tls::Stats>{"tambour_tls_handshakes_total", "Handshakes that were completed.",
                    &value_of<&tls::Stats::handshakes>},
    Row<tls::Stats>{"tambour_tls_resumed_handshakes_total",
                    "Handshakes that continued an earlier session.",
                    &value_of<&tls::Stats::resumed>},
    Row<tls::Stats>{"tambour_tls_failed_handshakes_total",
                    "Handshakes that failed, timeouts included.", &value_of<&tls::Stats::failed>},
    Row<tls::Stats>{"tambour_tls_displaced_handshakes_total",
                    "Handshakes that were closed because there were too many.",
                    &value_of<&tls::Stats::displaced>},
    Row<tls::Stats>{"tambour_tls_reloads_total", "How often changed certificates were loaded.",
                    &value_of<&tls::Stats::reloads>},
    Row<tls::Stats>{"tambour_tls_failed_reloads_total",
                    "How often changed certificates could not be loaded.",
                    &value_of<&tls::Stats::failed_reloads>},
};

constexpr std::array worker_rows = {
    Row<WorkerPoolStats>{"tambour_workers_threads", "Threads that were started.",
                         &value_of<&WorkerPoolStats::threads>},
    Row<WorkerPoolStats>{"tambour_workers_running", "Calls that a thread runs.",
                         &value_of<&WorkerPoolStats::running>},
    Row<WorkerPoolStats>{"tambour_workers_queued", "Calls that wait for a thread.",
                         &value_of<&WorkerPoolStats::queued>},
    Row<WorkerPoolStats>{"tambour_workers_completed_total", "Calls that have returned.",
                         &value_of<&WorkerPoolStats::completed>},
    Row<WorkerPoolStats>{"tambour_workers_refused_total",
                         "Calls that failed because the queue was full.",
                         &value_of<&WorkerPoolStats::refused>},
};

using dns::ResolverStats;
constexpr std::array resolver_rows = {
    Row<ResolverStats>{"tambour_dns_lookups_total", "Lookups of one name and type.",
                       &value_of<&ResolverStats::lookups>},
    Row<ResolverStats>{"tambour_dns_cache_hits_total", "Lookups that the cache answered.",
                       &value_of<&ResolverStats::cache_hits>},
    Row<ResolverStats>{"tambour_dns_coalesced_lookups_total",
                       "Lookups that joined a query in flight.",
                       &value_of<&ResolverStats::coalesced>},
    Row<ResolverStats>{"tambour_dns_udp_queries_total", "Queries that were sent over UDP.",
                       &value_of<&ResolverStats::udp_sent>},
    Row<ResolverStats>{"tambour_dns_tcp_queries_total", "Queries that were sent over TCP or TLS.",
                       &value_of<&ResolverStats::tcp_sent>},
    Row<ResolverStats>{"tambour_dns_retries_total", "Queries that were repeated.",
                       &value_of<&ResolverStats::retries>},
    Row<ResolverStats>{"tambour_dns_rejected_responses_total",
                       "Responses that matched no query, or were malformed.",
                       &value_of<&ResolverStats::rejected>},
    Row<ResolverStats>{"tambour_dns_fallbacks_total", "Lookups passed to another resolver.",
                       &value_of<&ResolverStats::fallbacks>},
    Row<ResolverStats>{"tambour_dns_cache_bytes", "Memory of the cache.",
                       &value_of<&ResolverStats::cache_bytes>},
    Row<ResolverStats>{"tambour_dns_queries_in_flight", "Queries that wait for a response.",
                       &value_of<&ResolverStats::in_flight>},
};

using DnsServerStats = dns::ServerStats;
constexpr std::array dns_server_rows = {
    Row<DnsServerStats>{"tambour_dns_server_udp_queries_total", "Queries that came over UDP.",
                        &value_of<&DnsServerStats::udp_queries>},
    Row<DnsServerStats>{"tambour_dns_server_tcp_queries_total", "Queries that came over TCP.",
                        &value_of<&DnsServerStats::tcp_queries>},
    Row<DnsServerStats>{"tambour_dns_server_tcp_connections_total",
                        "Connections that were accepted.",
                        &value_of<&DnsServerStats::tcp_connections>},
    Row<DnsServerStats>{"tambour_dns_server_malformed_queries_total",
                        "Messages that were dropped or answered with FORMERR.",
                        &value_of<&DnsServerStats::malformed>},
    Row<DnsServerStats>{"tambour_dns_server_truncated_responses_total",
                        "Responses over UDP that did not fit.",
                        &value_of<&DnsServerStats::truncated>},
    Row<DnsServerStats>{"tambour_dns_server_rate_limited_queries_total",
                        "Queries that the rate limit dropped, or answered without records.",
                        &value_of<&DnsServerStats::rate_limited>},
    Row<DnsServerStats>{"tambour_dns_server_overloaded_queries_total",
                        "Queries that were dropped because of tasks_max.",
                        &value_of<&DnsServerStats::overloaded>},
    Row<DnsServerStats>{"tambour_dns_server_exceptions_total", "Exceptions of handlers.",
                        &value_of<&DnsServerStats::handler_exceptions>},
};

struct ClientStats {
  std::size_t connections = 0;
  std::size_t idle = 0;
  std::size_t waiting = 0;
};
constexpr std::array client_rows = {
    Row<ClientStats>{"tambour_http_client_connections", "Connections, those being opened too.",
                     &value_of<&ClientStats::connections>},
    Row<ClientStats>{"tambour_http_client_idle_connections", "Connections without a request.",
                     &value_of<&ClientStats::idle>},
    Row<ClientStats>{"tambour_http_client_waiting_requests", "Requests that wait for a connection.",
                     &value_of<&ClientStats::waiting>},
};

using http::ReverseProxyStats;
constexpr std::array proxy_rows = {
    Row<ReverseProxyStats>{"tambour_proxy_active_requests", "Requests that are passed on.",
                           &value_of<&ReverseProxyStats::active>},
    Row<ReverseProxyStats>{"tambour_proxy_requests_total", "Requests of clients.",
                           &value_of<&ReverseProxyStats::requests>},
    Row<ReverseProxyStats>{"tambour_proxy_failures_total",
                           "Requests that the proxy answered with an error of its own.",
                           &value_of<&ReverseProxyStats::failures>},
    Row<ReverseProxyStats>{"tambour_proxy_retries_total",
                           "Requests that were sent to another server after a failure.",
                           &value_of<&ReverseProxyStats::retries>},
    Row<ReverseProxyStats>{"tambour_proxy_refused_retries_total",
                           "Retries that the budget did not allow.",
                           &value_of<&ReverseProxyStats::retries_refused>},
    Row<ReverseProxyStats>{"tambour_proxy_refused_requests_total",
                           "Requests that found no free connection in time.",
                           &value_of<&ReverseProxyStats::queue_refused>},
    Row<ReverseProxyStats>{"tambour_proxy_client_aborts_total",
                           "Clients that disconnected before the response.",
                           &value_of<&ReverseProxyStats::client_aborts>},
    Row<ReverseProxyStats>{"tambour_proxy_truncated_responses_total",
                           "Responses that were cut within their body.",
                           &value_of<&ReverseProxyStats::truncated>},
    Row<ReverseProxyStats>{"tambour_proxy_tunnels_total", "Upgraded connections.",
                           &value_of<&ReverseProxyStats::tunnels>},
};

using http::WebSocketTopicStats;
constexpr std::array topic_rows = {
    Row<WebSocketTopicStats>{"tambour_topic_published_total", "Messages that were published.",
                             &value_of<&WebSocketTopicStats::published>},
    Row<WebSocketTopicStats>{"tambour_topic_sent_total", "Messages to single subscribers.",
                             &value_of<&WebSocketTopicStats::sent>},
    Row<WebSocketTopicStats>{"tambour_topic_dropped_total",
                             "Messages that slow subscribers did not get.",
                             &value_of<&WebSocketTopicStats::dropped>},
    Row<WebSocketTopicStats>{"tambour_topic_closed_subscribers_total",
                             "Subscribers that were closed because they read too slowly.",
                             &value_of<&WebSocketTopicStats::closed>},
};

}  // namespace

Collector::Collector(metrics::Registry& registry) : state_(std::make_shared<State>(registry)) {}

Collector::~Collector() { state_->clear(); }

void Collector::add(LoopGroup& loops, const std::string& name) {
  for (const auto& loop : observe(loops, name)) state_->add_loop(loop);
}

void Collector::add(EventLoop& loop, const std::string& name) {
  state_->add_loop(observe(loop, name));
}

void Collector::add(const StreamServerGroupBase& server, const std::string& name) {
  state_->add_rows(server_rows, {{"server", name}}, [&server] { return stats_of(server); });
  if (server.tls()) add(server.tls(), name);
}

void Collector::add(const http::ServerGroup& server, const std::string& name) {
  add(static_cast<const StreamServerGroupBase&>(server), name);
  state_->add_rows(http_2_rows, {{"server", name}}, [&server] { return server.http_2_stats(); });
}

void Collector::add(EventLoop& loop, const StreamServerBase& server, const std::string& name) {
  state_->add_sampled(loop, server_rows, {{"server", name}},
                      [&server] { return stats_of(server); });
  if (server.tls()) add(server.tls(), name);
}

void Collector::add(EventLoop& loop, const http::Server& server, const std::string& name) {
  add(loop, static_cast<const StreamServerBase&>(server), name);
  state_->add_rows(http_2_rows, {{"server", name}}, [&server] { return server.http_2_stats(); });
}

void Collector::add(const tls::ServerContext& context, const std::string& name) {
  state_->add_rows(tls_rows, {{"context", name}}, [context] { return context.stats(); });
}

void Collector::add(const tls::ClientContext& context, const std::string& name) {
  state_->add_rows(tls_rows, {{"context", name}}, [context] { return context.stats(); });
}

void Collector::add(const WorkerPool& pool, const std::string& name) {
  state_->add_rows(worker_rows, {{"pool", name}}, [&pool] { return pool.stats(); });
}

void Collector::add(const http::WebSocketTopic& topic, const std::string& name) {
  const metrics::Labels labels = {{"topic", name}};
  state_->add("tambour_topic_subscribers", "Subscribers.", labels,
              [&topic] { return static_cast<double>(topic.size()); });
  state_->add_rows(topic_rows, labels, [&topic] { return topic.stats(); });
}

void Collector::add(const http::WebSocketTopics& topics, const std::string& name) {
  const metrics::Labels labels = {{"topic", name}};
  state_->add("tambour_topics", "Topics that have subscribers.", labels,
              [&topics] { return static_cast<double>(topics.size()); });
  state_->add_rows(topic_rows, labels, [&topics] { return topics.stats(); });
}

void Collector::add(EventLoop& loop, const dns::Resolver& resolver, const std::string& name) {
  state_->add_sampled(loop, resolver_rows, {{"resolver", name}},
                      [&resolver] { return resolver.stats(); });
  state_->add_name_servers(loop, resolver, name);
}

void Collector::add(EventLoop& loop, const dns::Server& server, const std::string& name) {
  state_->add_sampled(loop, dns_server_rows, {{"server", name}},
                      [&server] { return server.stats(); });
}

void Collector::add(EventLoop& loop, const http::Client& client, const std::string& name) {
  state_->add_sampled(loop, client_rows, {{"client", name}}, [&client] {
    return ClientStats{.connections = client.connections(),
                       .idle = client.idle_connections(),
                       .waiting = client.waiting_requests()};
  });
}

void Collector::add(EventLoop& loop, const http::ReverseProxy& proxy, const std::string& name) {
  state_->add_sampled(loop, proxy_rows, {{"proxy", name}},
                      [&proxy] { return ReverseProxyStats(proxy.stats()); });
}

Task<> Collector::refresh(Duration patience) { return State::refresh(state_, patience); }

http::Handler Collector::handler() {
  auto answer = [](std::shared_ptr<State> state, http::Handler send, http::Request& request,
                   http::Response& response) -> Task<> {
    co_await State::refresh(std::move(state), std::chrono::seconds(1));
    co_await send.run(request, response);
  };
  return [answer, state = state_, send = http::metrics_handler(state_->registry())](
             http::Request& request, http::Response& response) {
    if (!state->has_samples()) return send.run(request, response);
    return answer(state, send, request, response);
  };
}

}  // namespace tambour::inspector
