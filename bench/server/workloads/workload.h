// The interface of workloads: what the clients do with the server.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/program.h"
#include "server/process.h"
#include "server/server.h"

namespace bench {

/// An integer option of the command line; with words, the value of the given word.
struct WorkloadOption {
  const char* name;
  const char* help;
  int* value;
  int low = 1;
  int high = 1'000'000;
  std::map<std::string, int> words{};
  bool is_optional = false;  ///< Without words: `*value` is the default.
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual const char* name() const = 0;
  virtual const char* description() const = 0;
  virtual std::vector<WorkloadOption> options() = 0;
  /// The options of the server for this workload, without the port.
  virtual ServerOptions server_options() const = 0;
  virtual std::vector<Figure> run(ServerProcess& server) = 0;
};

std::unique_ptr<Workload> make_throughput();
std::unique_ptr<Workload> make_count();
std::unique_ptr<Workload> make_latency();
std::unique_ptr<Workload> make_churn();
std::unique_ptr<Workload> make_idle();
std::unique_ptr<Workload> make_fanout();

/// Options that several workloads have.
inline WorkloadOption connections_option(int& value) {
  return {"--connections", "connections", &value};
}
inline WorkloadOption size_option(int& value) {
  return {"--size", "bytes of a message", &value, 1, 1 << 28};
}
inline WorkloadOption loops_option(int& value) {
  return {.name = "--loops",
          .help = "loops of the server",
          .value = &value,
          .high = 64,
          .is_optional = true};
}
// The limit keeps a measurement and its warm-up (two of each in idle) below the watchdog's 60 s.
inline WorkloadOption milliseconds_option(int& value) {
  return {"--milliseconds", "length of a measurement", &value, 10, 20'000};
}

}  // namespace bench
