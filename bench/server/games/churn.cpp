// Connections that are opened, served once, and closed by the client.
//
// So many are open at a time: the oldest is waited for, closed, and followed by a new one. A client
// that sleeps for each would measure how long waking it takes.
#include <unistd.h>

#include <array>
#include <deque>

#include "common/network.h"
#include "server/games/exchange.h"
#include "server/games/game.h"

namespace bench {
namespace {

constexpr std::size_t message_size = 64;
constexpr int first_host = 2;
constexpr int last_host = 250;

class Churn final : public Game {
 public:
  const char* name() const override { return "churn"; }
  const char* about() const override { return "connections opened, served once, and closed"; }
  std::vector<GameOption> options() override {
    return {{"--open", "connections that are open at a time", &open_, 1, 4000},
            ask_milliseconds(milliseconds_)};
  }
  ServerOptions server() const override { return {.buffer_bytes = 4096}; }

  std::vector<Figure> play(ServerProcess& server) override {
    port_ = server.port();
    // Before any is closed: otherwise those that are opened meanwhile would be charged to the few
    // that are served.
    while (waiting_.size() < std::size_t(open_)) {
      feed_watchdog();
      open_one();
    }
    run(milliseconds_ / 5e3);
    served_ = 0;
    const auto begin = now_ns();
    const auto cpu = server.cpu_ns();
    run(milliseconds_ / 1e3);
    const double used = double(server.cpu_ns() - cpu);
    const double seconds = double(now_ns() - begin) / 1e9;
    if (served_ == 0) fail("no connection was served in the time that was given");
    const double served = double(served_);
    for (const int fd : waiting_) abandon(fd);
    waiting_.clear();
    return {{"connections_per_s", served / seconds}, {"server_cpu_ns", used / served}};
  }

 private:
  void run(double seconds) {
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
  std::uint16_t port_ = 0;
  int host_ = first_host;
  std::array<char, message_size> message_{};
  std::deque<int> waiting_;
  std::int64_t served_ = 0;
};

}  // namespace

std::unique_ptr<Game> make_churn() { return std::make_unique<Churn>(); }

}  // namespace bench
