// Bodies that a proxy passes on: Response::forward() and ClientRequest::forward().
#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"

namespace tambour::forward_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;
using http::Status;

/// client_host_ asks the proxy on host_, which asks the origin.
class HttpForward : public test::Serving {
 public:
  HttpForward()
      : origin_host_(simulation_.add_host("origin")), origin_loop_(origin_host_.loop_options()) {}

  void serve_through_proxy(http::Handler origin) {
    const sockaddr_in address = origin_host_.endpoint(80);
    const Endpoint at =
        Endpoint::from(reinterpret_cast<const sockaddr*>(&address), sizeof address).value();
    http::ServerOptions origin_options;
    origin_options.listen.on_error = [](const std::exception_ptr&) {};
    origin_.emplace(or_throw(
        http::Server::listen(origin_loop_, at, std::move(origin), std::move(origin_options))));
    http::ClientOptions options;
    options.decompress = false;
    proxy_client_.emplace(server_loop_, std::move(options));
    url_ = "http://" + at.to_string();
    serve([this](Request& request, Response& response) { return proxy(request, response); });
  }

  Task<> proxy(Request& request, Response& response) {
    http::ClientRequest forwarded(request.method(), url_ + request.head().target);
    forwarded.forward(request.body());
    auto answer = co_await proxy_client_->send(std::move(forwarded));
    if (!answer) {
      sending_ = answer.error();
      response.send(Status::bad_gateway, "no answer");
      co_return;
    }
    response.set_status(answer->status());
    const auto passed = co_await response.forward(answer->body());
    if (!passed) forwarding_ = passed.error();
  }

  sim::Host& origin_host_;
  EventLoop origin_loop_;
  std::optional<http::Server> origin_;
  std::optional<http::Client> proxy_client_;
  std::string url_;
  Error sending_{};
  Error forwarding_{};
};

const std::string get = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

TEST_F(HttpForward, a_body_with_a_length_keeps_it) {
  serve_through_proxy([](Request&, Response& response) { response.send("hello"); });
  EXPECT_EQ(ask(get), test::response_of("200 OK", "hello", "Connection: close\r\n"));
}

