// How a reverse proxy chooses servers: balancing, failures, retries, checks, names, limits.
#include <netdb.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/proxy/proxied.h"

namespace tambour::upstreams_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;
using http::ReverseProxyOptions;
using http::Status;

class HttpUpstreams : public test::Proxied {
 public:
  /// The bodies of `count` responses to GET.
  std::string get_each(int count) {
    std::string bodies;
    for (int i = 0; i < count; ++i) bodies += get().body;
    return bodies;
  }
  /// Starts `count` requests at once, and returns the number of responses with each status.
  std::map<int, int> get_together(int count) {
    return run([](HttpUpstreams& self, int requests) -> Task<std::map<int, int>> {
      std::map<int, int> statuses;
      TaskScope scope(self.loop_);
      for (int i = 0; i < requests; ++i) {
        scope.spawn([&self, &statuses]() -> Task<> {
          const test::Reply reply = co_await self.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
          ++statuses[http::code_of(reply.status)];
        });
      }
      co_await scope.join();
      co_return statuses;
    }(*this, count));
  }
};

TEST_F(HttpUpstreams, options_are_checked) {
  const auto create = [&](std::string url) {
    ReverseProxyOptions options;
    options.upstreams = {{std::move(url)}};
    const auto proxy = http::ReverseProxy::create(server_loop_, std::move(options));
    return proxy ? Error() : proxy.error();
  };
  EXPECT_FALSE(create("http://10.0.0.1:80/base"));
  EXPECT_FALSE(create("https://name"));
  EXPECT_FALSE(create("unix:/run/server.sock"));
  EXPECT_EQ(create("ftp://a"), http::ErrorCode::url_bad_scheme);
  EXPECT_EQ(create("http://a?b"), http::ErrorCode::url_bad_character);
  EXPECT_TRUE(create("10.0.0.1:80"));
  EXPECT_EQ(http::ReverseProxy::create(server_loop_, {}).error(), system_error(EINVAL));
  ReverseProxyOptions options;
  options.upstreams = {{"http://a", 0}};
  EXPECT_EQ(http::ReverseProxy::create(server_loop_, options).error(), system_error(EINVAL));
  options.upstreams = {{"http://a"}};
  options.strip_prefix = "/a/";
  EXPECT_EQ(http::ReverseProxy::create(server_loop_, options).error(), system_error(EINVAL));
}

TEST_F(HttpUpstreams, take_turns_by_weight) {
  for (int i = 0; i < 3; ++i) add_counting_origin();
  ReverseProxyOptions options;
  options.upstreams = {{origins_[0]->url(), 1}, {origins_[1]->url(), 3}, {origins_[2]->url(), 1}};
  serve_proxy(std::move(options));
  EXPECT_EQ(get_each(10), "1012110121");
}

