// A reverse proxy between clients and three servers in many simulated networks with resets,
// partitions, a server that leaves and one that is killed: each answer belongs to its request, no
// request that is not idempotent is executed twice, every request ends, and no connection is left
// over. After the faults, each request is answered.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/proxy/proxied.h"
#include "support/scale.h"

namespace tambour::simulation_test {
namespace {

using http::Method;
using http::Request;
using http::Response;
using namespace std::chrono_literals;

constexpr int servers = 3;
constexpr int workers = 6;
constexpr int requests_per_worker = 5;

std::string body_of(int id, std::size_t bytes) {
  std::string body = std::to_string(id) + ":";
  while (body.size() < bytes) body += static_cast<char>('a' + (body.size() * 7 + id) % 26);
  return body;
}

/// How often each request was executed, on any server.
using Executions = std::map<int, int>;

/// Answers "/ID/BYTES" with a body of that size, after a while.
class Service {
 public:
  Service(sim::Simulation& simulation, const std::string& name, Executions& executions)
      : simulation_(simulation),
        host_(simulation.add_host(name)),
        loop_(host_.loop_options()),
        executions_(executions) {
    http::ServerOptions options;
    options.listen.on_error = [](std::exception_ptr) {};
    auto server = http::Server::listen(
        loop_, test::endpoint_of(host_, 80),
        [this](Request& request, Response& response) { return answer(request, response); },
        std::move(options));
    if (server) server_.emplace(std::move(*server));
  }

  [[nodiscard]] sim::Host& host() { return host_; }
  [[nodiscard]] std::string url() const {
    return "http://" + test::endpoint_of(host_, 80).to_string();
  }
  [[nodiscard]] bool listens() const { return server_.has_value(); }
  /// Ends the server with its connections and requests.
  void kill() {
    loop_.post([this] { server_.reset(); });
  }

 private:
  Task<> answer(Request& request, Response& response) {
    const std::string path(request.path());
    if (path == "/health") {
      response.send("ok");
      co_return;
    }
    const std::size_t slash = path.find('/', 1);
    const int id = std::stoi(path.substr(1, slash - 1));
    const std::size_t bytes = std::stoul(path.substr(slash + 1));
    const auto body = co_await request.body().read_all();
    if (!body) co_return;
    if (request.method() == Method::post && body->to_string() != body_of(id, bytes))
      simulation_.fail("request " + path + " has another body");
    ++executions_[id];
    if (id % 3 == 0) {
      const auto slept = co_await sleep_for(Duration(simulation_.random(400'000'000)));
      if (!slept) co_return;
    }
    const std::string text = body_of(id, bytes);
    if (id % 2 == 0) {
      response.send(text);
      co_return;
    }
    if (id % 5 == 0) response.set_length(bytes < text.size() ? text.size() : bytes);
    const auto first = co_await response.write(std::string_view(text).substr(0, bytes / 2));
    if (first) static_cast<void>(co_await response.write(std::string_view(text).substr(bytes / 2)));
  }

  sim::Simulation& simulation_;
  sim::Host& host_;
  EventLoop loop_;
  Executions& executions_;
  std::optional<http::Server> server_;
};

class Clients {
 public:
  Clients(sim::Simulation& simulation, sim::Host& proxy, Executions& executions)
      : host(simulation.add_host("client")),
        simulation_(simulation),
        executions_(executions),
        url_("http://" + test::endpoint_of(proxy, 80).to_string() + "/"),
        loop_(host.loop_options()),
        client_(loop_, options()),
        tasks_(loop_) {
    for (int i = 0; i < workers; ++i) tasks_.spawn(work(i * requests_per_worker));
  }

  void start_last_requests() {
    for (int i = 0; i < workers; ++i) tasks_.spawn(last_request(1000 + i));
  }
  [[nodiscard]] bool done() const { return tasks_.empty(); }
  [[nodiscard]] int succeeded() const { return succeeded_; }
  [[nodiscard]] int last_succeeded() const { return last_succeeded_; }

  sim::Host& host;

 private:
  static http::ClientOptions options() {
    http::ClientOptions chosen;
    chosen.timeout = 60s;
    chosen.idle_timeout = 5s;
    return chosen;
  }

  Task<> work(int first_id) {
    for (int id = first_id; id < first_id + requests_per_worker; ++id) {
      if (simulation_.random(8) == 0) {
        const auto limit = Duration(simulation_.random(300'000'000));
        static_cast<void>(co_await timeout(limit, request(id)));
      } else {
        co_await request(id);
      }
    }
  }

  Task<> request(int id) {
    const std::size_t bytes = simulation_.random(id % 4 == 0 ? 60'000 : 1'000);
    const bool posts = simulation_.random(2) == 0;
    http::ClientRequest request(url_ + std::to_string(id) + "/" + std::to_string(bytes));
    if (posts) {
      request.method = Method::post;
      request.body = Buffer(body_of(id, bytes));
      request.expect_continue = simulation_.random(4) == 0;
    }
    auto response = co_await client_.send(std::move(request));
    std::optional<std::string> text;
    if (response) {
      auto read = co_await response->read_text();
      if (read) text = std::move(*read);
    }
    const bool has_answer = text && response->status() == http::Status::ok;
    if (has_answer && *text != body_of(id, bytes))
      simulation_.fail("request " + std::to_string(id) + " has another answer");
    if (has_answer && executions_[id] == 0) simulation_.fail("an answer without a request");
    if (posts && executions_[id] > 1)
      simulation_.fail("request " + std::to_string(id) + " was executed twice");
    succeeded_ += has_answer ? 1 : 0;
  }

