// Every option that is a duration, with the longest and the shortest value: no sum with a time
// overflows, which UndefinedBehaviorSanitizer would report, and a time limit that never ends ends
// nothing.
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace tambour::longest_durations_test {
namespace {

using namespace std::chrono_literals;

const Endpoint anywhere = Endpoint::parse("127.0.0.1:0").value();

class LongestDurations : public test::OnEveryBackend {
 protected:
  /// Every value is valid, and those that are not positive mean that there is no limit.
  static std::vector<Duration> values() {
    return {Duration::max(), Duration::max() - 1ns, Duration(1ns) - Duration::max(),
            Duration::min()};
  }
  template <class T>
  T result_of(Task<T> task) {
    std::optional<T> result;
    run([](Task<T> inner, std::optional<T>& into) -> Task<> {
      into.emplace(co_await std::move(inner));
    }(std::move(task), result));
    return std::move(result).value();
  }
};

TAMBOUR_ON_EVERY_BACKEND(LongestDurations);

http::ServerOptions server_options(Duration value) {
  http::ServerOptions options;
  options.listen.proxy_header_timeout = value;
  options.header_timeout = options.body_timeout = options.idle_timeout = value;
  options.write_timeout = options.linger = options.drain_timeout = value;
  return options;
}

ConnectOptions connect_options(Duration value) {
  ConnectOptions options;
  options.attempt_delay = options.resolution_delay = options.timeout = value;
  options.retry.delay = options.retry.delay_max = value;
  return options;
}

http::ClientOptions client_options(Duration value) {
  http::ClientOptions options;
  options.connect = connect_options(value);
  options.idle_timeout = options.timeout = options.read_timeout = value;
  options.total_timeout = value;
  options.retry = {.attempts_max = 2, .delay = value, .delay_max = value};
  options.retry_after_max = value;
  return options;
}

/// Sends the request body back. The server reads it in pieces.
Task<> echo(http::Request& request, http::Response& response) {
  Buffer all;
  auto body = co_await request.body().read_all();
  EXPECT_TRUE(body) << body.error().message();
  if (body) all = std::move(*body);
  const auto sent = response.send(std::move(all));
  EXPECT_TRUE(sent);
}

Task<std::string> text_of(http::Client& client, http::ClientRequest request) {
  auto response = co_await client.send(std::move(request));
  if (!response) co_return "error: " + response.error().message();
  auto text = co_await response->read_text();
  co_return text ? *text : "error in the body: " + text.error().message();
}

TEST_P(LongestDurations, of_http_serve_a_request) {
  for (const Duration value : values()) {
    SCOPED_TRACE(value.count());
    auto server = or_throw(http::Server::listen(loop(), anywhere, echo, server_options(value)));
    const std::string url = "http://" + server.endpoint().to_string() + "/";
    {
      http::Client client(loop(), client_options(value));
      for (int i = 0; i < 2; ++i) {  // The second request uses the same connection.
        http::ClientRequest request(http::Method::post, url, Buffer("some text"));
        EXPECT_EQ(result_of(text_of(client, std::move(request))), "some text");
      }
      http::ClientRequest limited(http::Method::post, url, Buffer("some text"));
      limited.timeout = limited.total_timeout = value;
      limited.expect_continue = true;
      http::Client plain(loop());
      EXPECT_EQ(result_of(text_of(plain, std::move(limited))), "some text");
    }
    run(server.shut_down(value));
  }
}

TEST_P(LongestDurations, of_http_wait_for_slow_bodies) {
  auto server = TcpServer::listen(loop(), anywhere).value();
  server.serve([](TcpStream stream) -> Task<> {
    Buffer request;
    static_cast<void>(co_await stream.read(request));
    static_cast<void>(co_await stream.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome "));
    static_cast<void>(co_await sleep_for(1ms));
    static_cast<void>(co_await stream.write("text"));
    static_cast<void>(co_await stream.read(request));
  });
  const std::string url = "http://" + server.endpoint().to_string() + "/";
  for (const Duration value : values()) {
    SCOPED_TRACE(value.count());
    http::Client client(loop(), client_options(value));
    EXPECT_EQ(result_of(text_of(client, http::ClientRequest(url))), "some text");
  }
}

TEST_P(LongestDurations, of_event_streams_send_an_event) {
  for (const Duration value : values()) {
    const http::EventStreamOptions options{.keep_alive = value};
    auto server = or_throw(http::Server::listen(loop(), anywhere,
                                                http::serve_events(
                                                    [](http::EventStream& stream) -> Task<> {
                                                      const auto sent =
                                                          co_await stream.send({.data = "tick"});
                                                      EXPECT_TRUE(sent);
                                                    },
                                                    options),
                                                server_options(value)));
    http::Client client(loop(), client_options(value));
    http::ClientRequest request("http://" + server.endpoint().to_string() + "/");
    EXPECT_EQ(result_of(text_of(client, std::move(request))), "data: tick\n\n");
  }
}

TEST_P(LongestDurations, of_dns_answer_over_tcp) {
  for (const Duration value : values()) {
    SCOPED_TRACE(value.count());
    const auto answer = [](const dns::Request& request, dns::Message& response) {
      const dns::Question& question = request.question();
      if (!request.is_tcp) {
        response.truncated = true;
      } else if (question.type == dns::Type::a) {
        response.answers.push_back({.name = question.name,
                                    .type = dns::Type::a,
                                    .ttl = 60,
                                    .data = dns::A{{192, 0, 2, 1}}});
      }
    };
    auto server =
        dns::Server::listen(loop(), anywhere, answer, {.tcp_idle_timeout = value}).value();
    dns::ResolverOptions options{.hosts = "", .servers = {server.endpoint()}};
    options.reload_interval = options.ttl_max = options.negative_ttl_max = value;
    options.failure_ttl = value;
    dns::Resolver resolver(loop(), options);
    for (int i = 0; i < 2; ++i) {
      const auto found = result_of(resolver.resolve("www.example.org", 80));
      ASSERT_TRUE(found) << found.error().message();
      EXPECT_EQ(found->front().address(), "192.0.2.1");
    }
    run(server.shut_down(value));
  }
}

TEST_P(LongestDurations, of_connections_transfer_a_message) {
  for (const Duration value : values()) {
    SCOPED_TRACE(value.count());
    ConnectionCallbacks callbacks;
    callbacks.limits.idle_timeout = callbacks.limits.read_timeout = value;
    callbacks.limits.write_timeout = callbacks.limits.message_timeout = value;
    callbacks.limits.linger = value;
    callbacks.limits.message_rate_min = 1;
    callbacks.on_message = [value](Connection& connection, Buffer& input) {
      connection.set_idle_timeout(value);
      connection.set_deadline(value);
      if (input.size() < 9) return;
      connection.send(std::move(input));
      connection.close_after_write();
    };
    auto server = TcpServer::listen(loop(), anywhere).value();
    server.serve(std::move(callbacks));
    const auto ask = [](Endpoint at, Duration limit) -> Task<std::string> {
      // Two addresses: the second is tried after `attempt_delay`.
      const std::vector<Endpoint> addresses{at, at};
      auto connected = co_await connect(addresses, connect_options(limit));
      SocketStream stream = or_throw(std::move(connected));
      static_cast<void>(co_await stream.write("some "));
      static_cast<void>(co_await sleep_for(1ms));
      static_cast<void>(co_await stream.write("text"));
      Buffer all;
      for (;;) {
        const auto got = co_await stream.read(all);
        if (!got || *got == 0) break;
      }
      co_return all.to_string();
    };
    EXPECT_EQ(result_of(ask(server.endpoint(), value)), "some text");
    run(server.shut_down(value));
  }
}

TEST_P(LongestDurations, of_clients_connect_again) {
  for (const Duration value : {Duration::max(), Duration::min()}) {
    auto server = TcpServer::listen(loop(), anywhere).value();
    server.serve({.on_connection = [](Connection& connection) { connection.close(); }});
    StreamClientOptions options;
    options.connect = connect_options(value);
    options.retry.delay = options.retry.delay_max = options.stable_after = value;
    int count = 0;
    StreamClient client(loop(), server.endpoint().to_string(),
                        {.on_connection = [&](Connection&) { ++count; }}, std::move(options));
    client.start();
    EXPECT_TRUE(run_until([&] { return count > 0; }));
    run_iterations();
    client.stop();
  }
}

TEST_P(LongestDurations, of_timers_and_tasks_never_end) {
  int count = 0;
  Timer timer(loop(), [&] { ++count; });
  WallTimer wall_timer(loop(), [&] { ++count; });
  timer.start(Duration::max(), Duration::max());
  EXPECT_EQ(timer.deadline(), never);
  for (const Duration offset : values()) {
    EXPECT_TRUE(wall_timer.start_every(Duration::max(), offset));
    run_iterations();
    EXPECT_FALSE(wall_timer.start_every(Duration::min(), offset));
  }
  TaskScope scope(loop());
  scope.spawn([](int& counted) -> Task<> {
    const auto slept = co_await sleep_for(Duration::max());
    if (slept) ++counted;
  }(count));
  run([](int& counted) -> Task<> {
    const auto slept = co_await timeout(Duration::max(), sleep_for(1ms));
    if (!slept) ++counted;
  }(count));
  scope.request_stop();
  run_iterations();
  EXPECT_EQ(count, 0);
}

TEST_P(LongestDurations, of_other_objects_are_valid) {
  for (const Duration value : values()) {
    FileStatus status(loop(), "/proc/self/status", [](const FileState&, const FileState&) {},
                      {.interval = value, .always_poll = true});
    EXPECT_TRUE(status.start());
    auto process = Process::spawn(
        loop(), {.arguments = {"true"}, .group = ProcessGroup::new_group, .timeout = value});
    ASSERT_TRUE(process);
    if (value > Duration::zero()) process->terminate(value);
    const auto ended = result_of([](Process& awaited) -> Task<bool> {
      const auto got = co_await awaited.wait();
      co_return got.has_value();
    }(*process));
    EXPECT_TRUE(ended);
  }
}

TEST_P(LongestDurations, of_loops_run_posted_tasks) {
  // On a thread of its own, whose timer slack stays.
  std::jthread thread([this] {
    for (const Duration value : {Duration::max(), Duration::min()}) {
      LoopOptions chosen = options();
      chosen.spin = chosen.timer_slack = value;
      EventLoop loop(chosen);
      loop.set_stall_detector(value, [](const Stall&) {});
      int left = 3;
      std::function<void()> post = [&] {
        if (--left > 0) loop.post([&] { post(); });
      };
      loop.ref();
      loop.post([&] { post(); });
      while (left > 0) loop.run_once();
      loop.unref();
    }
  });
}

TEST(LongestDurationsInSimulation, deliver_nothing_or_at_once) {
  for (const Duration value : {Duration::max(), Duration::min()}) {
    SCOPED_TRACE(value.count());
    sim::Options options;
    options.delay_min = options.delay_max = options.retransmit_delay = value;
    options.connect_timeout = options.stream_timeout = options.lateness_max = value;
    options.datagram_reordering = 1;
    options.trace = false;
    sim::Simulation simulation(1, options);
    sim::Host& host = simulation.add_host("one");
    sim::Host& other = simulation.add_host("two");
    EventLoop loop(host.loop_options());
    EventLoop peer(other.loop_options());
    const auto at = [](const sim::Host& subject) {
      return Endpoint::parse(subject.ip() + ":7").value();
    };
    auto socket = UdpSocket::bind(loop, at(host)).value();
    auto sender = UdpSocket::bind(peer, at(other)).value();
    int received = 0;
    spawn(loop, [](UdpSocket& from, int& count) -> Task<> {
      DatagramBatch batch(1, 100);
      const auto got = co_await from.receive(batch);
      if (got) ++count;
    }(socket, received));
    for (int i = 0; i < 10; ++i)
      EXPECT_TRUE(sender.try_send_to(std::as_bytes(std::span("text")), at(host)));
    simulation.run_for(1h);
    EXPECT_EQ(received, value > Duration::zero() ? 0 : 1);
    socket.close();
    simulation.run_for(1h);
  }
}

}  // namespace
}  // namespace tambour::longest_durations_test
