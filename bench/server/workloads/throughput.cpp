// Ping-pong of messages of one size on many connections, for a time or for a number of messages.
#include "server/workloads/ping_pong.h"
#include "server/workloads/workload.h"

namespace bench {
namespace {

class Throughput final : public Workload {
 public:
  const char* name() const override { return "throughput"; }
  const char* description() const override { return "echoed messages on many connections"; }
  std::vector<WorkloadOption> options() override {
    return {connections_option(connections_), size_option(size_),
            milliseconds_option(milliseconds_), loops_option(loops_)};
  }
  ServerOptions server_options() const override { return {.loops = loops_, .buffer_bytes = 65536}; }

  std::vector<Figure> run(ServerProcess& server) override {
    PingPong clients(server, connections_, size_);
    const Rate rate = clients.measure(milliseconds_);
    return {{"messages_per_s", rate.per_second},
            {"bytes_per_s", rate.per_second * 2 * size_},
            {"server_cpu_ns", rate.server_cpu_ns}};
  }

 private:
  int connections_ = 0;
  int size_ = 0;
  int milliseconds_ = 0;
  int loops_ = 1;
};

/// For a program such as valgrind that counts what the server executes.
class Count final : public Workload {
 public:
  const char* name() const override { return "count"; }
  const char* description() const override { return "a number of echoed messages"; }
  std::vector<WorkloadOption> options() override {
    return {connections_option(connections_),
            size_option(size_),
            {"--messages", "the number of messages", &messages_}};
  }
  ServerOptions server_options() const override { return {.buffer_bytes = 65536}; }

  std::vector<Figure> run(ServerProcess& server) override {
    // One connection waits for the end of each message; several may begin one more.
    PingPong(server, connections_, size_).exchange_count(messages_);
    return {{"process", double(server.process())}, {"events", double(messages_)}};
  }

 private:
  int connections_ = 0;
  int size_ = 0;
  int messages_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_count() { return std::make_unique<Count>(); }
std::unique_ptr<Workload> make_throughput() { return std::make_unique<Throughput>(); }

}  // namespace bench
