// Runs the client of a subject and reports its processor time.
#include "clients/clients.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <string>

#include "clients/server_program.h"
#include "common/options.h"
#include "common/processor.h"

namespace bench {
namespace {

/// How often this process has waited: a wait ends with a switch to it, which costs processor time.
/// A reply that arrives before the wait saves that.
long waits_until_now() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_nvcsw;
}

}  // namespace

int run_clients(int argc, char** argv, const SubjectInfo& info,
                const std::map<Client, OpenClient>& clients) {
  pinned_processor();
  int iterations = 1, client = 0, in_flight = 0, operations = 0;
  CommandLine line("Performs operations of a client library.", iterations);
  line.add("--client", client, "the client",
           {{"redis", int(Client::redis)},
            {"postgresql", int(Client::postgresql)},
            {"mariadb", int(Client::mariadb)},
            {"mosquitto", int(Client::mosquitto)},
            {"curl", int(Client::curl)}});
  line.add("--in-flight", in_flight, "operations at the same time", 1, 100);
  line.add("--operations", operations, "operations of a run", 1, 10'000'000);
  line.parse_or_exit(argc, argv);
  const auto chosen = clients.find(static_cast<Client>(client));
  if (chosen == clients.end()) fail("this subject has no such client");

  feed_watchdog();
  const ServerProgram server(chosen->first);
  Report report;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    feed_watchdog();
    const auto session = chosen->second({server.address(), in_flight});
    const auto run = [&](int count) {
      Operations all(count);
      session->run(all);
      if (!all.is_finished()) fail("the loop has ended before all operations have");
    };
    run(operations / 5 + 1);
    const long waits_before = waits_until_now();
    const auto begin = own_cpu_ns();
    run(operations);
    const double used = double(own_cpu_ns() - begin);
    report.add(std::array<Figure, 5>{{{"operation_ns", used / operations},
                                      {"operations_per_cpu_s", operations / (used / 1e9)},
                                      {"waits", double(waits_until_now() - waits_before)},
                                      {"operations", double(operations + operations / 5 + 1)},
                                      {"process", double(getpid())}}});
  }
  report.print(info);
  return 0;
}

}  // namespace bench
