// inspector::Collector: the statistics of the library as metrics.
#include <tambour/inspector/collector.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "inspector/observed_server.h"
#include "support/temporary_folder.h"

namespace tambour::collector_test {
namespace {

using namespace std::chrono_literals;
using inspector::Collector;

/// The value of a sample; -1 if there is none.
double value_in(const std::string& text, const std::string& sample) {
  const std::size_t found = ("\n" + text).find("\n" + sample + " ");
  return found == std::string::npos ? -1 : std::stod(text.substr(found + sample.size()));
}

class Collectors : public test::ObservedServer {
 public:
  Collectors() {
    serve([](http::Request&, http::Response& response) { response.send("hello"); });
  }
  double value(const std::string& sample) const {
    return value_in(metrics::format_metrics(registry_), sample);
  }

  metrics::Registry registry_;
};

TEST_F(Collectors, show_loops_and_servers) {
  Collector collector(registry_);
  collector.add(loops_, "web");
  collector.add(*server_, "api");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get(server_->endpoint(), "/"), "hello");
  EXPECT_EQ(value("tambour_server_accepted_total{server=\"api\"}"), 3);
  EXPECT_GT(value("tambour_server_connections_max{server=\"api\"}"), 0);
  EXPECT_EQ(value("tambour_http2_connections_total{server=\"api\"}"), 0);
  // A loop publishes what it has counted at the end of the iteration.
  const auto sum = [&](const std::string& name) {
    return value(name + "{loop=\"web/0\"}") + value(name + "{loop=\"web/1\"}");
  };
  while (sum("tambour_loop_callbacks_total") < 3) std::this_thread::yield();
  while (sum("tambour_loop_callback_seconds_total") <= 0) std::this_thread::yield();
  EXPECT_GT(sum("tambour_loop_iteration_seconds_count"), 0);
  EXPECT_GE(sum("tambour_loop_posted_total"), 0);
}

TEST_F(Collectors, show_a_loop_that_a_callback_blocks) {
  Collector collector(registry_);
  collector.add(loops_, "web");
  std::atomic<bool> is_blocked = false;
  std::atomic<bool> ends = false;
  // In a later iteration than the observation has begun in.
  while (value("tambour_loop_iterations_total{loop=\"web/1\"}") < 1) {
    loops_[1].post([] {});
    std::this_thread::sleep_for(1ms);
  }
  loops_[1].post([&] {
    is_blocked = true;
    while (!ends) std::this_thread::yield();
  });
  while (!is_blocked) std::this_thread::yield();
  while (value("tambour_loop_running_callback_seconds{loop=\"web/1\"}") < 0.02)
    std::this_thread::sleep_for(1ms);
  ends = true;
  while (value("tambour_loop_stalls_total{loop=\"web/1\"}") < 1) std::this_thread::yield();
  // The loop may have to run another iteration before it says that it waits.
  while (value("tambour_loop_running_callback_seconds{loop=\"web/1\"}") != 0)
    std::this_thread::yield();
  EXPECT_GE(value("tambour_loop_iteration_seconds_sum{loop=\"web/1\"}"), 0.02);
}

TEST_F(Collectors, show_a_loop_that_was_blocked_before) {
  std::atomic<bool> is_blocked = false;
  std::atomic<bool> ends = false;
  loops_[1].post([&] {
    is_blocked = true;
    while (!ends) std::this_thread::yield();
  });
  while (!is_blocked) std::this_thread::yield();
  Collector collector(registry_);
  collector.add(loops_, "web");
  const std::string running = "tambour_loop_running_callback_seconds{loop=\"web/1\"}";
  for (int i = 0; i < 5000 && value(running) < 0.02; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_GE(value(running), 0.02);
  ends = true;
  while (value(running) != 0) std::this_thread::yield();
}

TEST_F(Collectors, read_objects_of_loops_on_their_threads) {
  Collector collector(registry_);
  http::Client client(loop_);
  auto one_loop = or_throw(http::Server::listen(
      loop_, Endpoint::loopback_v4(0),
      [](http::Request&, http::Response& response) { response.send("hello"); }));
  collector.add(loop_, one_loop, "one");
  collector.add(loop_, client, "api");
  collector.add(loop_, dns::Resolver::of(loop_), "main");
  collector.add(WorkerPool::shared(), "shared");
  auto ask = [](http::Client& asking, Endpoint at) -> Task<> {
    auto sent = co_await asking.get("http://" + at.to_string() + "/");
    http::ClientResponse response = or_throw(std::move(sent), "get");
    auto text = co_await response.read_text();
    EXPECT_EQ(or_throw(std::move(text), "read"), "hello");
    auto ended = co_await WorkerPool::shared().run(+[] { return 1; });
    EXPECT_TRUE(ended);
  };
  block_on(loop_, ask(client, one_loop.endpoint()));
  EXPECT_EQ(value("tambour_http_client_connections{client=\"api\"}"), 0);
  block_on(loop_, collector.refresh(1min));
  EXPECT_EQ(value("tambour_http_client_connections{client=\"api\"}"), 1);
  EXPECT_EQ(value("tambour_http_client_idle_connections{client=\"api\"}"), 1);
  EXPECT_EQ(value("tambour_server_accepted_total{server=\"one\"}"), 1);
  EXPECT_GE(value("tambour_workers_completed_total{pool=\"shared\"}"), 1);
  EXPECT_EQ(value("tambour_dns_queries_in_flight{resolver=\"main\"}"), 0);
}

TEST_F(Collectors, count_the_queries_of_dns_servers) {
  auto server = or_throw(dns::Server::listen(
      loop_, Endpoint::loopback_v4(0),
      [](const dns::Request&, dns::Message& response) { response.rcode = dns::Rcode::refused; }));
  dns::Resolver resolver(loop_, {.servers = {server.endpoint()}});
  Collector collector(registry_);
  collector.add(loop_, server, "zone");
  const auto ask = [](dns::Resolver& asked) -> Task<> {
    static_cast<void>(co_await asked.query("a.example", dns::Type::a));
  };
  block_on(loop_, ask(resolver));
  EXPECT_EQ(value("tambour_dns_server_udp_queries_total{server=\"zone\"}"), 0);
  block_on(loop_, collector.refresh(1min));
  EXPECT_GE(value("tambour_dns_server_udp_queries_total{server=\"zone\"}"), 1);
  EXPECT_EQ(value("tambour_dns_server_tcp_queries_total{server=\"zone\"}"), 0);
  EXPECT_EQ(value("tambour_dns_server_malformed_queries_total{server=\"zone\"}"), 0);
}

/// A resolver, a client and a server of a loop that is scraped by another one.
TEST_F(Collectors, answer_on_every_loop_and_without_waiting_for_one_that_is_blocked) {
  std::optional<Collector> collector(registry_);
  http::Client* client = nullptr;
  std::atomic<bool> is_added = false;
  loops_[1].post([&] {
    client = new http::Client(loops_[1]);
    collector->add(loops_[1], *client, "api");
    is_added = true;
  });
  while (!is_added) std::this_thread::yield();
  auto debug =
      or_throw(http::Server::listen(loop_, Endpoint::loopback_v4(0), collector->handler()));
  // The handler waits for the loop for at most a second. On a busy machine, the loop may not answer
  // in that time.
  double connections = -1;
  while (connections < 0) {
    connections =
        value_in(get(debug.endpoint(), "/"), "tambour_http_client_connections{client=\"api\"}");
  }
  EXPECT_EQ(connections, 0);
  std::atomic<bool> ends = false;
  loops_[1].post([&] {
    while (!ends) std::this_thread::yield();
  });
  block_on(loop_, collector->refresh(10ms));
  EXPECT_EQ(value("tambour_http_client_connections{client=\"api\"}"), 0);
  ends = true;
  collector.reset();
  EXPECT_EQ(metrics::format_metrics(registry_), "");
  EXPECT_EQ(get(debug.endpoint(), "/"), "");
  std::atomic<bool> is_deleted = false;
  loops_[1].post([&] {
    delete client;
    is_deleted = true;
  });
  while (!is_deleted) std::this_thread::yield();
}

TEST_F(Collectors, outlive_loops) {
  std::optional<EventLoop> loop(std::in_place);
  Collector collector(registry_);
  collector.add(*loop, "main");
  loop->post([] {});
  loop->run();
  const double iterations = value("tambour_loop_iterations_total{loop=\"main\"}");
  EXPECT_GE(iterations, 1);
  loop.reset();
  EXPECT_EQ(value("tambour_loop_iterations_total{loop=\"main\"}"), iterations);
  EXPECT_EQ(value("tambour_loop_running_callback_seconds{loop=\"main\"}"), 0);
}

TEST(CollectorsOfGroups, a_loop_that_ends_before_it_answers_is_not_blocked) {
  metrics::Registry registry;
  Collector collector(registry);
  std::optional<LoopGroup> group(LoopGroupOptions{.threads = 1});
  std::atomic<bool> is_blocked = false;
  std::atomic<bool> ends = false;
  (*group)[0].post([&] {
    is_blocked = true;
    while (!ends) std::this_thread::yield();
  });
  while (!is_blocked) std::this_thread::yield();
  collector.add(*group, "web");
  group->stop();
  ends = true;
  group.reset();
  EXPECT_EQ(value_in(metrics::format_metrics(registry),
                     "tambour_loop_running_callback_seconds{loop=\"web/0\"}"),
            0);
}

TEST_F(Collectors, have_names_as_promtool_wants_them) {
  if (std::system("command -v promtool > /dev/null") != 0)
    GTEST_SKIP() << "promtool is not installed: see tools/bootstrap";
  Collector collector(registry_);
  collector.add(loops_, "web");
  collector.add(*server_, "api");
  collector.add(loop_, dns::Resolver::of(loop_), "main");
  collector.add(WorkerPool::shared(), "shared");
  http::Client client(loop_);
  collector.add(loop_, client, "api");
  const auto zone = or_throw(dns::Server::listen(loop_, Endpoint::loopback_v4(0),
                                                 [](const dns::Request&, dns::Message&) {}));
  collector.add(loop_, zone, "zone");
  http::WebSocketTopic topic(loop_);
  collector.add(topic, "news");
  const http::Metrics requests(registry_);
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/metrics";
  std::FILE* const file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs(metrics::format_metrics(registry_).c_str(), file);
  std::fclose(file);
  EXPECT_EQ(test::printed_by("promtool check metrics < " + path), "");
}

}  // namespace
}  // namespace tambour::collector_test
