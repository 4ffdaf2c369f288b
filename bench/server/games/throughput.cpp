// Ping-pong of messages of one size on many connections.
#include "server/games/game.h"
#include "server/games/ping_pong.h"

namespace bench {
namespace {

class Throughput final : public Game {
 public:
  const char* name() const override { return "throughput"; }
  const char* about() const override { return "messages there and back on many connections"; }
  std::vector<GameOption> options() override {
    return {ask_connections(connections_), ask_size(size_), ask_milliseconds(milliseconds_)};
  }
  ServerOptions server() const override { return {.buffer_bytes = 65536}; }

  std::vector<Figure> play(ServerProcess& server) override {
    PingPong game(server, connections_, size_);
    const Rate rate = game.measure(milliseconds_);
    return {{"messages_per_s", rate.per_second},
            {"bytes_per_s", rate.per_second * 2 * size_},
            {"server_cpu_ns", rate.server_cpu_ns}};
  }

 private:
  int connections_ = 0;
  int size_ = 0;
  int milliseconds_ = 0;
};

}  // namespace

std::unique_ptr<Game> make_throughput() { return std::make_unique<Throughput>(); }

}  // namespace bench
