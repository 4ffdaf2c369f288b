// The command line: the workload and its options.
#include "server/server.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "common/options.h"
#include "common/processor.h"
#include "server/process.h"
#include "server/workloads/workload.h"

namespace bench {
int run_server(int argc, char** argv, Serve serve) {
  pinned_processor();
  std::vector<std::unique_ptr<Workload>> workloads;
  workloads.push_back(make_throughput());
  workloads.push_back(make_count());
  workloads.push_back(make_latency());
  workloads.push_back(make_churn());
  workloads.push_back(make_idle());
  workloads.push_back(make_fanout());

  int iterations = 1;
  CommandLine line("Runs a TCP server and clients with a workload.", iterations);
  for (auto& workload : workloads) {
    line.add_command(workload->name(), workload->description());
    for (const WorkloadOption& option : workload->options()) {
      if (option.is_optional)
        line.add_optional(option.name, *option.value, option.help, option.low, option.high);
      else if (option.words.empty())
        line.add(option.name, *option.value, option.help, option.low, option.high);
      else
        line.add(option.name, *option.value, option.help, option.words);
    }
  }
  line.parse_or_exit(argc, argv);
  const auto chosen = std::ranges::find_if(
      workloads, [&](auto& workload) { return line.has_command(workload->name()); });

  Report report;
  SubjectInfo info;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    feed_watchdog();
    ServerProcess server(serve, (*chosen)->server_options());
    report.add((*chosen)->run(server));
    info = server.info();
  }
  report.print(info);
  return 0;
}

}  // namespace bench