TEST_F(HttpUpstreams, the_least_used_one_is_chosen) {
  add_origin([](Request&, Response& response) -> Task<> {
    static_cast<void>(co_await sleep_for(100s));
    response.send("slow");
  });
  add_counting_origin();
  ReverseProxyOptions options;
  options.balancing = http::Balancing::least_requests;
  options.head_timeout = 200s;
  serve_proxy(std::move(options));
  EXPECT_EQ(get_together(2), (std::map<int, int>{{200, 2}}));
  const int before = origins_[1]->requests;
  std::map<int, int> both = run([](HttpUpstreams& self) -> Task<std::map<int, int>> {
    TaskScope scope(self.loop_);
    scope.spawn([&self]() -> Task<> {
      static_cast<void>(co_await self.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    });
    scope.spawn([&self]() -> Task<> {
      static_cast<void>(co_await self.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    });
    static_cast<void>(co_await sleep_for(1s));
    std::map<int, int> statuses;
    for (int i = 0; i < 20; ++i) {
      const test::Reply reply = co_await self.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      ++statuses[http::code_of(reply.status)];
    }
    co_await scope.join();
    co_return statuses;
  }(*this));
  EXPECT_EQ(both, (std::map<int, int>{{200, 20}}));
  EXPECT_GE(origins_[1]->requests - before, 19) << "the slow one has one request already";
}

TEST_F(HttpUpstreams, the_same_key_gets_the_same_server) {
  for (int i = 0; i < 4; ++i) add_counting_origin();
  ReverseProxyOptions options;
  options.balancing = http::Balancing::consistent_hash;
  options.hash_key = [](const Request& request) { return std::string(request.path()); };
  serve_proxy(std::move(options));
  std::map<std::string, std::string> servers;
  for (int i = 0; i < 40; ++i) {
    const std::string path = "/" + std::to_string(i);
    servers[path] = get(path).body;
    EXPECT_EQ(get(path).body, servers[path]);
  }
  for (const auto& added : origins_) EXPECT_GT(added->requests, 4);
  // Only the keys of a server that leaves move.
  proxy_->set_draining(origins_[2]->url(), true);
  for (const auto& [path, server] : servers) {
    const std::string now = get(path).body;
    if (server == "2") {
      EXPECT_NE(now, "2");
    } else {
      EXPECT_EQ(now, server);
    }
  }
}

TEST_F(HttpUpstreams, a_function_chooses) {
  for (int i = 0; i < 3; ++i) add_counting_origin();
  ReverseProxyOptions options;
  options.choose_upstream = [](const Request& request) -> std::optional<std::size_t> {
    if (request.path() == "/none") return std::nullopt;
    return 2;
  };
  serve_proxy(std::move(options));
  EXPECT_EQ(get_each(3), "222");
  EXPECT_EQ(get("/none").status, Status::ok);
}

TEST_F(HttpUpstreams, a_request_whose_connection_fails_goes_to_another_server) {
  add_origin();
  add_counting_origin();
  serve_proxy();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(post("body").body, "1");
  const auto status = proxy_->upstreams();
  EXPECT_GE(status[0].errors, 5U);
  EXPECT_EQ(status[0].ejections, 1U);
  EXPECT_TRUE(status[0].is_ejected);
  EXPECT_EQ(status[1].retries, status[0].errors);
  EXPECT_EQ(proxy_->stats().failures, 0U);
}

TEST_F(HttpUpstreams, without_a_server_the_answer_is_502) {
  add_origin();
  add_origin();
  ReverseProxyOptions options;
  int failures = 0;
  options.on_error = [&](const Request&, Response& response,
                         const http::ReverseProxyFailure& failure) {
    EXPECT_EQ(failure.status, Status::bad_gateway);
    EXPECT_EQ(failure.error, system_error(ECONNREFUSED));
    EXPECT_TRUE(failure.upstream.starts_with("http://"));
    if (++failures == 2) response.send(Status::ok, "rendered");
  };
  serve_proxy(std::move(options));
  const test::Reply reply = get();
  EXPECT_EQ(reply.status, Status::bad_gateway);
  EXPECT_EQ(reply.body, "502 Bad Gateway\n");
  EXPECT_EQ(get().body, "rendered");
  EXPECT_EQ(failures, 2);
  proxy_->set_draining(origins_[0]->url(), true);
  proxy_->set_draining(origins_[1]->url(), true);
}

TEST_F(HttpUpstreams, only_what_may_be_repeated_is) {
  // The request arrives, but its answer does not.
  test::Origin& broken = add_origin();
  broken.serve([&broken](Request&, Response&) {
    ++broken.requests;
    throw std::runtime_error("broken");
  });
  broken.server.reset();
  auto server = or_throw(TcpServer::listen(broken.loop, test::endpoint_of(broken.host, 80)));
  int arrived = 0;
  server.serve([&](TcpStream stream) -> Task<> {
    Buffer bytes;
    static_cast<void>(co_await stream.read(bytes));
    ++arrived;
  });
  add_counting_origin();
  ReverseProxyOptions options;
  options.ejection.failures_max = 0;
  serve_proxy(std::move(options));
  EXPECT_EQ(get_each(4), "1111");
  EXPECT_EQ(arrived, 2);
  const auto put = [&] {
    return http::code_of(
        run(request("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", http::Method::put))
            .status);
  };
  std::map<int, int> statuses;
  for (int i = 0; i < 4; ++i) ++statuses[put()];
  for (int i = 0; i < 4; ++i) ++statuses[http::code_of(post("x").status)];
  for (int i = 0; i < 4; ++i) ++statuses[http::code_of(post("").status)];
  EXPECT_EQ(statuses, (std::map<int, int>{{200, 6}, {502, 6}}));
  EXPECT_EQ(arrived, 8);
  EXPECT_EQ(origins_[1]->requests, 10) << "none was sent twice";
}

TEST_F(HttpUpstreams, statuses_can_cause_retries) {
  add_origin([](Request&, Response& response) { response.send(Status::service_unavailable); });
  add_counting_origin();
  ReverseProxyOptions options;
  options.retry.statuses = {Status::service_unavailable};
  serve_proxy(std::move(options));
  EXPECT_EQ(get_each(4), "1111");
  const int first = http::code_of(post("x").status);
  const int second = http::code_of(post("x").status);
  EXPECT_EQ(first + second, 703);
}

TEST_F(HttpUpstreams, retries_have_a_budget) {
  add_origin();
  add_counting_origin();
  ReverseProxyOptions options;
  options.ejection.failures_max = 0;
  options.retry.budget_max = 3;
  options.retry.budget = 0;
  serve_proxy(std::move(options));
  std::map<int, int> statuses;
  for (int i = 0; i < 20; ++i) ++statuses[http::code_of(get().status)];
  EXPECT_EQ(statuses, (std::map<int, int>{{200, 13}, {502, 7}}));
  EXPECT_EQ(proxy_->stats().retries, 3U);
  EXPECT_EQ(proxy_->stats().retries_refused, 7U);
}

TEST_F(HttpUpstreams, a_kept_connection_that_was_closed_is_replaced) {
  test::Origin& origin = add_origin();
  auto server = or_throw(TcpServer::listen(origin.loop, test::endpoint_of(origin.host, 80)));
  int connections = 0;
  // Closes the connection when the second request arrives.
  server.serve([&](TcpStream stream) -> Task<> {
    ++connections;
    Buffer bytes;
    static_cast<void>(co_await stream.read(bytes));
    static_cast<void>(co_await stream.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    static_cast<void>(co_await stream.read(bytes));
  });
  serve_proxy();
  EXPECT_EQ(get_each(3), "okokok");
  EXPECT_EQ(connections, 3);
  EXPECT_EQ(proxy_->upstreams()[0].errors, 0U);
}

TEST_F(HttpUpstreams, an_ejected_server_is_used_again) {
  test::Origin& origin = add_origin();
  add_counting_origin();
  ReverseProxyOptions options;
  options.ejection = {.failures_max = 2, .delay = 10s, .delay_max = 25s};
  serve_proxy(std::move(options));
  EXPECT_EQ(get_each(8), "11111111");
  EXPECT_EQ(proxy_->upstreams()[0].errors, 2U);
  wait(10s);
  EXPECT_EQ(get_each(8), "11111111");
  EXPECT_EQ(proxy_->upstreams()[0].errors, 3U) << "one more failure ejects it again";
  wait(10s);
  EXPECT_TRUE(proxy_->upstreams()[0].is_ejected) << "for twice the time";
  origin.serve([](Request&, Response& response) { response.send("0"); });
  wait(11s);
  const std::string both = get_each(4);
  EXPECT_TRUE(both == "0101" || both == "1010") << both;
}

TEST_F(HttpUpstreams, if_all_are_ejected_one_is_tried) {
  test::Origin& origin = add_origin();
  ReverseProxyOptions options;
  options.ejection.failures_max = 1;
  serve_proxy(std::move(options));
  EXPECT_EQ(get().status, Status::bad_gateway);
  EXPECT_TRUE(proxy_->upstreams()[0].is_ejected);
  origin.serve([](Request&, Response& response) { response.send("0"); });
  EXPECT_EQ(get().body, "0");
  EXPECT_FALSE(proxy_->upstreams()[0].is_ejected);
}

TEST_F(HttpUpstreams, checks_find_out_which_servers_work) {
  bool is_well = true;
  int checks = 0;
  add_origin([&](Request& request, Response& response) {
    if (request.path() != "/health") return void(response.send("0"));
    ++checks;
    EXPECT_EQ(request.head().authority, "check");
    response.send(is_well ? Status::ok : Status::internal_server_error);
  });
  add_counting_origin();
  ReverseProxyOptions options;
  options.health_check.path = "/health";
  options.health_check.host = "check";
  serve_proxy(std::move(options));
  const std::string both = get_each(4);
  EXPECT_TRUE(both == "0101" || both == "1010") << both;
  is_well = false;
  wait(8s);
  EXPECT_TRUE(proxy_->upstreams()[0].is_healthy);
  wait(14s);
  EXPECT_FALSE(proxy_->upstreams()[0].is_healthy);
  EXPECT_EQ(get_each(4), "1111");
  is_well = true;
  wait(12s);
  EXPECT_TRUE(proxy_->upstreams()[0].is_healthy);
  EXPECT_GE(checks, 5);
  proxy_->set_draining(origins_[1]->url(), true);
  is_well = false;
  wait(25s);
  EXPECT_EQ(get().status, Status::service_unavailable);
}

TEST_F(HttpUpstreams, slow_servers_have_limits) {
  add_origin([](Request& request, Response& response) -> Task<> {
    if (request.path() == "/head") static_cast<void>(co_await sleep_for(100s));
    if (request.path() == "/read") {
      while (!request.body().is_complete()) {
        static_cast<void>(co_await sleep_for(250ms));
        static_cast<void>(co_await request.body().read());
      }
    }
    if (request.path() == "/body") {
      static_cast<void>(co_await response.write("part"));
      static_cast<void>(co_await sleep_for(100s));
    }
    for (int i = 0; i < 5 && request.path() == "/drops"; ++i) {
      static_cast<void>(co_await response.write("x"));
      static_cast<void>(co_await sleep_for(8s));
    }
    response.end();
  });
  ReverseProxyOptions options;
  options.head_timeout = 10s;
  options.body_idle_timeout = 10s;
  serve_proxy(std::move(options));
  EXPECT_EQ(get("/head").status, Status::gateway_timeout);
  EXPECT_EQ(get("/body").status, Status(0));
  EXPECT_EQ(get("/drops").body, "xxxxx");
  const std::string body(6'000'000, 'x');
  const test::Reply reply =
      run(request("POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 6000000\r\n\r\n" + body,
                  http::Method::post));
  EXPECT_EQ(reply.status, Status::ok) << "the upload made progress";
  EXPECT_EQ(proxy_->stats().active, 0U);
}

TEST_F(HttpUpstreams, the_whole_request_can_have_a_limit) {
  add_origin([](Request&, Response& response) -> Task<> {
    for (int i = 0; i < 100; ++i) {
      static_cast<void>(co_await sleep_for(1s));
      static_cast<void>(co_await response.write("x"));
    }
  });
  ReverseProxyOptions options;
  options.total_timeout = 5s;
  serve_proxy(std::move(options));
  EXPECT_EQ(get().status, Status(0));
  EXPECT_EQ(proxy_->stats().truncated, 1U);
}

TEST_F(HttpUpstreams, the_limit_of_the_whole_request_includes_connecting) {
  test::Origin& origin = add_counting_origin();
  add_counting_origin();
  ReverseProxyOptions options;
  options.upstreams = {{origin.url()}};
  options.total_timeout = 5s;
  serve_proxy(std::move(options));
  simulation_.partition(host_, origin.host);
  const TimePoint begun = simulation_.now();
  EXPECT_EQ(get().status, Status::gateway_timeout);
  EXPECT_LT(simulation_.now() - begun, 10s);
  EXPECT_EQ(proxy_->upstreams()[0].errors, 1U);
  EXPECT_EQ(proxy_->stats().queue_refused, 0U);
  EXPECT_EQ(proxy_->stats().active, 0U);
}

TEST_F(HttpUpstreams, the_limit_of_the_whole_request_includes_waiting_for_a_connection) {
  add_origin([&](Request&, Response& response) -> Task<> {
    static_cast<void>(co_await sleep_for(4s));
    response.send("x");
  });
  ReverseProxyOptions options;
  options.connections_max = 1;
  options.total_timeout = 5s;
  options.queue_timeout = 0s;
  serve_proxy(std::move(options));
  // The second gets the connection, but too late for the response.
  EXPECT_EQ(get_together(3), (std::map<int, int>{{200, 1}, {504, 2}}));
  EXPECT_EQ(proxy_->stats().queue_refused, 0U);
  EXPECT_EQ(proxy_->stats().active, 0U);
}

TEST_F(HttpUpstreams, a_client_that_sends_no_body_is_not_an_error_of_the_server) {
  add_counting_origin();
  serve_proxy();
  const std::string got = ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx");
  EXPECT_TRUE(got.starts_with("HTTP/1.1 408 ")) << got;
  const std::string bad =
      ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n");
  EXPECT_TRUE(bad.starts_with("HTTP/1.1 400 ")) << bad;
  EXPECT_EQ(proxy_->upstreams()[0].errors, 0U);
}

TEST_F(HttpUpstreams, connections_and_waiting_requests_have_limits) {
  int peak = 0;
  int now = 0;
  add_origin([&](Request&, Response& response) -> Task<> {
    peak = std::max(peak, ++now);
    static_cast<void>(co_await sleep_for(1s));
    --now;
    response.send("x");
  });
  ReverseProxyOptions options;
  options.connections_max = 3;
  options.waiting_max = 5;
  serve_proxy(std::move(options));
  EXPECT_EQ(get_together(10), (std::map<int, int>{{200, 8}, {503, 2}}));
  EXPECT_EQ(peak, 3);
  EXPECT_EQ(proxy_->stats().queue_refused, 2U);
  EXPECT_EQ(proxy_->upstreams()[0].errors, 0U);
}

TEST_F(HttpUpstreams, waiting_has_a_limit) {
  add_origin([&](Request&, Response& response) -> Task<> {
    static_cast<void>(co_await sleep_for(10s));
    response.send("x");
  });
  ReverseProxyOptions options;
  options.connections_max = 1;
  serve_proxy(std::move(options));
  EXPECT_EQ(get_together(2), (std::map<int, int>{{200, 1}, {503, 1}}));
}

TEST_F(HttpUpstreams, upstreams_can_be_replaced) {
  for (int i = 0; i < 3; ++i) add_counting_origin();
  ReverseProxyOptions options;
  options.upstreams = {{origins_[0]->url()}, {origins_[1]->url()}};
  serve_proxy(std::move(options));
  get_each(4);
  EXPECT_FALSE(proxy_->set_upstreams({}));
  EXPECT_TRUE(proxy_->set_upstreams({{origins_[1]->url()}, {origins_[2]->url()}}));
  get_each(4);
  EXPECT_EQ(origins_[0]->requests, 2);
  EXPECT_EQ(origins_[1]->requests, 4);
  EXPECT_EQ(origins_[2]->requests, 2);
  EXPECT_EQ(proxy_->upstreams()[0].requests, 4U) << "it keeps its counters";
}

/// A resolver whose answers a test changes.
class Names final : public Resolver {
 public:
  Task<Result<std::vector<Endpoint>>> resolve(std::string host, std::uint16_t port,
                                              AddressFamily /*family*/) override {
    ++lookups;
    static_cast<void>(co_await sleep_for(delay));
    if (const auto literal = Endpoint::parse(host, port)) co_return std::vector{*literal};
    if (host != "app") co_return std::unexpected(resolver_error(EAI_NONAME));
    std::vector<Endpoint> found;
    for (const Endpoint& address : addresses) found.push_back(address.with_port(port));
    if (found.empty()) co_return std::unexpected(resolver_error(EAI_AGAIN));
    co_return found;
  }
  std::vector<Endpoint> addresses;
  Duration delay = 100ms;
  int lookups = 0;
};

TEST_F(HttpUpstreams, names_are_resolved_again) {
  for (int i = 0; i < 3; ++i) add_counting_origin();
  Names names;
  names.addresses = {test::endpoint_of(origins_[0]->host, 80),
                     test::endpoint_of(origins_[1]->host, 80)};
  ReverseProxyOptions options;
  options.upstreams = {{"http://app"}};
  options.connect.resolver = &names;
  serve_proxy(std::move(options));
  EXPECT_EQ(get_each(4).size(), 4U) << "the first one waits for the addresses";
  EXPECT_EQ(origins_[0]->requests, 2);
  names.addresses = {test::endpoint_of(origins_[1]->host, 80),
                     test::endpoint_of(origins_[2]->host, 80)};
  wait(31s);
  get_each(4);
  EXPECT_EQ(origins_[0]->requests, 2);
  EXPECT_EQ(origins_[1]->requests, 4);
  EXPECT_EQ(origins_[2]->requests, 2);
  names.addresses.clear();
  wait(31s);
  EXPECT_EQ(get_each(2).size(), 2U) << "a failed lookup changes nothing";
}

TEST_F(HttpUpstreams, the_limit_of_the_whole_request_includes_the_first_lookup) {
  add_counting_origin();
  Names names;
  names.delay = 20s;
  ReverseProxyOptions options;
  options.upstreams = {{"http://slow"}};
  options.connect.resolver = &names;
  options.total_timeout = 5s;
  options.queue_timeout = 0s;
  serve_proxy(std::move(options));
  EXPECT_EQ(get().status, Status::gateway_timeout);
  EXPECT_EQ(proxy_->stats().active, 0U);
}

TEST_F(HttpUpstreams, a_name_without_addresses_is_answered_with_503) {
  Names names;
  ReverseProxyOptions options;
  options.upstreams = {{"http://missing"}};
  options.connect.resolver = &names;
  serve_proxy(std::move(options));
  EXPECT_EQ(get().status, Status::service_unavailable);
  proxy_.reset();
  EXPECT_EQ(get().status, Status::service_unavailable) << "the handler outlives the proxy";
}

}  // namespace
}  // namespace tambour::upstreams_test
