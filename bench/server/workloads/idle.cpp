// Thousands of connections, most of them idle: memory per connection, and the effect of idle
// connections on active ones.
//
// Each idle connection has exchanged one message, so that memory which a library keeps after the
// first use is included.
#include <array>

#include "common/network.h"
#include "server/workloads/exchange.h"
#include "server/workloads/ping_pong.h"
#include "server/workloads/workload.h"

namespace bench {
namespace {

constexpr int message_size = 64;

class Idle final : public Workload {
 public:
  const char* name() const override { return "idle"; }
  const char* description() const override { return "a few active connections among thousands"; }
  std::vector<WorkloadOption> options() override {
    return {connections_option(connections_),
            {"--active", "active connections among them", &active_},
            milliseconds_option(milliseconds_)};
  }
  ServerOptions server_options() const override { return {.buffer_bytes = 4096}; }

  std::vector<Figure> run(ServerProcess& server) override {
    if (active_ > connections_) fail("--active exceeds --connections");
    // Exclude memory that a library allocates once, for its first connections.
    for (int i = 0; i < 16; ++i) close_with_reset(open_one(server));
    server.wait_until_idle();
    const auto heap = server.heap_bytes();
    const auto rss = server.rss_bytes();

    PingPong active(server, active_, message_size);
    const Rate alone = active.measure(milliseconds_);
    std::vector<int> idle;
    while (int(idle.size()) < connections_ - active_) idle.push_back(open_one(server));
    server.wait_until_idle();
    const double heap_each = double(server.heap_bytes() - heap) / connections_;
    const double rss_each = double(server.rss_bytes() - rss) / connections_;
    const Rate among = active.measure(milliseconds_);
    for (const int fd : idle) close_with_reset(fd);
    return {{"heap_bytes_per_connection", heap_each}, {"rss_bytes_per_connection", rss_each},
            {"messages_per_s", among.per_second},     {"alone_per_s", alone.per_second},
            {"server_cpu_ns", among.server_cpu_ns},   {"alone_cpu_ns", alone.server_cpu_ns}};
  }

 private:
  static int open_one(const ServerProcess& server) {
    std::array<char, message_size> message{};
    const int fd = connect_to(server.port());
    send_message(fd, message.data(), message.size());
    receive_message(fd, message.data(), message.size());
    return fd;
  }

  int connections_ = 0;
  int active_ = 0;
  int milliseconds_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_idle() { return std::make_unique<Idle>(); }

}  // namespace bench
