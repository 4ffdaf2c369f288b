// Short connections: the client opens each, exchanges one message, and closes it.
//
// A fixed number of connections is open at a time: the client waits for the reply on the oldest
// one, closes it and opens a new one. With only one, the result would mainly be the wakeup time of
// the client.
#include <unistd.h>

#include <array>
#include <deque>

#include "common/network.h"
#include "server/workloads/exchange.h"
#include "server/workloads/workload.h"

namespace bench {
namespace {

constexpr std::size_t message_size = 64;
constexpr int first_host = 2;
constexpr int last_host = 250;

class Churn final : public Workload {
 public:
  const char* name() const override { return "churn"; }
  const char* description() const override { return "connections with one message each"; }
  std::vector<WorkloadOption> options() override {
    return {{"--open", "connections open at a time", &open_, 1, 4000},
            milliseconds_option(milliseconds_),
            loops_option(loops_)};
  }
  ServerOptions server_options() const override { return {.loops = loops_, .buffer_bytes = 4096}; }

  std::vector<Figure> run(ServerProcess& server) override {
    port_ = server.port();
    // Open the initial connections before the measurement, so that their cost is not attributed to
    // the connections that are served.
    while (waiting_.size() < std::size_t(open_)) {
      feed_watchdog();
      open_one();
    }
    serve_for(milliseconds_ / 5e3);
    served_ = 0;
    const auto begin = now_ns();
    const auto cpu = server.cpu_ns();
    serve_for(milliseconds_ / 1e3);
    const double used = double(server.cpu_ns() - cpu);
    const double seconds = double(now_ns() - begin) / 1e9;
    if (served_ == 0) fail("no connection was served during the measurement");
    const double served = double(served_);
    for (const int fd : waiting_) close_with_reset(fd);
    waiting_.clear();
    return {{"connections_per_s", served / seconds}, {"server_cpu_ns", used / served}};
  }

 private:
  void serve_for(double seconds) {
    const auto end = now_ns() + std::int64_t(seconds * 1e9);
    while (now_ns() < end) {
      finish_one();
      open_one();
    }
  }

  void open_one() {
    host_ = host_ == last_host ? first_host : host_ + 1;
    waiting_.push_back(connect_from(host_, port_));
    send_message(waiting_.back(), message_.data(), message_.size());
  }

  void finish_one() {
    const int fd = waiting_.front();
    waiting_.pop_front();
    receive_message(fd, message_.data(), message_.size());
    close(fd);
    ++served_;
  }

  int open_ = 0;
  int milliseconds_ = 0;
  int loops_ = 1;
  std::uint16_t port_ = 0;
  int host_ = first_host;
  std::array<char, message_size> message_{};
  std::deque<int> waiting_;
  std::int64_t served_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_churn() { return std::make_unique<Churn>(); }

}  // namespace bench
