// The HTTP client and server in hundreds of simulated networks with resets, partitions, slow ends,
// and a server that is replaced (GOAWAY over HTTP/2), with compressed answers, a proxy, repeated
// and cancelled requests: each answer belongs to its request, no request that is not idempotent is
// executed twice, every request ends, and no connection is left over. After the faults, each
// request is answered, and the pool has its size.
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

#include "http/support/tunnel_proxy.h"
#include "support/scale.h"

namespace tambour::simulation_test {
namespace {

using http::Client;
using http::ClientRequest;
using http::Method;
using namespace std::chrono_literals;

constexpr std::uint16_t port = 80;
constexpr int workers_per_client = 3;
constexpr int requests_per_worker = 6;
constexpr int connections_max = 2;

/// The body of a request, or of the answer to it.
std::string body_of(int id, std::size_t bytes) {
  std::string body = std::to_string(id) + ":";
  while (body.size() < bytes) body += static_cast<char>('a' + (body.size() * 7 + id) % 26);
  return body;
}

class Pieces final : public http::BodySource {
 public:
  explicit Pieces(std::string body) : body_(std::move(body)) {}
  Task<Result<>> read(Buffer& into) override {
    constexpr std::size_t piece = 10'000;
    into.append(std::string_view(body_).substr(at_, piece));
    at_ += piece < body_.size() - at_ ? piece : body_.size() - at_;
    if (at_ % 2 == 0) co_return co_await sleep_for(1ms);
    co_return {};
  }

 private:
  std::string body_;
  std::size_t at_ = 0;
};

/// Answers "/ID/BYTES" with a body of that size, after a while; counts how often.
class Service {
 public:
  Service(sim::Simulation& simulation, sim::Host& host)
      : simulation_(simulation), address_(host.endpoint(port)), loop_(host.loop_options()) {
    if (!listen()) simulation.stop();  // No descriptor, with some seeds.
  }

