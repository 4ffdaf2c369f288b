// WebSocketClient: the next connection after the end of one, what is sent again, and when the
// client gives up.
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/websocket/serving.h"

namespace tambour::reconnecting_test {
namespace {

using namespace std::chrono_literals;
using http::CloseCode;
using http::WebSocket;
using http::WebSocketClient;
using http::WebSocketClientOptions;
using http::WebSocketFailure;
using http::WebSocketMessage;

class WebSocketClients : public test::WebSocketServing {
 public:
  /// Serves three numbers on each connection, after the one that the client names, and then closes.
  void serve_numbers(CloseCode code) {
    serve(http::serve_websocket([this, code](WebSocket& socket, http::Request& request) -> Task<> {
      ++served_;
      const std::string after = request.query_parameter("after").value_or("0");
      int last = 0;
      std::from_chars(after.data(), after.data() + after.size(), last);
      for (int i = 1; i <= 3; ++i) EXPECT_TRUE(co_await socket.send_text(std::to_string(last + i)));
      static_cast<void>(co_await socket.close(code, "three numbers"));
    }));
  }
  WebSocketClientOptions options() {
    WebSocketClientOptions options;
    options.on_failure = [this](const WebSocketFailure& failure) { failures_.push_back(failure); };
    return options;
  }
  static Task<std::string> next_of(WebSocketClient& socket) {
    const Result<WebSocketMessage> message = co_await socket.receive();
    co_return message ? message->to_string() : message.error().message();
  }
  http::Handler echo() { return http::serve_websocket(&test::echo); }
  void stop_serving() { server_.reset(); }

  int served_ = 0;
  std::vector<WebSocketFailure> failures_;
};

TEST_F(WebSocketClients, continue_after_the_last_message) {
  serve_numbers(CloseCode::service_restart);
  run([&]() -> Task<> {
    http::Client client(loop_);
    int last = 0;
    WebSocketClient numbers(
        client, [&] { return http::ClientRequest(url() + "?after=" + std::to_string(last)); },
        options());
    for (int i = 1; i <= 9; ++i) {
      EXPECT_EQ(co_await next_of(numbers), std::to_string(i));
      last = i;
    }
    EXPECT_EQ(numbers.connections(), 3);
    EXPECT_EQ(numbers.close_code(), CloseCode::service_restart);
    EXPECT_TRUE(co_await numbers.close());
    EXPECT_EQ((co_await numbers.receive()).error(), system_error(EBADF));
  }());
  EXPECT_EQ(served_, 3);
  ASSERT_EQ(failures_.size(), 2);
  EXPECT_EQ(failures_[0].error, StreamError::eof);
  EXPECT_EQ(failures_[0].close_code, CloseCode::service_restart);
  EXPECT_LE(failures_[0].retry_delay, 500ms);
  EXPECT_GE(failures_[0].retry_delay, 250ms);
  EXPECT_GE(failures_[1].retry_delay, 500ms);  // The first connection was short.
}

TEST_F(WebSocketClients, close_codes_decide) {
  struct Case {
    CloseCode code;
    bool goes_on;
  };
  for (const Case& expected :
       {Case{CloseCode::normal, false}, Case{CloseCode::going_away, true},
        Case{CloseCode::try_again_later, true}, Case{CloseCode::policy_violation, false},
        Case{CloseCode::internal_error, true}, Case{CloseCode(4000), false}}) {
    SCOPED_TRACE(static_cast<int>(expected.code));
    EXPECT_EQ(http::is_temporary(expected.code), expected.goes_on);
    failures_.clear();
    serve_numbers(expected.code);
    run([&]() -> Task<> {
      http::Client client(loop_);
      WebSocketClient numbers(client, url(), options());
      for (int i = 1; i <= 3; ++i) EXPECT_EQ(co_await next_of(numbers), std::to_string(i));
      const TimePoint before = loop_.now();
      const Result<WebSocketMessage> message = co_await numbers.receive();
      EXPECT_EQ(message.has_value(), expected.goes_on);
      if (expected.code == CloseCode::try_again_later) {
        EXPECT_GE(loop_.now() - before, 5s);
      }
      if (!message) {
        EXPECT_EQ(message.error(), StreamError::eof);
      }
      EXPECT_EQ(numbers.close_code(), expected.code);
    }());
    EXPECT_EQ(failures_.size(), 1);
    EXPECT_EQ(failures_.front().retry_delay.has_value(), expected.goes_on);
    stop_serving();
  }
}

TEST_F(WebSocketClients, the_program_decides_by_code_and_reason) {
  serve_numbers(CloseCode::policy_violation);
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocketClientOptions chosen = options();
    int asked = 0;
    chosen.reconnects_after = [&](CloseCode code, std::string_view reason) {
      return code == CloseCode::policy_violation && reason == "three numbers" && ++asked < 2;
    };
    WebSocketClient numbers(client, url(), std::move(chosen));
    for (int i = 0; i < 6; ++i) EXPECT_EQ(co_await next_of(numbers), std::to_string(i % 3 + 1));
    EXPECT_EQ((co_await numbers.receive()).error(), StreamError::eof);
    EXPECT_EQ(co_await next_of(numbers), "1");  // A further call connects again.
    EXPECT_EQ(numbers.connections(), 3);
  }());
}

