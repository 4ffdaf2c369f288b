// Thousands of connections of which most are idle: what each of them holds, and what they cost
// those that are active.
//
// Idle is not new: each has sent a message and had it back, so that what a library keeps after that
// is counted.
#include <array>

#include "common/network.h"
#include "server/games/exchange.h"
#include "server/games/game.h"
#include "server/games/ping_pong.h"

namespace bench {
namespace {

constexpr int message_size = 64;

class Idle final : public Game {
 public:
  const char* name() const override { return "idle"; }
  const char* about() const override { return "a few active connections among thousands"; }
  std::vector<GameOption> options() override {
    return {ask_connections(connections_),
            {"--active", "connections that are active, among them", &active_},
            ask_milliseconds(milliseconds_)};
  }
  ServerOptions server() const override { return {.buffer_bytes = 4096}; }

  std::vector<Figure> play(ServerProcess& server) override {
    if (active_ > connections_) fail("--active exceeds --connections");
    // What a library makes once, for its first connections, is no connection's.
    for (int i = 0; i < 16; ++i) abandon(open_one(server));
    server.settle();
    const auto heap = server.heap_bytes();
    const auto rss = server.rss_bytes();

    PingPong active(server, active_, message_size);
    const Rate alone = active.measure(milliseconds_);
    std::vector<int> idle;
    while (int(idle.size()) < connections_ - active_) idle.push_back(open_one(server));
    server.settle();
    const double heap_each = double(server.heap_bytes() - heap) / connections_;
    const double rss_each = double(server.rss_bytes() - rss) / connections_;
    const Rate among = active.measure(milliseconds_);
    for (const int fd : idle) abandon(fd);
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

std::unique_ptr<Game> make_idle() { return std::make_unique<Idle>(); }

}  // namespace bench
