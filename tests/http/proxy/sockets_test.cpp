// A reverse proxy over real sockets, on every backend: TCP and Unix sockets, TLS to the upstream.
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/client.h"
#include "support/on_every_backend.h"
#include "support/temporary_folder.h"

namespace tambour::sockets_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;

class ProxySockets : public test::OnEveryBackend {
 protected:
  void TearDown() override {
    front_.reset();
    proxy_.reset();
    back_.reset();
    OnEveryBackend::TearDown();
  }

  void serve(const Endpoint& at, http::Handler handler) {
    back_.emplace(or_throw(http::Server::listen(loop(), at, std::move(handler))));
    http::ReverseProxyOptions options;
    options.upstreams = {{(at.is_ip() ? "http://" : "") + back_->endpoint().to_string()}};
    proxy_.emplace(or_throw(http::ReverseProxy::create(loop(), std::move(options))));
    front_.emplace(
        or_throw(http::Server::listen(loop(), Endpoint::loopback_v4(0), proxy_->handler())));
  }

  void expect_an_echo() {
    run([](Endpoint to) -> Task<> {
      auto stream = co_await TcpStream::connect(to);
      EXPECT_TRUE(stream);
      Buffer in;
      for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{500'000}}) {
        const std::string body(size, 'x');
        EXPECT_TRUE(co_await stream->write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                                           std::to_string(size) + "\r\n\r\n" + body));
        const auto reply = co_await test::read_reply(*stream, in);
        EXPECT_TRUE(reply && reply->body == body) << size;
      }
    }(front_->endpoint()));
  }

  std::optional<http::Server> back_;
  std::optional<http::ReverseProxy> proxy_;
  std::optional<http::Server> front_;
};

TAMBOUR_ON_EVERY_BACKEND(ProxySockets);

Task<> send_back(Request& request, Response& response) {
  const auto body = co_await request.body().read_all();
  if (body) response.send(body->to_string());
}

TEST_P(ProxySockets, bodies_pass_over_tcp) {
  serve(Endpoint::loopback_v4(0), send_back);
  expect_an_echo();
  EXPECT_EQ(proxy_->upstreams()[0].connections, 1U);
}

TEST_P(ProxySockets, ipv4_clients_of_a_socket_for_both_families_have_ipv4_addresses) {
  serve(Endpoint::loopback_v4(0), [](Request& request, Response& response) {
    response.send(request.headers().joined("X-Forwarded-For"));
  });
  auto both = http::Server::listen(loop(), or_throw(Endpoint::parse("[::]:0")), proxy_->handler());
  if (!both) GTEST_SKIP() << "no IPv6";
  run([](Endpoint to) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    Buffer in;
    EXPECT_TRUE(co_await stream->write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    const auto reply = co_await test::read_reply(*stream, in);
    EXPECT_TRUE(reply && reply->body == "127.0.0.1") << (reply ? reply->body : "no reply");
  }(Endpoint::loopback_v4(both->endpoint().port())));
}

TEST_P(ProxySockets, bodies_pass_over_a_unix_socket) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/upstream.sock";
  serve(or_throw(Endpoint::parse("unix:" + path)), send_back);
  expect_an_echo();
  EXPECT_EQ(proxy_->upstreams()[0].address, path);
}

TEST_P(ProxySockets, a_tunnel_passes_the_end_of_each_direction) {
  serve(Endpoint::loopback_v4(0), [](Request&, Response& response) -> Task<> {
    response.headers().set("Upgrade", "lines");
    auto stream = co_await response.upgrade();
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    Buffer bytes;
    for (;;) {
      const auto got = co_await stream->read(bytes);
      if (!got || *got == 0) break;
    }
    EXPECT_TRUE(co_await stream->write("got " + bytes.to_string()));
  });
  std::string got;
  run([](Endpoint to, std::string& into) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(co_await stream->write(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: lines\r\n\r\nall"));
    EXPECT_TRUE(co_await stream->shutdown_write());
    Buffer bytes;
    for (;;) {
      const auto read = co_await stream->read(bytes);
      if (!read || *read == 0) break;
    }
    into = bytes.to_string();
  }(front_->endpoint(), got));
  EXPECT_TRUE(got.starts_with("HTTP/1.1 101 ")) << got;
  EXPECT_TRUE(got.ends_with("got all")) << got;
}

}  // namespace
}  // namespace tambour::sockets_test