TEST_F(WebSocketClients, statuses_decide) {
  std::vector<http::Status> answers = {http::Status::service_unavailable,
                                       http::Status::too_many_requests, http::Status::bad_gateway};
  std::size_t requests = 0;
  serve([&](http::Request&, http::Response& response) {
    response.set_status(requests < answers.size() ? answers[requests] : http::Status::forbidden);
    ++requests;
    response.send("no");
  });
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocketClient numbers(client, url(), options());
    EXPECT_EQ((co_await numbers.receive()).error(), http::WebSocketError::unexpected_status);
  }());
  EXPECT_EQ(requests, 4);
  ASSERT_EQ(failures_.size(), 4);
  EXPECT_EQ(failures_[0].status, http::Status::service_unavailable);
  EXPECT_EQ(failures_[2].attempts, 3);
  EXPECT_EQ(failures_[3].status, http::Status::forbidden);
  EXPECT_FALSE(failures_[3].retry_delay);
}

TEST_F(WebSocketClients, attempts_have_a_limit) {
  serve(echo());
  const std::string to = url();
  stop_serving();
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocketClientOptions chosen = options();
    chosen.retry.attempts_max = 4;
    WebSocketClient socket(client, to, std::move(chosen));
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ((co_await socket.receive()).error(), system_error(ECONNREFUSED));
  }());
  ASSERT_EQ(failures_.size(), 8);
  EXPECT_LE(failures_[0].retry_delay, 500ms);
  EXPECT_LE(failures_[2].retry_delay, 2s);
  EXPECT_GE(failures_[2].retry_delay, 1s);
  EXPECT_FALSE(failures_[3].retry_delay);
  EXPECT_LE(failures_[4].retry_delay, 500ms);
}

TEST_F(WebSocketClients, send_waits_for_a_connection) {
  serve(echo());
  const std::string to = url();
  stop_serving();
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocketClientOptions chosen = options();
    chosen.on_open = [](WebSocket& socket) {
      EXPECT_TRUE(socket.try_send(WebSocketMessage("first")));
    };
    WebSocketClient socket(client, to, std::move(chosen));
    EXPECT_EQ(socket.try_send(WebSocketMessage("early")).error(), system_error(ENOTCONN));
    TaskScope tasks(loop_);
    tasks.spawn([&]() -> Task<> { EXPECT_TRUE(co_await socket.send_text("second")); });
    tasks.spawn([&]() -> Task<> {
      static_cast<void>(co_await sleep_for(2s));
      serve(echo());
    });
    EXPECT_EQ(co_await next_of(socket), "first");
    EXPECT_EQ(co_await next_of(socket), "second");
    co_await tasks.join();
    EXPECT_NE(socket.socket(), nullptr);
    EXPECT_TRUE(socket.try_send(WebSocketMessage("third")));
    EXPECT_EQ(co_await next_of(socket), "third");
  }());
  EXPECT_GT(failures_.size(), 1);
}

