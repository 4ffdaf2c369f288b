#include "http/http.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <utility>

#include "common/network.h"
#include "common/options.h"
#include "common/processor.h"
#include "common/temporary_folder.h"
#include "http/arena.h"
#include "http/client.h"
#include "http/h2load.h"
#include "http/scrapes.h"
#include "http/urgent.h"
#include "server/process.h"
#ifdef BENCH_TLS
#include "tls/certificate.h"
#endif

namespace bench {
namespace {

enum Kind : int { text, json, upload, file, tls };

enum Profile : int { text_profile, baseline, static_profile, json_profile, upload_profile };

struct Parameters {
  int kind = text;
  int profile = text_profile;
  int arena = 0;  ///< An ArenaProfile.
  bool http_2 = false;
  bool tls = false;
  int streams = 1;
  int downloads = 1;
  int probes = 1;
  int connections = 0;
  int size = 0;
  int pipelined = 1;
  int rate = 0;  ///< 0: as fast as the server answers.
  int requests = 0;
  int scrapes = 1000;
  int scrape_rate = 10;
  int burst = 1;
  int milliseconds = 0;
  std::uint16_t metrics_port = 0;
};

HttpWork work_of(const Parameters& parameters) {
  switch (parameters.kind) {
    case json:
      return {.target = json_target};
    case upload:
      return {.method = "POST",
              .target = upload_target,
              .body = std::string(std::size_t(parameters.size), 'u')};
    case file:
      return {.target = static_target, .response_bytes = parameters.size};
    default:
      return {.target = http_target, .response_bytes = parameters.size};
  }
}

HttpClients clients_of(const ServerProcess& server, const Parameters& parameters,
                       bool spins = true) {
  return {server.port(),
          {.connections = parameters.connections,
           .pipelined = parameters.pipelined,
           .tls = parameters.tls,
           .spins = spins},
          {work_of(parameters)}};
}

std::vector<Figure> latency(HttpClients& clients, const Parameters& parameters) {
  static_cast<void>(clients.run_at_rate(parameters.rate, parameters.milliseconds / 5e3));
  auto took = clients.run_at_rate(parameters.rate, parameters.milliseconds / 1e3);
  if (took.empty()) fail("nothing was completed during the measurement");
  std::ranges::sort(took, {}, &HttpLatency::took_ns);
  const auto at = [&](double part) {
    return double(took[std::size_t(part * double(took.size() - 1))].took_ns);
  };
  return {{"p50_ns", at(0.5)}, {"p99_ns", at(0.99)}, {"p999_ns", at(0.999)}, {"max_ns", at(1)}};
}

std::vector<Figure> measure(const ServerProcess& server, HttpClients& clients, int milliseconds) {
  clients.run(milliseconds / 5e3);
  const auto before = server.cpu_ns();
  const double count = double(clients.run(milliseconds / 1e3));
  if (count == 0) fail("nothing was completed during the measurement");
  const double cpu_ns = double(server.cpu_ns() - before) / count;
  return {{"server_cpu_ns", cpu_ns},
          {"requests_per_core_s", 1e9 / cpu_ns},
          {"requests_per_s", count / milliseconds * 1e3}};
}

std::vector<Figure> measure_profile(const ServerProcess& server, const Parameters& parameters) {
  const ArenaLoad load = arena_load(ArenaProfile(parameters.arena));
  HttpClients clients(server.port(),
                      {.connections = parameters.connections,
                       .pipelined = load.pipelined,
                       .requests_per_connection = load.requests_per_connection},
                      load.works);
  return measure(server, clients, parameters.milliseconds);
}

/// The memory of connections that have made one request, and what is left of it when they are
/// closed.
std::vector<Figure> stay_idle(const ServerProcess& server, Parameters parameters) {
  // Until servers have released what they keep for the next request: Tambour a second later.
  constexpr unsigned settled_us = 1'500'000;
  const int connections = std::exchange(parameters.connections, 16);
  // Excludes memory that a library allocates once, for its first connections.
  clients_of(server, parameters).request_each(parameters.burst);
  usleep(settled_us);
  server.wait_until_idle();
  const double before = double(server.pss_bytes());
  parameters.connections = connections;
  double open = 0;
  {
    HttpClients clients = clients_of(server, parameters);
    clients.request_each(parameters.burst);
    feed_watchdog();
    usleep(settled_us);
    server.wait_until_idle();
    open = double(server.pss_bytes());
  }
  usleep(settled_us);
  server.wait_until_idle();
  return {{"connection_bytes", (open - before) / connections},
          // At least a page, so that ratios are finite.
          {"kept_bytes", std::max(4096.0, double(server.pss_bytes()) - before)}};
}

/// For a program such as valgrind that counts what the server executes.
std::vector<Figure> count(const ServerProcess& server, const Parameters& parameters) {
  HttpClients clients = clients_of(server, parameters);
  clients.run_count(parameters.requests);
  server.wait_until_idle();
  return {{"process", double(server.process())}, {"events", double(parameters.requests)}};
}

std::vector<Figure> measure_http_2(const ServerProcess& server, const std::string& folder,
                                   const Parameters& parameters) {
  Http2Load load{.target = http_target,
                 .tls = parameters.tls,
                 .connections = parameters.connections,
                 .streams = parameters.streams,
                 .upload_file = {},
                 .response_bytes = parameters.size,
                 .milliseconds = parameters.milliseconds};
  if (parameters.profile == static_profile) {
    load.target = static_target;
  } else if (parameters.profile != text_profile) {
    load.response_bytes = 0;
    load.target = parameters.profile == baseline       ? std::string(baseline_target) + "?a=1&b=1"
                  : parameters.profile == json_profile ? json_target
                                                       : upload_target;
  }
  // The static file has the size of the upload.
  if (parameters.profile == upload_profile) load.upload_file = folder + "/files" + static_target;
  return run_h2load(server, load);
}

/// Until the process is killed.
[[noreturn]] void wait_for_clients(const ServerProcess& server, bool tls) {
  std::printf("%s://127.0.0.1:%d%s\n", tls ? "https" : "http", server.port(), http_target);
  std::fflush(stdout);
  while (true) {
    feed_watchdog();
    sleep(1);
  }
}

/// What servers find in their folder.
void prepare(const std::string& folder, const Parameters& parameters) {
  mkdir((folder + "/files").c_str(), 0755);
  mkdir((folder + "/files/static").c_str(), 0755);
  write_arena_files(folder);
  std::ofstream(folder + "/files" + static_target)
      << std::string(std::size_t(parameters.size), 's');
  std::ofstream(folder + "/files" + small_target) << std::string(small_bytes, 's');
#ifdef BENCH_TLS
  if (parameters.tls) write_certificate(folder + "/server.pem");
#endif
}

void add_arena_options(CommandLine& line, Parameters& parameters) {
  line.add_command("arena", "the profiles of HttpArena");
  line.add("--connections", parameters.connections, "connections", 1, 10'000);
  line.add("--milliseconds", parameters.milliseconds, "length of a measurement", 10, 20'000);
  line.add("--profile", parameters.arena, "what is requested",
           {{"baseline", int(ArenaProfile::baseline)},
            {"pipelined", int(ArenaProfile::pipelined)},
            {"limited-conn", int(ArenaProfile::limited_conn)},
            {"json", int(ArenaProfile::json)},
            {"json-comp", int(ArenaProfile::json_comp)},
            {"upload", int(ArenaProfile::upload)},
            {"static", int(ArenaProfile::static_files)}});
}

void add_options(CommandLine& line, Parameters& parameters) {
  const auto add_size = [&] {
    line.add("--size", parameters.size, "bytes of a response's body, or of an upload", 1, 1 << 28);
  };
  const auto add_common = [&] {
    line.add("--connections", parameters.connections, "connections", 1, 10'000);
    add_size();
    line.add("--milliseconds", parameters.milliseconds, "length of a measurement", 10, 20'000);
  };
  const auto add_tls = [&] { line.add_flag("--tls", parameters.tls, "over TLS"); };
  line.add_command("load", "requests on connections that stay open");
  add_common();
  line.add("--kind", parameters.kind, "what is requested",
           {{"text", text}, {"json", json}, {"upload", upload}, {"file", file}, {"tls", tls}});
  line.add("--pipelined", parameters.pipelined, "requests that are sent at once", 1, 100);
  line.add_command("latency", "requests at a fixed rate");
  add_common();
  line.add("--rate", parameters.rate, "requests per second", 1, 10'000'000);
  add_arena_options(line, parameters);
  line.add_command("idle", "connections that have made one request");
  line.add("--connections", parameters.connections, "connections", 1, 10'000);
  line.add("--burst", parameters.burst, "requests at the same time", 1, 10'000);
  add_size();
  line.add_command("count", "a number of requests, for a program that counts instructions");
  line.add("--connections", parameters.connections, "connections", 1, 10'000);
  line.add("--requests", parameters.requests, "the number of requests", 1, 1'000'000);
  line.add("--pipelined", parameters.pipelined, "requests that are sent at once", 1, 100);
  add_size();
  line.add_command("http2", "requests over HTTP/2, made by h2load");
  add_common();
  add_tls();
  line.add("--profile", parameters.profile, "what is requested",
           {{"text", text_profile},
            {"baseline", baseline},
            {"static", static_profile},
            {"json", json_profile},
            {"upload", upload_profile}});
  line.add("--streams", parameters.streams, "concurrent requests of a connection", 1, 100);
  line.add_command("urgent", "urgent requests over HTTP/2 during downloads");
  add_size();
  add_tls();
  line.add("--downloads", parameters.downloads, "downloads that are in progress", 1, 50);
  line.add("--probes", parameters.probes, "urgent requests, one after the other", 1, 1000);
  line.add_command("scrapes", "requests during scrapes of the metrics, for Tambour");
  line.add("--connections", parameters.connections, "connections", 1, 10'000);
  add_size();
  line.add("--rate", parameters.rate, "requests per second; 0: as many as possible", 0, 10'000'000);
  line.add_optional("--scrapes", parameters.scrapes, "scrapes in all; by default 1,000", 100,
                    1'000'000);
  line.add_optional("--scrape-rate", parameters.scrape_rate,
                    "scrapes per second; by default 10, so that 1,000 take 100 s", 1, 1000);
  line.add_command("serve", "only the server, for other clients");
  add_size();
  add_tls();
  line.add_flag("--http-2", parameters.http_2, "the clients use HTTP/2");
}

std::vector<Figure> measure(const CommandLine& line, const ServerProcess& server,
                            const std::string& folder, const Parameters& parameters) {
  if (line.has_command("http2")) return measure_http_2(server, folder, parameters);
  if (line.has_command("urgent"))
    return measure_urgent(
        server.port(),
        {.tls = parameters.tls, .downloads = parameters.downloads, .probes = parameters.probes});
  if (line.has_command("count")) return count(server, parameters);
  if (line.has_command("arena")) return measure_profile(server, parameters);
  if (line.has_command("idle")) return stay_idle(server, parameters);
  HttpClients clients = clients_of(server, parameters, !line.has_command("scrapes"));
  if (line.has_command("scrapes"))
    return measure_scrapes(server, clients,
                           {.metrics_port = parameters.metrics_port,
                            .scrapes = parameters.scrapes,
                            .per_second = parameters.scrape_rate,
                            .rate = parameters.rate});
  if (parameters.rate > 0) return latency(clients, parameters);
  return measure(server, clients, parameters.milliseconds);
}

}  // namespace

std::string json_text(int bytes) {
  std::string text = "[";
  for (int id = 1000; int(text.size()) < bytes - 50; ++id) {
    if (text.size() > 1) text += ',';
    text.append(R"({"id":)").append(std::to_string(id));
    text.append(R"(,"name":"item )").append(std::to_string(id)).append(R"(","done":false})");
  }
  return text += ']';
}

int run_http(int argc, char** argv, Serve serve) {
  pinned_processor();
  int iterations = 1;
  Parameters parameters;
  CommandLine line("Runs an HTTP server and clients.", iterations);
  add_options(line, parameters);
  line.parse_or_exit(argc, argv);
  parameters.tls = parameters.tls || parameters.kind == tls;
  if (line.has_command("arena")) parameters.size = 2;  // The response of the floor is "ok".
  parameters.http_2 = parameters.http_2 || line.has_command("http2") || line.has_command("urgent");

  const TemporaryFolder folder;
  prepare(folder.path(), parameters);
  Report report;
  SubjectInfo info;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    feed_watchdog();
    ServerOptions options;
    options.folder = folder.path();
    options.answer_bytes = parameters.size;
    options.tls = parameters.tls;
    options.http_2 = parameters.http_2;
    if (line.has_command("scrapes")) options.metrics_port = parameters.metrics_port = free_port();
    const ServerProcess server(serve, options);
    server.wait_until_it_listens();
    if (line.has_command("serve")) wait_for_clients(server, options.tls);
    report.add(measure(line, server, folder.path(), parameters));
    info = server.info();
  }
  report.print(info);
  return 0;
}

}  // namespace bench
