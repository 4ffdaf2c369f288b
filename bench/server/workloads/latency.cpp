// Round trips on one connection.
//
// Most of a round trip is the time in which the kernel wakes an idle processor. A spinning loop
// avoids it on the server, and a spinning client on the client. Every round trip is recorded, so
// the percentiles are exact.
#include <sys/socket.h>

#include <algorithm>

#include "common/network.h"
#include "server/workloads/exchange.h"
#include "server/workloads/workload.h"

namespace bench {
namespace {

class Latency final : public Workload {
 public:
  const char* name() const override { return "latency"; }
  const char* description() const override { return "round trips of one byte on one connection"; }
  std::vector<WorkloadOption> options() override {
    return {{"--round-trips", "round trips per iteration", &round_trips_, 1, 100'000'000},
            {"--client",
             "how the client waits for the reply",
             &client_spins_,
             0,
             1,
             {{"sleeps", 0}, {"spins", 1}}}};
  }
  ServerOptions server_options() const override { return {.buffer_bytes = 4096}; }

  std::vector<Figure> run(ServerProcess& server) override {
    const int fd = connect_to(server.port());
    const int flags = client_spins_ != 0 ? MSG_DONTWAIT : 0;
    char byte = 'r';
    const auto round_trip = [&] {
      send_message(fd, &byte, 1);
      receive_message(fd, &byte, 1, flags);
    };
    for (int i = 0; i < round_trips_ / 20; ++i) round_trip();
    std::vector<std::int64_t> took;
    took.reserve(std::size_t(round_trips_));
    const auto begin = now_ns();
    auto sent = begin;
    for (int i = 0; i < round_trips_; ++i) {
      round_trip();
      const auto back = now_ns();
      took.push_back(back - sent);
      sent = back;
    }
    close_with_reset(fd);
    std::ranges::sort(took);
    const auto at = [&](double part) {
      return double(took[std::size_t(part * double(took.size() - 1))]);
    };
    return {{"round_trip_ns", double(sent - begin) / round_trips_},
            {"p50_ns", at(0.5)},
            {"p99_ns", at(0.99)},
            {"p999_ns", at(0.999)},
            {"max_ns", at(1)}};
  }

 private:
  int round_trips_ = 0;
  int client_spins_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_latency() { return std::make_unique<Latency>(); }

}  // namespace bench