TEST_F(WebSocketClients, a_lost_connection_is_made_again) {
  int connections = 0;
  serve(http::serve_websocket([&](WebSocket& socket, http::Request&) -> Task<> {
    EXPECT_TRUE(co_await socket.send_text(std::to_string(++connections)));
    if (connections < 3) {
      socket.abort();
      co_return;
    }
    static_cast<void>(co_await socket.receive());
  }));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocketClient socket(client, url(), options());
    for (int i = 1; i <= 3; ++i) EXPECT_EQ(co_await next_of(socket), std::to_string(i));
    EXPECT_EQ(socket.close_code(), CloseCode::abnormal);
    socket.socket()->abort();  // Without a task that receives.
    TaskScope tasks(loop_);
    tasks.spawn([&]() -> Task<> {
      EXPECT_EQ((co_await socket.send_text("lost")).error(), system_error(ECANCELED));
    });
    co_await tasks.join();
    EXPECT_EQ((co_await socket.receive()).error(), system_error(ECANCELED));
    EXPECT_EQ(co_await next_of(socket), "4");
  }());
}

TEST_F(WebSocketClients, cancelled_receives_lose_nothing_and_end_no_attempt) {
  serve_numbers(CloseCode::service_restart);
  run([&]() -> Task<> {
    http::Client client(loop_);
    int last = 0;
    WebSocketClient numbers(
        client, [&] { return http::ClientRequest(url() + "?after=" + std::to_string(last)); },
        options());
    int cancelled = 0;
    while (last < 9) {
      // Shorter than what an attempt takes, and than the delay before it.
      const Result<WebSocketMessage> message = co_await timeout(100us, numbers.receive());
      if (!message) {
        EXPECT_EQ(message.error(), system_error(ETIMEDOUT));
        ++cancelled;
        continue;
      }
      EXPECT_EQ(message->to_string(), std::to_string(++last));
    }
    EXPECT_GT(cancelled, 100);
    EXPECT_EQ(numbers.connections(), 3);
  }());
}

TEST_F(WebSocketClients, close_ends_the_tasks_that_wait) {
  serve(echo());
  const std::string to = url();
  stop_serving();
  run([&]() -> Task<> {
    http::Client client(loop_);
    for (const bool is_serving : {false, true}) {
      if (is_serving) serve(echo());
      WebSocketClient socket(client, to, options());
      TaskScope tasks(loop_);
      int ended = 0;
      tasks.spawn([&]() -> Task<> {
        EXPECT_EQ((co_await socket.receive()).error(), system_error(EBADF));
        ++ended;
      });
      if (!is_serving) {
        tasks.spawn([&]() -> Task<> {
          EXPECT_EQ((co_await socket.send_text("lost")).error(), system_error(EBADF));
          ++ended;
        });
      }
      static_cast<void>(co_await sleep_for(10s));
      EXPECT_EQ(ended, 0);
      EXPECT_TRUE(co_await socket.close());
      co_await tasks.join();
      EXPECT_EQ(ended, is_serving ? 1 : 2);
      EXPECT_EQ(socket.socket(), nullptr);
    }
  }());
}

TEST_F(WebSocketClients, may_be_destroyed_at_every_moment) {
  serve_numbers(CloseCode::service_restart);
  run([&]() -> Task<> {
    http::Client client(loop_);
    for (int steps = 0; steps < 200; ++steps) {
      std::optional<WebSocketClient> numbers(std::in_place, client, url());
      std::optional<TaskScope> tasks(std::in_place, loop_);
      tasks->spawn([&numbers]() -> Task<> {
        for (;;) {
          const Result<WebSocketMessage> message = co_await numbers->receive();
          if (!message) co_return;
        }
      });
      static_cast<void>(co_await sleep_for(10us * steps * steps));
      tasks.reset();
      numbers.reset();
    }
  }());
  EXPECT_GT(served_, 100);
}

