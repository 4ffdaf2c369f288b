// Round trips on one connection.
//
// Nearly all of one is the kernel waking the processor that has gone idle meanwhile, which is what
// a loop that spins saves on its side, and a client that does on its own. Every round trip is kept,
// so that the percentiles are exact; a histogram would save memory that nobody misses here.
#include <sys/socket.h>

#include <algorithm>

#include "common/network.h"
#include "server/games/exchange.h"
#include "server/games/game.h"

namespace bench {
namespace {

class Latency final : public Game {
 public:
  const char* name() const override { return "latency"; }
  const char* about() const override { return "round trips of one byte on one connection"; }
  std::vector<GameOption> options() override {
    return {{"--round-trips", "round trips in an iteration", &round_trips_, 1, 100'000'000},
            {"--client", "until the answer is there", &client_spins_, 0, 1, {"sleeps", "spins"}}};
  }
  ServerOptions server() const override { return {.buffer_bytes = 4096}; }

  std::vector<Figure> play(ServerProcess& server) override {
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
    abandon(fd);
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

std::unique_ptr<Game> make_latency() { return std::make_unique<Latency>(); }

}  // namespace bench
