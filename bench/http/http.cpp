#include "http/http.h"

#include "common/options.h"
#include "common/processor.h"
#include "common/temporary_folder.h"
#include "http/client.h"
#include "server/process.h"

namespace bench {
namespace {

struct Parameters {
  int connections = 0;
  int size = 0;
  int pipelined = 0;
  int milliseconds = 0;
};

std::vector<Figure> measure(const ServerProcess& server, const Parameters& how) {
  HttpClients clients(server.port(), how.connections, how.pipelined, how.size);
  clients.run(how.milliseconds / 5e3);
  const auto before = server.cpu_ns();
  const double count = double(clients.run(how.milliseconds / 1e3));
  if (count == 0) fail("nothing was completed during the measurement");
  const double cpu_ns = double(server.cpu_ns() - before);
  return {{"server_cpu_ns", cpu_ns / count}, {"requests_per_s", count / how.milliseconds * 1e3}};
}

}  // namespace

int run_http(int argc, char** argv, Serve serve) {
  pinned_processor();
  int iterations = 1;
  Parameters how;
  CommandLine line("Runs an HTTP server and clients.", iterations);
  line.add_command("get", "requests on connections that stay open");
  line.add("--connections", how.connections, "connections", 1, 10'000);
  line.add("--size", how.size, "bytes of a response's body", 1, 1 << 28);
  line.add("--pipelined", how.pipelined, "requests that are sent at once", 1, 100);
  line.add("--milliseconds", how.milliseconds, "length of a measurement", 10, 20'000);
  line.parse_or_exit(argc, argv);

  const TemporaryFolder folder;
  Report report;
  SubjectInfo info;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    feed_watchdog();
    ServerOptions options;
    options.folder = folder.path();
    options.answer_bytes = how.size;
    const ServerProcess server(serve, options);
    server.wait_until_it_listens();
    report.add(measure(server, how));
    info = server.info();
  }
  report.print(info);
  return 0;
}

}  // namespace bench