TEST_F(WebSocketClients, exceptions_of_callbacks_are_thrown_by_receive) {
  serve_numbers(CloseCode::normal);
  run([&]() -> Task<> {
    http::Client client(loop_);
    int calls = 0;
    WebSocketClient numbers(client, [&] {
      if (++calls == 1) throw std::runtime_error("planted");
      return http::ClientRequest(url());
    });
    std::string thrown;
    try {
      static_cast<void>(co_await numbers.receive());
    } catch (const std::runtime_error& error) {
      thrown = error.what();
    }
    EXPECT_EQ(thrown, "planted");
    EXPECT_EQ(co_await next_of(numbers), "1");
  }());
}

/// A server that closes each connection after some numbers, in one of several ways, under random
/// faults. The client gets each number once, in order.
class RandomEnds {
 public:
  explicit RandomEnds(sim::Simulation& simulation)
      : simulation_(simulation),
        host_(simulation.add_host("server")),
        server_loop_(host_.loop_options()),
        client_loop_(simulation.add_host("client").loop_options()) {}

  void run() {
    const sockaddr_in address = host_.endpoint(80);
    const Endpoint at =
        Endpoint::from(reinterpret_cast<const sockaddr*>(&address), sizeof address).value();
    auto server = http::Server::listen(
        server_loop_, at, http::serve_websocket([this](WebSocket& socket, http::Request& request) {
          return count(socket, request.query_parameter("after").value_or("0"));
        }));
    if (!server) return;  // A fault.
    TaskScope tasks(client_loop_);
    tasks.spawn(receive("ws://" + at.to_string() + "/?after="));
    simulation_.after(1h, [this] { simulation_.options() = sim::Options(); });
    if (simulation_.run(24h * 30) != sim::End::stopped)
      simulation_.fail("nothing happens any more");
    tasks.request_stop();
    simulation_.run_for(24h);
    if (!tasks.empty()) simulation_.fail("tasks are left");
  }

 private:
  Task<> count(WebSocket& socket, std::string after) {
    const int last = std::stoi(after);
    for (int i = 1; i <= 5; ++i) {
      const Result<> sent = co_await socket.send_text(std::to_string(last + i));
      if (!sent) co_return;
      if (simulation_.random(4) == 0) break;
    }
    const std::uint64_t way = simulation_.random(3);
    if (way == 0) socket.abort();
    if (way == 1) static_cast<void>(co_await socket.close(CloseCode::service_restart));
    if (way == 2) static_cast<void>(co_await socket.close(CloseCode::try_again_later));
  }
  Task<> receive(std::string url) {
    http::Client client(client_loop_);
    int last = 0;
    WebSocketClient numbers(client,
                            [&] { return http::ClientRequest(url + std::to_string(last)); });
    while (last < 50) {
      const Result<WebSocketMessage> message = co_await timeout(1min, numbers.receive());
      if (!message && message.error() == system_error(ECANCELED)) co_return;
      if (!message) continue;
      if (message->to_string() != std::to_string(last + 1))
        simulation_.fail(message->to_string() + " after " + std::to_string(last));
      ++last;
    }
    static_cast<void>(co_await numbers.close());
    simulation_.stop();
  }

  sim::Simulation& simulation_;
  sim::Host& host_;
  EventLoop server_loop_;
  EventLoop client_loop_;
};

/// TAMBOUR_TEST_SEEDS sets the number of seeds.
TEST(SimulatedReconnecting, loses_and_repeats_nothing_under_random_faults) {
  const char* const chosen = std::getenv("TAMBOUR_TEST_SEEDS");
  const std::uint64_t count = chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 20;
  const auto failure = sim::simulate(
      {.first = 1, .count = count},
      [](sim::Simulation& simulation) {
        RandomEnds ends(simulation);
        ends.run();
      },
      [](std::uint64_t seed) {
        sim::Options options = sim::Options::rough(seed);
        options.no_descriptors = options.no_memory = 0;
        return options;
      });
  EXPECT_FALSE(failure) << failure->report();
}

}  // namespace
}  // namespace tambour::reconnecting_test
