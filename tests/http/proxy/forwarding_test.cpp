// What a reverse proxy passes on: heads, bodies, statuses, tunnels.
#include <chrono>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/proxy/proxied.h"

namespace tambour::forwarding_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;
using http::ReverseProxyOptions;
using http::Status;

class HttpForwarding : public test::Proxied {};

TEST_F(HttpForwarding, adds_what_is_known_about_the_client) {
  add_origin(test::echo_head);
  serve_proxy();
  EXPECT_EQ(
      get("/a?b=c").body,
      "GET /a?b=c\nHost: a\nX-Forwarded-For: " + test::endpoint_of(client_host_, 0).address() +
          "\nX-Forwarded-Proto: http\nX-Forwarded-Host: a\nVia: 1.1 tambour\n");
}

TEST_F(HttpForwarding, removes_fields_of_the_connection) {
  add_origin(test::echo_head);
  ReverseProxyOptions options;
  options.forwarded_fields = http::ForwardedFields::none;
  options.via = "";
  serve_proxy(std::move(options));
  EXPECT_EQ(get("/",
                "Connection: keep-alive, X-Secret\r\nX-Secret: 1\r\nKeep-Alive: 5\r\nTE: trailers, "
                "deflate\r\nProxy-Connection: x\r\nProxy-Authorization: Basic eA==\r\nUpgrade: "
                "h2c\r\nHTTP2-Settings: AAA\r\nAccept: */*\r\n")
                .body,
            "GET /\nHost: a\nAccept: */*\nTE: trailers\n");
}

/// A received head is in memory as it arrived, even if none of its fields is passed on.
TEST_F(HttpForwarding, heads_without_fields_do_not_contain_received_text) {
  test::Origin& origin = add_origin();
  origin.serve([&origin](Request& request, Response& response) {
    ++origin.requests;
    test::echo_head(request, response);
  });
  for (const auto forwarded : {http::ForwardedFields::none, http::ForwardedFields::forwarded}) {
    ReverseProxyOptions options;
    options.upstreams = {{origin.url()}};
    options.forwarded_fields = forwarded;
    options.via = "";
    proxy_.emplace(or_throw(http::ReverseProxy::create(server_loop_, std::move(options))));
    // The only field of the client is removed.
    serve([handler = proxy_->handler()](Request& request, Response& response) -> Task<> {
      request.head().fields.remove("X-Internal-User");
      co_await handler.run(request, response);
    });
    const std::string path = "/" + std::string(7000, 'a');
    for (const std::string fields : {"", "X-Internal-User: admin\r\n"}) {
      origin.requests = 0;
      for (int i = 1; i <= 3; ++i) {
        const test::Reply reply =
            run(this->request("GET " + path + " HTTP/1.0\r\n" + fields + "\r\n"));
        EXPECT_TRUE(reply.body.starts_with("GET " + path + "\nHost: ")) << reply.body;
        EXPECT_EQ(reply.body.find("admin"), std::string::npos);
        wait(1s);
        EXPECT_EQ(origin.requests, i);
      }
    }
    server_.reset();
  }
}

/// A handler in front of the proxy may change the head that the parser has checked.
TEST_F(HttpForwarding, heads_that_a_handler_has_changed_are_checked) {
  test::Origin& origin = add_counting_origin();
  std::string target = "/";
  std::string authority = "a";
  ReverseProxyOptions options;
  options.upstreams = {{origin.url()}};
  options.forwarded_fields = http::ForwardedFields::both;
  proxy_.emplace(or_throw(http::ReverseProxy::create(server_loop_, std::move(options))));
  serve([&, handler = proxy_->handler()](Request& request, Response& response) -> Task<> {
    request.head().target = target;
    request.head().authority = authority;
    co_await handler.run(request, response);
  });
  EXPECT_EQ(get().status, Status::ok);
  target = "/ HTTP/1.1\r\nHost: a\r\n\r\nGET /secret";
  EXPECT_EQ(get().status, Status::bad_gateway);
  target = "/";
  authority = "a\r\nX-Internal-User: admin";
  EXPECT_EQ(get().status, Status::bad_gateway);
  EXPECT_EQ(origin.requests, 1);
}

