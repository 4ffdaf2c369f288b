// Tunnels: two tasks that copy, and a timer.
#include "http/proxy/tunnel.h"

#include <tambour/loop/timer.h>
#include <tambour/task/combinators.h>

#include "base/clock.h"

namespace tambour::http::detail::proxy {
namespace {

constexpr std::size_t piece_bytes_max = std::size_t{64} * 1024;

class Tunnel {
 public:
  Tunnel(ByteStream client, ByteStream server, Duration idle_timeout)
      : client_(std::move(client)),
        server_(std::move(server)),
        loop_(client_.loop()),
        idle_timeout_(idle_timeout),
        timer_(loop_, [this] { check(); }) {}

  Task<> run() {
    since_ = loop_.now();
    if (idle_timeout_ > Duration::zero()) timer_.start(idle_timeout_);
    auto both = when_all(copy(client_, server_), copy(server_, client_));
    co_await std::move(both);
  }

 private:
  Task<> copy(ByteStream& from, ByteStream& to) {
    Buffer bytes;
    for (;;) {
      const auto got = co_await from.read(bytes, piece_bytes_max);
      if (!got) break;
      since_ = loop_.now();
      if (*got == 0) {
        const auto shut = co_await to.shutdown_write();
        if (!shut) break;
        co_return;
      }
      const auto written = co_await to.write(bytes);
      if (!written) break;
      since_ = loop_.now();
    }
    close();
  }

  void check() {
    const TimePoint limit = base::saturating_add(since_, idle_timeout_);
    if (loop_.now() >= limit) return close();
    timer_.start_at(limit);
  }

  /// Ends the other direction, too.
  void close() noexcept {
    client_.close();
    server_.close();
  }

  ByteStream client_;
  ByteStream server_;
  EventLoop& loop_;
  Duration idle_timeout_;
  TimePoint since_{};
  Timer timer_;
};

}  // namespace

Task<> run_tunnel(ByteStream client, ByteStream server, Duration idle_timeout) {
  Tunnel tunnel(std::move(client), std::move(server), idle_timeout);
  co_await tunnel.run();
}

}  // namespace tambour::http::detail::proxy
