// The command line: the workload and its options.
#include "server/server.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/options.h"
#include "common/processor.h"
#include "server/process.h"
#include "server/workloads/workload.h"

namespace bench {
namespace {

void add_option(CLI::App& app, const WorkloadOption& option) {
  CLI::Option* added = app.add_option(option.name, *option.value, option.help)->required();
  if (option.choices.empty()) {
    added->check(CLI::Range(option.low, option.high));
    return;
  }
  std::map<std::string, int> indexes;
  for (const std::string& word : option.choices) indexes.emplace(word, int(indexes.size()));
  added->transform(CLI::CheckedTransformer(indexes));
}

}  // namespace

int run_server(int argc, char** argv, Serve serve) {
  pinned_processor();
  std::vector<std::unique_ptr<Workload>> workloads;
  workloads.push_back(make_throughput());
  workloads.push_back(make_latency());
  workloads.push_back(make_churn());
  workloads.push_back(make_idle());
  workloads.push_back(make_fanout());

  CLI::App app("Runs a TCP server and clients with a workload.");
  app.require_subcommand(1);
  int iterations = 1;
  for (auto& workload : workloads) {
    CLI::App* command = app.add_subcommand(workload->name(), workload->description());
    for (const WorkloadOption& option : workload->options()) add_option(*command, option);
    add_iterations(*command, iterations);
  }
  parse_or_exit(app, argc, argv);
  const auto chosen = std::ranges::find_if(
      workloads, [&](auto& workload) { return app.got_subcommand(workload->name()); });

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