  Task<> last_request(int id) {
    auto response = co_await client_.get(url_ + std::to_string(id) + "/1000");
    if (!response) co_return;
    const auto text = co_await response->read_text();
    last_succeeded_ += text && *text == body_of(id, 1000) ? 1 : 0;
  }

  sim::Simulation& simulation_;
  Executions& executions_;
  std::string url_;
  EventLoop loop_;
  http::Client client_;
  int succeeded_ = 0;
  int last_succeeded_ = 0;
  TaskScope tasks_;
};

http::ReverseProxyOptions proxy_options(const std::vector<std::unique_ptr<Service>>& services) {
  http::ReverseProxyOptions options;
  for (const auto& service : services) options.upstreams.push_back({service->url()});
  options.balancing = http::Balancing::least_requests;
  options.health_check.path = "/health";
  options.ejection.failures_max = 2;
  options.ejection.delay_max = 10s;
  options.connections_max = 2;
  options.connect.timeout = 3s;
  options.head_timeout = 10s;
  options.body_idle_timeout = 10s;
  options.total_timeout = 60s;
  options.idle_connection_timeout = 5s;
  return options;
}

void play(sim::Simulation& simulation, int& succeeded) {
  Executions executions;
  std::vector<std::unique_ptr<Service>> services;
  for (int i = 0; i < servers; ++i) {
    services.push_back(
        std::make_unique<Service>(simulation, "server" + std::to_string(i), executions));
    if (!services.back()->listens()) return;  // No descriptor or memory, with some seeds.
  }
  sim::Host& proxy_host = simulation.add_host("proxy");
  EventLoop proxy_loop(proxy_host.loop_options());
  std::optional<http::ReverseProxy> proxy;
  std::optional<http::Server> front;
  try {
    proxy.emplace(or_throw(http::ReverseProxy::create(proxy_loop, proxy_options(services))));
    http::ServerOptions options;
    options.listen.on_error = [](std::exception_ptr) {};
    front.emplace(or_throw(http::Server::listen(proxy_loop, test::endpoint_of(proxy_host, 80),
                                                proxy->handler(), std::move(options))));
  } catch (const std::exception&) {
    return;
  }
  Clients clients(simulation, proxy_host, executions);
  for (const auto& service : services) {
    sim::Host& host = service->host();
    const auto at = Duration(simulation.random(2'000'000'000));
    simulation.after(at, [&] { simulation.partition(proxy_host, host); });
    simulation.after(at + Duration(simulation.random(5'000'000'000)),
                     [&] { simulation.heal(proxy_host, host); });
  }
  simulation.after(Duration(simulation.random(3'000'000'000)),
                   [&] { proxy->set_draining(services[0]->url(), true); });
  simulation.after(Duration(simulation.random(3'000'000'000)), [&] { services[1]->kill(); });
  for (int i = 0; i < 40 && !clients.done() && simulation.failure().empty(); ++i)
    simulation.run_for(1min);
  if (!clients.done()) simulation.fail("a request has not ended");
  // Nothing of the faults is left: without further ones, each request gets its answer.
  const sim::Options calm;
  simulation.options() = calm;
  simulation.run_for(30s);
  clients.start_last_requests();
  simulation.run_for(5s);
  if (clients.last_succeeded() != workers) simulation.fail("a request without faults was lost");
  simulation.run_for(1min);
  if (proxy->stats().active != 0) simulation.fail("the proxy still has requests");
  proxy.reset();  // It would check its servers all the time.
  simulation.run_for(20min);
  if (front->connections() != 0) simulation.fail("the proxy still has connections of clients");
  succeeded += clients.succeeded();
}

TEST(ProxySimulation, no_request_is_lost_doubled_or_answered_wrongly) {
  int succeeded = 0;
  const auto options = [](std::uint64_t seed) {
    sim::Options chosen = sim::Options::rough(seed);
    chosen.trace = std::getenv("TAMBOUR_SIM_SEED") != nullptr;
    return chosen;
  };
  const char* const seeds = std::getenv("TAMBOUR_TEST_SEEDS");
  const int count = seeds != nullptr ? std::atoi(seeds) : test::sanitized ? 20 : 50;
  const auto failure = sim::simulate(
      {.first = 1, .count = static_cast<std::uint64_t>(count)},
      [&](sim::Simulation& simulation) { play(simulation, succeeded); }, options);
  EXPECT_FALSE(failure) << failure->report();
  // The faults must leave enough requests to find mistakes.
  EXPECT_GT(succeeded, count * 8);
}

}  // namespace
}  // namespace tambour::simulation_test
