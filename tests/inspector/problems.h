// The problems of a service that its operator looks for: a stuck task, a callback that blocks its
// loop, a connection that is never closed, a slow name server and a hot timer.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::test {

class Problems {
 public:
  static constexpr std::chrono::milliseconds blocked_for{120};
  static constexpr std::chrono::milliseconds dns_latency{50};

  /// `loop` is that of the calling thread, which is run; `loops` has two, of which one is blocked
  /// for a while.
  Problems(EventLoop& loop, LoopGroup& loops, const Endpoint& server,
           inspector::Collector& collector)
      : name_server_(or_throw(dns::Server::listen(loop, Endpoint::loopback_v4(0), &answer_late))),
        resolver_(loop, {.servers = {name_server_.endpoint()}}),
        leaking_(block_on(loop, leak(server))) {
    collector.add(loop, resolver_, "prices");
    block_on(loop, look_up(resolver_));
    loops[0].post([lines = lines_, &at = loops[0]] { spawn(at, poll_for_work(lines)); });
    loops[1].post([lines = lines_, &at = loops[1]] { spawn(at, wait_for_news(at, lines)); });
    const unsigned line = __LINE__ + 1;
    loops[1].post([line, lines = lines_] {
      std::this_thread::sleep_for(blocked_for);
      lines->blocking = line;
    });
    while (lines_->stuck == 0 || lines_->hot == 0 || lines_->blocking == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  // As the inspector names them.
  [[nodiscard]] std::string stuck_place() const { return place_of(lines_->stuck); }
  [[nodiscard]] std::string blocking_place() const { return place_of(lines_->blocking); }
  [[nodiscard]] std::string hot_place() const { return place_of(lines_->hot); }
  [[nodiscard]] std::string name_server() const { return name_server_.endpoint().to_string(); }
  [[nodiscard]] std::string leaking_connection() const {
    return or_throw(leaking_.local_endpoint()).to_string();
  }
  /// All of them.
  [[nodiscard]] std::string json() const {
    return R"({"stuck": ")" + stuck_place() + R"(", "blocking": ")" + blocking_place() +
           R"(", "hot": ")" + hot_place() + R"(", "name_server": ")" + name_server() +
           R"(", "leaking": ")" + leaking_connection() + R"("})";
  }

 private:
  /// Tasks may exist longer than this object. 0: not reached.
  struct Lines {
    std::atomic<unsigned> stuck = 0;
    std::atomic<unsigned> blocking = 0;
    std::atomic<unsigned> hot = 0;
  };

  static std::string place_of(unsigned line) {
    return "inspector/problems.h:" + std::to_string(line);
  }

  static Task<> answer_late(const dns::Request& request, dns::Message& response) {
    static_cast<void>(co_await sleep_for(dns_latency));
    const dns::Name name = request.question().name;
    response.answers.push_back(
        {.name = name, .type = dns::Type::a, .ttl = 60, .data = dns::A{{192, 0, 2, 1}}});
  }
  static Task<> look_up(dns::Resolver& resolver) {
    const auto found = co_await resolver.query("prices.example", dns::Type::a);
    EXPECT_TRUE(found) << found.error().message();
  }

  /// Makes a request, and keeps the connection.
  static Task<TcpStream> leak(Endpoint server) {
    auto connected = co_await TcpStream::connect(server);
    TcpStream stream = or_throw(std::move(connected), "connect");
    constexpr std::string_view request = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static_cast<void>(co_await stream.write(request));
    Buffer answer;
    while (!answer.to_string().ends_with("hello")) {
      const auto got = co_await stream.read(answer);
      if (!got || *got == 0) throw std::runtime_error("no answer");
    }
    // Others have been idle for less than this one.
    static_cast<void>(co_await sleep_for(std::chrono::milliseconds(5)));
    co_return stream;
  }

  static Task<> poll_for_work(std::shared_ptr<Lines> lines) {
    for (;;) {
      lines->hot = __LINE__ + 1;
      const auto slept = co_await sleep_for(std::chrono::milliseconds(1));
      if (!slept) co_return;
    }
  }

  /// Of news that never come.
  static Task<> wait_for_news(EventLoop& loop, std::shared_ptr<Lines> lines) {
    TaskEvent news(loop);
    lines->stuck = __LINE__ + 1;
    static_cast<void>(co_await news.wait());
  }

  const std::shared_ptr<Lines> lines_ = std::make_shared<Lines>();
  dns::Server name_server_;
  dns::Resolver resolver_;
  TcpStream leaking_;
};

}  // namespace tambour::test
