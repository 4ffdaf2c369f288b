// The harness: an upstream, the proxy, and clients.
#include "http_proxy/http_proxy.h"

#include <unistd.h>

#include <cstdio>

#include "common/options.h"
#include "common/processor.h"
#include "common/temporary_folder.h"
#include "http/client.h"
#include "http/http.h"
#include "http_proxy/upstream.h"
#include "server/process.h"

namespace bench {
namespace {

struct Parameters {
  int connections = 0;
  int size = 0;
  int milliseconds = 0;
};

std::vector<Figure> measure(const ServerProcess& proxy, const Parameters& parameters) {
  HttpClients clients(proxy.port(), {.connections = parameters.connections},
                      {{.target = http_target, .response_bytes = parameters.size}});
  clients.run(parameters.milliseconds / 5e3);
  const auto before = proxy.cpu_ns();
  const double count = double(clients.run(parameters.milliseconds / 1e3));
  if (count == 0) fail("nothing was completed during the measurement");
  const double cpu_ns = double(proxy.cpu_ns() - before);
  return {{"server_cpu_ns", cpu_ns / count},
          {"requests_per_s", count / parameters.milliseconds * 1e3}};
}

/// Until the process is killed.
[[noreturn]] void wait_for_clients(const ServerProcess& proxy) {
  std::printf("http://127.0.0.1:%d%s\n", proxy.port(), http_target);
  std::fflush(stdout);
  while (true) {
    feed_watchdog();
    sleep(1);
  }
}

}  // namespace

int run_http_proxy(int argc, char** argv, Serve serve) {
  pinned_processor();
  int iterations = 1;
  Parameters parameters;
  CommandLine line("Runs a reverse proxy, clients and an upstream.", iterations);
  line.add_command("load", "requests on connections that stay open");
  line.add("--connections", parameters.connections, "connections", 1, 10'000);
  line.add("--size", parameters.size, "bytes of a response's body", 1, 1 << 28);
  line.add("--milliseconds", parameters.milliseconds, "length of a measurement", 10, 20'000);
  line.add_command("serve", "only the proxy and its upstream, for other clients");
  line.add("--size", parameters.size, "bytes of a response's body", 1, 1 << 28);
  line.parse_or_exit(argc, argv);

  const TemporaryFolder folder;
  Report report;
  SubjectInfo info;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    feed_watchdog();
    Upstream upstream(parameters.size);
    ServerOptions options;
    options.folder = folder.path();
    options.upstream_port = upstream.port();
    const ServerProcess proxy(serve, options);
    upstream.start();
    proxy.wait_until_it_listens();
    if (line.has_command("serve")) wait_for_clients(proxy);
    report.add(measure(proxy, parameters));
    info = proxy.info();
  }
  report.print(info);
  return 0;
}

}  // namespace bench