  /// At `at`, the server shuts down. After a while, another one replaces it, which ends the
  /// connections that are left.
  void replace_server(Duration at) {
    simulation_.after(at, [this] { loop_.post([this] { begin_drain(); }); });
    simulation_.after(at + Duration(simulation_.random(3'000'000'000)),
                      [this] { loop_.post([this] { end_drain(); }); });
  }

  [[nodiscard]] int executed(int id) { return executed_[id]; }
  [[nodiscard]] std::size_t connections() const { return server_ ? server_->connections() : 0; }
  [[nodiscard]] bool listens() const { return server_.has_value(); }

 private:
  [[nodiscard]] bool listen() {
    http::ServerOptions options;
    // Without it, the exception of a simulated lack of memory would end the loop.
    options.listen.on_error = [](std::exception_ptr) {};
    auto server = http::Server::listen(
        loop_,
        Endpoint::from(reinterpret_cast<const sockaddr*>(&address_), sizeof address_).value(),
        compressed([this](http::Request& request, http::Response& response) {
          return answer(request, response);
        }),
        std::move(options));
    if (server) server_.emplace(std::move(*server));
    return server.has_value();
  }
  void begin_drain() {
    drain_.emplace(loop_);
    drain_->spawn([](http::Server& server) -> Task<> { co_await server.shut_down(1s); }(*server_));
  }
  void end_drain() {
    drain_.reset();
    server_.reset();
    while (!listen()) continue;
  }

  static http::Handler compressed(http::Handler handler) {
    http::Router router;
    router.use(or_throw(http::compress({.codings = {http::Coding::gzip}, .bytes_min = 100})));
    router.any("/{path...}", std::move(handler));
    return std::move(router).handler();
  }

  Task<> answer(http::Request& request, http::Response& response) {
    const std::string path(request.path());
    const std::size_t slash = path.find('/', 1);
    const int id = std::stoi(path.substr(1, slash - 1));
    const std::size_t bytes = std::stoul(path.substr(slash + 1));
    const auto body = co_await request.body().read_all();
    if (!body) co_return;  // The server answers, if the client still listens.
    if (request.method() == Method::post && body->to_string() != body_of(id, bytes))
      simulation_.fail("request " + path + " has another body");
    ++executed_[id];
    if (id % 3 == 0) {
      const auto slept = co_await sleep_for(Duration(simulation_.random(50'000'000)));
      if (!slept) co_return;
    }
    const std::string text = body_of(id, bytes);
    static_cast<void>(response.headers().set("Content-Type", id % 5 == 0 ? "a/b" : "text/plain"));
    if (id % 2 == 0) {
      response.send(text);
      co_return;
    }
    const auto first = co_await response.write(std::string_view(text).substr(0, bytes / 2));
    if (first) static_cast<void>(co_await response.write(std::string_view(text).substr(bytes / 2)));
  }

  sim::Simulation& simulation_;
  sockaddr_in address_;
  EventLoop loop_;
  std::map<int, int> executed_;
  std::optional<http::Server> server_;
  std::optional<TaskScope> drain_;
};

class Machine {
 public:
  /// `proxy` is empty if there is none.
  Machine(sim::Simulation& simulation, sim::Host& local, sim::Host& server, Service& service,
          int first_id, const std::string& proxy, http::VersionChoice version)
      : host(local),
        simulation_(simulation),
        service_(service),
        loop_(local.loop_options()),
        client_(loop_, options(proxy, version)),
        last_id_(first_id + workers_per_client * requests_per_worker),
        tasks_(loop_) {
    const sockaddr_in at = server.endpoint(port);
    authority_ = Endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof at)->to_string();
    for (int i = 0; i < workers_per_client; ++i)
      tasks_.spawn(work(first_id + i * requests_per_worker));
  }

  /// Makes a request on each of more connections than the pool may have.
  void start_last_requests() {
    for (int i = 0; i < 2 * connections_max; ++i) tasks_.spawn(last_request(last_id_ + i));
  }

  [[nodiscard]] bool done() const { return tasks_.empty(); }
  [[nodiscard]] bool has_last_answers() const { return last_succeeded_ == 2 * connections_max; }
  /// All connections are unused, and there are as many as requests could use.
  [[nodiscard]] bool has_whole_pool() const {
    // Requests over HTTP/2 share one.
    const bool is_shared = client_.http_2_stats().connections > 0;
    const std::size_t all = client_.connections();
    const bool has_size = is_shared ? all >= 1 && all <= connections_max : all == connections_max;
    return has_size && client_.idle_connections() == all;
  }
  [[nodiscard]] std::size_t connections() const { return client_.connections(); }
  [[nodiscard]] int succeeded() const { return succeeded_; }

  sim::Host& host;

 private:
  static http::ClientOptions options(const std::string& proxy, http::VersionChoice version) {
    http::ClientOptions chosen;
    chosen.version = version;
    chosen.connections_per_origin_max = connections_max;
    chosen.idle_timeout = 5s;
    chosen.timeout = 40s;
    if (proxy.empty()) {
      chosen.retry.attempts_max = 2;
    } else {
      chosen.connect.proxy = proxy;
    }
    return chosen;
  }

  Task<> work(int first_id) {
    for (int id = first_id; id < first_id + requests_per_worker; ++id) {
      const auto limit = Duration(simulation_.random(200'000'000));
      switch (simulation_.random(8)) {
        case 0:  // Asked to stop.
          static_cast<void>(co_await timeout(limit, request(id)));
          break;
        case 1: {  // Destroyed.
          TaskScope scope(loop_);
          scope.spawn(request(id));
          static_cast<void>(co_await sleep_for(limit));
          break;
        }
        default:
          co_await request(id);
      }
    }
  }

  Task<> last_request(int id) {
    auto response =
        co_await client_.get("http://" + authority_ + "/" + std::to_string(id) + "/1000");
    if (!response) co_return;
    const auto text = co_await response->read_text();
    last_succeeded_ += text && *text == body_of(id, 1000) ? 1 : 0;
  }

  Task<> request(int id) {
    const std::size_t bytes = simulation_.random(id % 6 == 0 ? 100'000 : 1'000);
    const bool posts = simulation_.random(2) == 0;
    ClientRequest request("http://" + authority_ + "/" + std::to_string(id) + "/" +
                          std::to_string(bytes));
    if (posts) {
      request.method = Method::post;
      if (simulation_.random(2) == 0) {
        request.source = std::make_unique<Pieces>(body_of(id, bytes));
      } else {
        request.body = Buffer(body_of(id, bytes));
      }
      request.expect_continue = simulation_.random(4) == 0;
    }
    auto response = co_await client_.send(std::move(request));
    std::optional<std::string> text;
    if (response) {
      auto read = co_await response->read_text();
      if (read) text = std::move(*read);
    }
    // Without memory or descriptors, the server may answer 500.
    const bool has_answer = text && response->status() == http::Status::ok;
    if (has_answer && *text != body_of(id, bytes))
      simulation_.fail("request " + std::to_string(id) + " has another answer");
    if (has_answer && service_.executed(id) == 0) simulation_.fail("an answer without a request");
    if (posts && service_.executed(id) > 1)
      simulation_.fail("request " + std::to_string(id) + " was executed twice");
    succeeded_ += has_answer ? 1 : 0;
  }

  sim::Simulation& simulation_;
  Service& service_;
  EventLoop loop_;
  Client client_;
  std::string authority_;
  int last_id_;
  int succeeded_ = 0;
  int last_succeeded_ = 0;
  TaskScope tasks_;
};

void play(sim::Simulation& simulation, http::VersionChoice version, int& succeeded) {
  sim::Host& server_host = simulation.add_host("server");
  Service service(simulation, server_host);
  if (!service.listens()) return;
  sim::Host& proxy_host = simulation.add_host("proxy");
  EventLoop proxy_loop(proxy_host.loop_options());
  std::optional<test::TunnelProxy> proxy;
  try {
    const sockaddr_in at = proxy_host.endpoint(1080);
    proxy.emplace(proxy_loop,
                  Endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof at).value());
  } catch (const std::exception&) {
    return;  // No descriptor or memory, with some seeds.
  }
  std::vector<std::unique_ptr<Machine>> machines;
  for (const char* const name : {"one", "two"}) {
    const std::string by = machines.empty() ? "" : "socks5://" + proxy->authority();
    machines.push_back(std::make_unique<Machine>(simulation, simulation.add_host(name), server_host,
                                                 service, static_cast<int>(machines.size()) * 1000,
                                                 by, version));
  }
  for (const auto& machine : machines) {
    sim::Host& host = machine->host;
    const auto at = Duration(simulation.random(2'000'000'000));
    simulation.after(at, [&] { simulation.partition(server_host, host); });
    simulation.after(at + Duration(simulation.random(3'000'000'000)),
                     [&] { simulation.heal(server_host, host); });
  }
  if (simulation.random(2) == 0) service.replace_server(Duration(simulation.random(1'000'000'000)));
  const auto all = [&](auto holds) {
    for (const auto& machine : machines) {
      if (!holds(*machine)) return false;
    }
    return true;
  };
  const auto is_done = [&] { return all([](const Machine& machine) { return machine.done(); }); };
  for (int i = 0; i < 40 && !is_done() && simulation.failure().empty(); ++i)
    simulation.run_for(1min);
  if (!is_done()) simulation.fail("a request has not ended");
  // Nothing of the faults is left: without further ones, each request gets its answer.
  const sim::Options calm;
  simulation.options() = calm;
  simulation.run_for(30s);
  for (const auto& machine : machines) machine->start_last_requests();
  simulation.run_for(3s);
  if (!all([](const Machine& machine) { return machine.has_last_answers(); }))
    simulation.fail("a request without faults was lost");
  if (!all([](const Machine& machine) { return machine.has_whole_pool(); }))
    simulation.fail("the pool of a client has not its size");
  simulation.run_for(30s);
  if (!all([](const Machine& machine) { return machine.connections() == 0; }))
    simulation.fail("a client still has connections");
  // What a reset or a partition has left, the server's own time limits end.
  simulation.run_for(20min);
  if (service.connections() != 0) simulation.fail("the server still has connections");
  for (const auto& machine : machines) succeeded += machine->succeeded();
}

void play_with_seeds(http::VersionChoice version, std::size_t count) {
  int succeeded = 0;
  const auto options = [](std::uint64_t seed) {
    sim::Options chosen = sim::Options::rough(seed);
    chosen.trace = std::getenv("TAMBOUR_SIM_SEED") != nullptr;  // Half of the time.
    return chosen;
  };
  const auto failure = sim::simulate(
      {.first = 1, .count = count},
      [&](sim::Simulation& simulation) { play(simulation, version, succeeded); }, options);
  EXPECT_FALSE(failure) << failure->report();
  // The faults must leave enough requests to find mistakes.
  EXPECT_GT(succeeded, static_cast<int>(count) * 10);
}

/// `make test-all` plays 1,000 networks with each version.
std::size_t seeds_or(std::size_t count) {
  const char* const seeds = std::getenv("TAMBOUR_TEST_SEEDS");
  return seeds != nullptr ? std::strtoul(seeds, nullptr, 10) : count;
}

TEST(ClientSimulation, no_request_is_lost_doubled_or_answered_wrongly) {
  play_with_seeds(http::VersionChoice::http_1, seeds_or(test::scaled(200)));
}

TEST(ClientSimulation, no_request_over_http_2_is_lost_doubled_or_answered_wrongly) {
  play_with_seeds(http::VersionChoice::http_2, seeds_or(50));
}

}  // namespace
}  // namespace tambour::simulation_test