TEST_F(HttpForwarding, does_not_believe_clients) {
  add_origin(test::echo_head);
  ReverseProxyOptions options;
  options.forwarded_fields = http::ForwardedFields::forwarded;
  options.via = "";
  serve_proxy(std::move(options));
  EXPECT_EQ(get("/",
                "X-Forwarded-For: 1.1.1.1\r\nx_forwarded_for: 2.2.2.2\r\nX-Real-IP: 3.3.3.3\r\n"
                "Forwarded: for=4.4.4.4\r\nX-Forwarded-Anything: x\r\n")
                .body,
            "GET /\nHost: a\nForwarded: for=" + test::endpoint_of(client_host_, 0).address() +
                ";proto=http;host=\"a\"\n");
}

TEST_F(HttpForwarding, believes_trusted_proxies) {
  add_origin(test::echo_head);
  ReverseProxyOptions options;
  options.forwarded_fields = http::ForwardedFields::both;
  options.trusted_proxies = {IpNetwork::parse("0.0.0.0/0").value()};
  serve_proxy(std::move(options));
  const std::string client = test::endpoint_of(client_host_, 0).address();
  EXPECT_EQ(get("/",
                "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2\r\nX-Forwarded-Proto: "
                "https\r\nForwarded: for=1.1.1.1\r\nVia: 1.0 other\r\n")
                .body,
            "GET /\nHost: a\nX-Forwarded-For: 1.1.1.1, 2.2.2.2, " + client +
                "\nX-Forwarded-Proto: https\nForwarded: for=1.1.1.1, for=" + client +
                ";proto=http;host=\"a\"\nVia: 1.0 other\nX-Forwarded-Host: a\nVia: 1.1 tambour\n");
}

TEST_F(HttpForwarding, rewrites_paths_and_hosts) {
  test::Origin& origin = add_origin(test::echo_head);
  ReverseProxyOptions options;
  options.upstreams = {{origin.url() + "/base/"}};
  options.strip_prefix = "/api";
  options.host = http::HostPolicy::upstream;
  options.forwarded_fields = http::ForwardedFields::none;
  options.via = "";
  serve_proxy(std::move(options));
  const std::string host = "\nHost: " + test::endpoint_of(origin.host, 80).address() + "\n";
  EXPECT_EQ(get("/api/users?x=/api").body, "GET /base/users?x=/api" + host);
  EXPECT_EQ(get("/api").body, "GET /base/" + host);
  EXPECT_EQ(get("/api?x").body, "GET /base/?x" + host);
  EXPECT_EQ(get("/apix").body, "GET /base/apix" + host);
  EXPECT_EQ(get("/").body, "GET /base/" + host);
}

TEST_F(HttpForwarding, passes_bodies_and_trailers) {
  add_origin([](Request& request, Response& response) -> Task<> {
    response.headers().set("X-Length", request.body().length() ? "known" : "unknown");
    static_cast<void>(co_await response.forward(request.body()));
  });
  serve_proxy();
  const test::Reply known = post("hello");
  EXPECT_EQ(known.body, "hello");
  EXPECT_EQ(known.fields.get("X-Length"), "known");
  EXPECT_EQ(known.fields.get("Content-Length"), "5");
  const std::string raw =
      ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
          "5\r\nhello\r\n0\r\nDigest: x\r\n\r\n");
  EXPECT_NE(raw.find("X-Length: unknown"), std::string::npos) << raw;
  EXPECT_TRUE(raw.ends_with("0\r\nDigest: x\r\n\r\n")) << raw;
  EXPECT_EQ(post("").body, "");
}

TEST_F(HttpForwarding, passes_large_bodies) {
  add_origin([](Request& request, Response& response) -> Task<> {
    const auto body = co_await request.body().read_all(10'000'000);
    response.send(body ? body->to_string() : "cut");
  });
  serve_proxy();
  const std::string large(3'000'000, 'x');
  EXPECT_TRUE(post(large).body == large);
}