TEST_F(HttpForward, no_body) {
  serve_through_proxy([](Request&, Response& response) { response.send(Status::no_content); });
  EXPECT_EQ(ask(get), "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
}

TEST_F(HttpForward, a_chunked_body_keeps_its_trailers) {
  serve_through_proxy([](Request&, Response& response) -> Task<> {
    EXPECT_TRUE(co_await response.write("one "));
    EXPECT_TRUE(co_await sleep_for(1s));
    EXPECT_TRUE(co_await response.write("two"));
    http::Fields trailers;
    EXPECT_TRUE(trailers.add("Digest", "x"));
    EXPECT_TRUE(response.end(trailers));
  });
  const std::string got = ask(get);
  EXPECT_NE(got.find("Transfer-Encoding: chunked\r\n"), std::string::npos) << got;
  EXPECT_TRUE(got.ends_with("\r\n\r\n4\r\none \r\n3\r\ntwo\r\n0\r\nDigest: x\r\n\r\n")) << got;
}

/// Events must arrive before the next one.
TEST_F(HttpForward, the_head_does_not_wait_for_a_body_without_a_length) {
  serve_through_proxy([](Request&, Response& response) -> Task<> {
    EXPECT_TRUE(co_await response.write(""));
    EXPECT_TRUE(co_await sleep_for(10s));
    EXPECT_TRUE(co_await response.write("late"));
  });
  const bool has_head = run([](HttpForward& self) -> Task<bool> {
    TcpStream stream = co_await self.open();
    EXPECT_TRUE(co_await stream.write(get));
    Buffer received;
    const auto found = co_await timeout(5s, read_until(stream, received, "\r\n\r\n"));
    co_return found.value_or(false);
  }(*this));
  EXPECT_TRUE(has_head);
}

TEST_F(HttpForward, a_body_that_is_cut_resets_the_connection) {
  for (const bool is_chunked : {false, true}) {
    server_.reset();
    origin_.reset();
    serve_through_proxy([is_chunked](Request&, Response& response) -> Task<> {
      if (!is_chunked) response.set_length(1000);
      EXPECT_TRUE(co_await response.write("part"));
      EXPECT_TRUE(co_await sleep_for(1s));
      throw std::runtime_error("cut");
    });
    const std::string got = ask(get);
    EXPECT_NE(got.find("part"), std::string::npos) << got;
    EXPECT_NE(got.find("error: "), std::string::npos)
        << "the client must not take it for the whole";
    EXPECT_EQ(got.find("\r\n0\r\n"), std::string::npos) << got;
    EXPECT_TRUE(forwarding_) << is_chunked;
    forwarding_ = {};
  }
}

TEST_F(HttpForward, a_body_that_is_cut_before_its_first_byte_is_answered_with_502) {
  serve_through_proxy([](Request&, Response& response) -> Task<> {
    response.set_length(1000);
    EXPECT_TRUE(co_await response.write(""));
    throw std::runtime_error("cut");
  });
  const std::string got = ask(get);
  EXPECT_TRUE(got.starts_with("HTTP/1.1 502 ")) << got;
  EXPECT_TRUE(forwarding_);
}

TEST_F(HttpForward, a_body_that_is_cut_does_not_concern_the_next_request) {
  serve_through_proxy([](Request&, Response& response) -> Task<> {
    response.set_length(1000);
    EXPECT_TRUE(co_await response.write(""));
    throw std::runtime_error("cut");
  });
  server_.reset();
  serve([this](Request& request, Response& response) -> Task<> {
    if (request.path() == "/next") co_return;
    co_await proxy(request, response);
    response.send(Status::ok, "instead");
  });
  const std::string got =
      ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n"
          "GET /next HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_NE(got.find("instead"), std::string::npos) << got;
  EXPECT_EQ(got.find(" 502 "), std::string::npos) << got;
  EXPECT_TRUE(forwarding_);
}

TEST_F(HttpForward, a_response_to_HEAD_states_no_length) {
  serve_through_proxy([](Request&, Response& response) -> Task<> {
    response.set_length(1000);
    response.send(Buffer());
    co_return;
  });
  const std::string got = ask("HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(got.starts_with("HTTP/1.1 200 ")) << got;
  EXPECT_EQ(got.find("Content-Length"), std::string::npos) << got;
}

/// A client that does not read must not make the proxy read the whole body.
TEST_F(HttpForward, a_slow_reader_slows_down_the_origin) {
  constexpr std::size_t pieces = 2000;
  std::size_t written = 0;
  serve_through_proxy([&](Request&, Response& response) -> Task<> {
    const std::string piece(10'000, 'x');
    for (written = 0; written < pieces; ++written) {
      if (!co_await response.write(piece)) co_return;
    }
  });
  std::size_t before = 0;
  const std::size_t received =
      run([](HttpForward& self, std::size_t& count, std::size_t& kept) -> Task<std::size_t> {
        TcpStream stream = co_await self.open();
        EXPECT_TRUE(co_await stream.write(get));
        EXPECT_TRUE(co_await sleep_for(20s));
        kept = count;
        Buffer bytes;
        std::size_t total = 0;
        for (;;) {
          const auto got = co_await stream.read(bytes);
          if (!got || *got == 0) co_return total;
          total += *got;
          bytes.clear();
        }
      }(*this, written, before));
  EXPECT_LT(before, pieces / 2) << "the proxy must wait for its client";
  EXPECT_GT(before, 0U);
  EXPECT_GT(received, pieces * 10'000);
}

Task<> echo_body(Request& request, Response& response) {
  const auto length = request.body().length();
  const auto body = co_await request.body().read_text();
  if (!body) co_return;
  std::string text = length ? std::to_string(*length) : "chunked";
  text.append(" ").append(*body).append(" ");
  text += request.body().trailers().get("Digest").value_or("none");
  response.send(text);
}

TEST_F(HttpForward, the_body_of_a_request) {
  serve_through_proxy(echo_body);
  EXPECT_TRUE(
      ask("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
          .ends_with("\r\n\r\n5 hello none"));
  EXPECT_TRUE(ask_in_pieces({"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                             "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
                             "lo\r\n0\r\nDigest: x\r\n\r\n"})
                  .ends_with("\r\n\r\nchunked hello x"));
  EXPECT_TRUE(ask(get).ends_with("\r\n\r\n0  none"));
}

TEST_F(HttpForward, the_body_of_a_request_that_is_cut) {
  Error at_origin{};
  std::size_t complete = 0;
  serve_through_proxy([&](Request& request, Response& response) -> Task<> {
    const auto body = co_await request.body().read_all();
    if (body) {
      ++complete;
      response.send("complete");
    } else {
      at_origin = body.error();
    }
  });
  run([](HttpForward& self) -> Task<> {
    TcpStream stream = co_await self.open();
    EXPECT_TRUE(
        co_await stream.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "5\r\nhello\r\n"));
    EXPECT_TRUE(co_await sleep_for(1s));
    stream.close();
    EXPECT_TRUE(co_await sleep_for(1s));
  }(*this));
  EXPECT_EQ(complete, 0U) << "the origin must not take the part for the whole";
  EXPECT_TRUE(at_origin);
  EXPECT_EQ(sending_, StreamError::truncated);
}

}  // namespace
}  // namespace tambour::forward_test