TEST_F(HttpForwarding, passes_every_status_and_field) {
  add_origin([](Request& request, Response& response) {
    response.set_status(Status(std::stoi(request.head().target.substr(1))));
    response.head().reason = "Special";
    response.headers().add("Set-Cookie", "a=1");
    response.headers().add("Set-Cookie", "b=2");
    response.headers().add("Keep-Alive", "5");
    response.headers().add("Date", "Thu, 01 Jan 1970 00:00:00 GMT");
    if (!has_no_body(response.status())) response.send("body");
  });
  serve_proxy();
  for (const int code : {200, 204, 206, 301, 304, 404, 418, 500, 503, 799}) {
    const test::Reply reply = get("/" + std::to_string(code));
    EXPECT_EQ(http::code_of(reply.status), code);
    EXPECT_EQ(reply.fields.count("Set-Cookie"), 2U);
    EXPECT_FALSE(reply.fields.contains("Keep-Alive"));
    EXPECT_EQ(reply.fields.joined("Date"), "Thu, 01 Jan 1970 00:00:00 GMT");
    EXPECT_EQ(reply.body, code == 204 || code == 304 ? "" : "body");
  }
  EXPECT_TRUE(ask("GET /418 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                  .starts_with("HTTP/1.1 418 Special\r\n"));
}

TEST_F(HttpForwarding, the_response_to_head_has_the_length_of_that_to_get) {
  add_origin([](Request&, Response& response) { response.send("hello"); });
  serve_proxy();
  const test::Reply reply = run(request("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", http::Method::head));
  EXPECT_EQ(reply.status, Status::ok);
  EXPECT_EQ(reply.fields.get("Content-Length"), "5");
  EXPECT_EQ(reply.body, "");
}

TEST_F(HttpForwarding, keeps_fields_of_outer_middleware) {
  add_origin([](Request&, Response& response) {
    response.headers().add("X-Both", "origin");
    response.headers().add("Vary", "Accept");
    response.send("x");
  });
  serve_proxy();
  const http::Handler inner = proxy_->handler();
  server_.reset();
  serve([inner](Request& request, Response& response) {
    response.headers().add("X-Both", "middleware");
    response.headers().add("Vary", "Origin");
    return inner.start(request, response);
  });
  const test::Reply reply = get();
  EXPECT_EQ(reply.fields.joined("X-Both"), "middleware");
  EXPECT_EQ(reply.fields.joined("Vary"), "Origin, Accept");
}

TEST_F(HttpForwarding, some_requests_are_not_passed_on) {
  test::Origin& origin = add_counting_origin();
  serve_proxy();
  const auto status_of = [&](const std::string& head, http::Method method) {
    return http::code_of(run(request(head + "\r\n\r\n", method)).status);
  };
  EXPECT_EQ(status_of("CONNECT a:80 HTTP/1.1\r\nHost: a:80", http::Method::connect), 501);
  EXPECT_EQ(status_of("TRACE / HTTP/1.1\r\nHost: a", http::Method::trace), 405);
  EXPECT_EQ(status_of("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0", http::Method::options),
            204);
  std::string via = "GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 x";
  for (int i = 0; i < 16; ++i) via += ", 1.1 x";
  EXPECT_EQ(status_of(via, http::Method::get), 508);
  EXPECT_EQ(origin.requests, 0);
  EXPECT_EQ(status_of("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 1", http::Method::options),
            200);
  EXPECT_EQ(origin.requests, 1);
}

/// Events must arrive before the next one.
TEST_F(HttpForwarding, the_head_does_not_wait_for_a_body_without_a_length) {
  add_origin([](Request&, Response& response) -> Task<> {
    EXPECT_TRUE(co_await response.write(""));
    EXPECT_TRUE(co_await sleep_for(10s));
    EXPECT_TRUE(co_await response.write("late"));
  });
  serve_proxy();
  const bool has_head = run([](HttpForwarding& self) -> Task<bool> {
    TcpStream stream = co_await self.open();
    EXPECT_TRUE(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    Buffer received;
    const auto found = co_await timeout(5s, read_until(stream, received, "\r\n\r\n"));
    co_return found.value_or(false);
  }(*this));
  EXPECT_TRUE(has_head);
}

TEST_F(HttpForwarding, the_server_decides_whether_a_client_continues) {
  add_origin([](Request& request, Response& response) -> Task<> {
    if (request.path() == "/refused") {
      response.send(Status::content_too_large, "no");
      co_return;
    }
    const auto body = co_await request.body().read_all();
    response.send(body ? body->to_string() : "cut");
  });
  serve_proxy();
  const auto ask_first = [this](const std::string& path) {
    return run([](HttpForwarding& self, std::string target) -> Task<std::string> {
      TcpStream stream = co_await self.open();
      EXPECT_TRUE(co_await stream.write("POST " + target +
                                        " HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                                        "Content-Length: 5\r\n\r\n"));
      Buffer received;
      EXPECT_TRUE(co_await read_until(stream, received, "\r\n\r\n"));
      const std::string first = received.to_string();
      if (first.starts_with("HTTP/1.1 100")) {
        EXPECT_TRUE(co_await stream.write("hello"));
        EXPECT_TRUE(co_await read_until(stream, received, "hello"));
      }
      co_return received.to_string();
    }(*this, path));
  };
  const std::string accepted = ask_first("/");
  EXPECT_TRUE(accepted.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")) << accepted;
  const std::string refused = ask_first("/refused");
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 413 ")) << refused;
}

Task<> send_hints(Request& request, Response& response) {
  http::Fields links;
  links.add("Link", "</a.css>");
  links.add("Keep-Alive", "5");
  EXPECT_TRUE(co_await response.send_interim(Status::early_hints, links));
  const auto body = co_await request.body().read_all();
  EXPECT_TRUE(co_await response.send_interim(Status::processing));
  response.send(body ? body->to_string() : "cut");
}

TEST_F(HttpForwarding, interim_responses_are_passed_on) {
  add_origin(send_hints);
  serve_proxy();
  const std::string hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
  const std::string processing = "HTTP/1.1 102 Processing\r\n\r\n";
  const std::string got = ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(got.starts_with(hints + processing + "HTTP/1.1 200 OK\r\n")) << got;
  const std::string old = ask("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(old.starts_with("HTTP/1.1 200 OK\r\n")) << old;
  const std::string asked =
      ask("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\n"
          "Content-Length: 5\r\n\r\nhello");
  EXPECT_TRUE(asked.starts_with(hints)) << asked;
  EXPECT_NE(asked.find("\r\n\r\nHTTP/1.1 200 OK\r\n"), std::string::npos) << asked;
  EXPECT_TRUE(asked.ends_with("\r\n\r\nhello")) << asked;
  EXPECT_EQ(proxy_->stats().active, 0U);
}

/// The handler waits for the client, which reads nothing, and not for the server.
TEST_F(HttpForwarding, a_client_that_disconnects_ends_the_wait_for_interim_responses) {
  add_origin([](Request&, Response& response) -> Task<> {
    http::Fields links;
    links.add("Link", std::string(10'000, 'x'));
    for (int i = 0; i < 30; ++i) {
      const auto sent = co_await response.send_interim(Status::early_hints, links);
      if (!sent) co_return;
    }
    static_cast<void>(co_await sleep_for(100s));
  });
  serve_proxy();
  run([](HttpForwarding& self) -> Task<> {
    TcpStream stream = co_await self.open();
    EXPECT_TRUE(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_TRUE(co_await sleep_for(1s));
    stream.close();
    EXPECT_TRUE(co_await sleep_for(1s));
  }(*this));
  EXPECT_EQ(proxy_->stats().active, 0U);
}

TEST_F(HttpForwarding, the_limit_of_the_whole_request_includes_an_interim_response) {
  add_origin([](Request&, Response& response) -> Task<> {
    http::Fields links;
    links.add("Link", std::string(10'000, 'x'));
    for (int i = 0; i < 30; ++i) {
      const auto sent = co_await response.send_interim(Status::early_hints, links);
      if (!sent) co_return;
    }
    static_cast<void>(co_await sleep_for(100s));
  });
  http::ReverseProxyOptions options;
  options.total_timeout = 5s;
  serve_proxy(std::move(options));
  run([](HttpForwarding& self) -> Task<> {
    TcpStream stream = co_await self.open();
    EXPECT_TRUE(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_TRUE(co_await sleep_for(4s));
    EXPECT_EQ(self.proxy_->stats().active, 1U);
    // The client is connected, but reads nothing.
    EXPECT_TRUE(co_await sleep_for(2s));
    EXPECT_EQ(self.proxy_->stats().active, 0U);
  }(*this));
  EXPECT_EQ(proxy_->stats().failures, 1U);
}

/// A client that leaves 1 s after its request. The request has to end soon afterwards.
Task<> leave_early(HttpForwarding& self) {
  TcpStream stream = co_await self.open();
  EXPECT_TRUE(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_TRUE(co_await sleep_for(1s));
  const std::size_t before = self.proxy_->stats().active;
  stream.close();
  EXPECT_TRUE(co_await sleep_for(100ms));
  EXPECT_EQ(self.proxy_->stats().active, before - 1);
  EXPECT_EQ(self.proxy_->stats().client_aborts, 1U);
}

TEST_F(HttpForwarding, a_client_may_leave_while_the_proxy_connects) {
  test::Origin& origin = add_counting_origin();
  http::ReverseProxyOptions options;
  options.connect.timeout = 60s;
  serve_proxy(std::move(options));
  simulation_.partition(host_, origin.host);
  run(leave_early(*this));
  EXPECT_EQ(proxy_->upstreams()[0].errors, 0U);
  EXPECT_EQ(proxy_->upstreams()[0].connections, 0U);
  simulation_.heal(host_, origin.host);
  EXPECT_EQ(get().status, Status::ok);
  EXPECT_EQ(proxy_->stats().client_aborts, 1U);
}

TEST_F(HttpForwarding, a_client_may_leave_while_its_request_waits_for_a_connection) {
  add_origin([](Request&, Response& response) -> Task<> {
    static_cast<void>(co_await sleep_for(3s));
    response.send("x");
  });
  http::ReverseProxyOptions options;
  options.connections_max = 1;
  options.queue_timeout = 60s;
  serve_proxy(std::move(options));
  run([](HttpForwarding& self) -> Task<> {
    TaskScope scope(self.loop_);
    scope.spawn([](HttpForwarding& fixture) -> Task<> {
      const test::Reply first = co_await fixture.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      EXPECT_EQ(first.status, Status::ok);
    }(self));
    EXPECT_TRUE(co_await sleep_for(500ms));
    EXPECT_EQ(self.proxy_->upstreams()[0].active, 1U);
    co_await leave_early(self);
    co_await scope.join();
  }(*this));
  EXPECT_EQ(proxy_->upstreams()[0].connections, 1U);
  EXPECT_EQ(proxy_->stats().active, 0U);
}

TEST_F(HttpForwarding, the_renderer_of_the_server_renders_errors) {
  add_origin();
  http::ServerOptions options;
  options.error_renderer = http::render_json;
  serve_proxy({}, std::move(options));
  const test::Reply reply = get();
  EXPECT_EQ(reply.status, Status::bad_gateway);
  EXPECT_EQ(reply.fields.get("Content-Type"), "application/json");
  EXPECT_EQ(reply.body, "{\"status\":502,\"error\":\"Bad Gateway\"}\n");
}

TEST_F(HttpForwarding, an_upgrade_becomes_a_tunnel) {
  add_origin([](Request&, Response& response) -> Task<> {
    response.headers().set("Upgrade", "echo");
    auto stream = co_await response.upgrade();
    Buffer bytes;
    while (co_await stream->read(bytes) != 0U) {
    }
    // The client has half-closed the connection.
    EXPECT_TRUE(co_await stream->write("got " + bytes.to_string()));
    EXPECT_TRUE(co_await stream->shutdown_write());
  });
  serve_proxy();
  const std::string got = run([](HttpForwarding& self) -> Task<std::string> {
    TcpStream stream = co_await self.open();
    EXPECT_TRUE(co_await stream.write(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nearly "));
    Buffer received;
    EXPECT_TRUE(co_await read_until(stream, received, "\r\n\r\n"));
    EXPECT_TRUE(co_await stream.write("late"));
    EXPECT_TRUE(co_await stream.shutdown_write());
    const std::string rest = co_await read_all(stream);
    co_return received.to_string() + rest;
  }(*this));
  EXPECT_TRUE(got.starts_with("HTTP/1.1 101 Switching Protocols\r\n")) << got;
  EXPECT_TRUE(got.ends_with("\r\n\r\ngot early late")) << got;
  EXPECT_EQ(proxy_->stats().tunnels, 1U);
  EXPECT_EQ(proxy_->stats().active, 0U);
}

TEST_F(HttpForwarding, a_tunnel_ends_when_nothing_is_transferred) {
  add_origin([](Request&, Response& response) -> Task<> {
    response.headers().set("Upgrade", "echo");
    auto stream = co_await response.upgrade();
    Buffer bytes;
    static_cast<void>(co_await stream->read(bytes));
  });
  ReverseProxyOptions options;
  options.tunnel_idle_timeout = 10s;
  serve_proxy(std::move(options));
  const std::string got =
      ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
  EXPECT_TRUE(got.starts_with("HTTP/1.1 101 ")) << got;
}

TEST_F(HttpForwarding, a_refused_upgrade_is_a_response) {
  add_origin([](Request& request, Response& response) {
    response.send(Status::upgrade_required, request.headers().get("Upgrade").value_or(""));
  });
  serve_proxy();
  const test::Reply reply = get("/", "Connection: upgrade\r\nUpgrade: websocket\r\n");
  EXPECT_EQ(reply.status, Status::upgrade_required);
  EXPECT_EQ(reply.body, "websocket");
}

TEST_F(HttpForwarding, hooks_change_requests_and_responses) {
  add_origin(test::echo_head);
  ReverseProxyOptions options;
  options.forwarded_fields = http::ForwardedFields::none;
  options.via = "";
  options.modify_request = [](const Request& request, http::RequestHead& head) -> Result<> {
    if (request.path() == "/bad") return std::unexpected(Error(http::ErrorCode::bad_target));
    head.target = "/other";
    head.authority = "b";
    return head.fields.set("X-Added", "1");
  };
  options.modify_response = [](const Request& request, http::ResponseHead& head) {
    head.fields.set("X-Path", request.path());
    head.status = Status::accepted;
  };
  serve_proxy(std::move(options));
  const test::Reply reply = get("/a");
  EXPECT_EQ(reply.body, "GET /other\nHost: b\nX-Added: 1\n");
  EXPECT_EQ(reply.fields.get("X-Path"), "/a");
  EXPECT_EQ(reply.status, Status::accepted);
  EXPECT_EQ(get("/bad").status, Status::bad_request);
}

TEST_F(HttpForwarding, a_cut_response_resets_the_connection) {
  for (const bool is_chunked : {false, true}) {
    server_.reset();
    origins_.clear();
    add_origin([is_chunked](Request&, Response& response) -> Task<> {
      if (!is_chunked) response.set_length(1000);
      EXPECT_TRUE(co_await response.write("part"));
      EXPECT_TRUE(co_await sleep_for(1s));
      throw std::runtime_error("cut");
    });
    serve_proxy();
    const std::string got = ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    EXPECT_NE(got.find("part"), std::string::npos) << got;
    EXPECT_NE(got.find("error: "), std::string::npos) << got;
    EXPECT_EQ(proxy_->stats().truncated, 1U);
  }
}

TEST_F(HttpForwarding, a_client_that_goes_away_ends_the_request_of_the_server) {
  bool is_gone = false;
  add_origin([&](Request& request, Response&) -> Task<> {
    const std::stop_callback gone(request.disconnect_token(), [&] { is_gone = true; });
    static_cast<void>(co_await sleep_for(20s));
  });
  serve_proxy();
  run([](HttpForwarding& self) -> Task<> {
    TcpStream stream = co_await self.open();
    EXPECT_TRUE(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_TRUE(co_await sleep_for(1s));
    stream.close();
    EXPECT_TRUE(co_await sleep_for(1s));
  }(*this));
  EXPECT_TRUE(is_gone);
  EXPECT_EQ(proxy_->stats().client_aborts, 1U);
  EXPECT_EQ(proxy_->stats().active, 0U);
  EXPECT_EQ(proxy_->upstreams()[0].errors, 0U);
}

}  // namespace
}  // namespace tambour::forwarding_test
