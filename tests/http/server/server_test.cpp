// http::Server: requests, responses, and the life of connections.
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"

namespace tambour::server_test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using http::Request;
using http::Response;
using http::Status;
using test::response_of;

class HttpServer : public test::Serving {};

void hello(Request&, Response& response) { response.send("hello"); }

Task<> hello_later(Request&, Response& response) {
  static_cast<void>(co_await sleep_for(1s));
  response.send("later");
}

/// Says what it has received.
Task<> echo(Request& request, Response& response) {
  auto body = co_await request.body().read_all();
  if (!body) co_return;
  std::string text(request.method().name());
  text.append(" ").append(request.head().target).append(" ").append(request.head().authority);
  text.append(" [").append(body->to_string()).append("]");
  for (const http::Field field : request.body().trailers())
    text.append(" ").append(field.name).append("=").append(field.value);
  response.send(text);
}

TEST_F(HttpServer, answers_with_status_fields_and_date) {
  serve([](Request&, Response& response) {
    response.headers().set("Content-Type", "text/plain");
    response.send(Status::created, "made");
  });
  run([](HttpServer& test) -> Task<> {
    TcpStream stream = co_await test.open();
    static_cast<void>(
        co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    Buffer all;
    EXPECT_TRUE(co_await read_until(stream, all, "made"));
    EXPECT_EQ(all,
              "HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\n"
              "Date: Sun, 09 Sep 2001 01:46:40 GMT\r\nContent-Length: 4\r\n"
              "Connection: close\r\n\r\nmade");
  }(*this));
}

TEST_F(HttpServer, a_handler_without_a_response_sends_an_empty_one) {
  serve([](Request&, Response& response) { response.set_status(Status::accepted); });
  EXPECT_EQ(ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            response_of("202 Accepted", "", "Connection: close\r\n"));
}

TEST_F(HttpServer, answers_pipelined_requests_in_order_and_in_one_piece) {
  int number = 0;
  serve([&number](Request& request, Response& response) -> Task<> {
    const int local = ++number;
    if (request.path() == "/slow") static_cast<void>(co_await sleep_for(1s));
    response.send(std::to_string(local));
  });
  EXPECT_EQ(ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n"
                "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            response_of("200 OK", "1") + response_of("200 OK", "2") + response_of("200 OK", "3") +
                response_of("200 OK", "4", "Connection: close\r\n"));
}

TEST_F(HttpServer, sends_a_response_before_it_waits_for_the_next_handler) {
  serve([](Request& request, Response& response) -> Task<> {
    if (request.path() == "/slow") static_cast<void>(co_await sleep_for(1h));
    response.send(request.path());
  });
  run([](HttpServer& test) -> Task<> {
    TcpStream stream = co_await test.open();
    static_cast<void>(co_await stream.write(
        "GET /fast HTTP/1.1\r\nHost: a\r\n\r\nGET /slow HTTP/1.1\r\nHost: a\r\n\r\n"));
    const TimePoint before = test.loop_.now();
    Buffer all;
    EXPECT_TRUE(co_await read_until(stream, all, "/fast"));
    EXPECT_LT(test.loop_.now() - before, 1s);
  }(*this));
}

TEST_F(HttpServer, reads_requests_that_arrive_byte_by_byte) {
  serve(echo);
  std::vector<std::string> pieces;
  for (const char c : std::string("POST /a?b HTTP/1.1\r\nHost: c\r\nConnection: close\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n"
                                  "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n"))
    pieces.emplace_back(1, c);
  EXPECT_EQ(ask_in_pieces(pieces),
            response_of("200 OK", "POST /a?b c [abcde] X=y", "Connection: close\r\n"));
}

TEST_F(HttpServer, serves_http_1_0) {
  serve(hello);
  EXPECT_EQ(ask("GET / HTTP/1.0\r\n\r\n"), response_of("200 OK", "hello", "Connection: close\r\n"));
  EXPECT_EQ(ask("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\nGET / HTTP/1.0\r\n\r\n"),
            response_of("200 OK", "hello", "Connection: keep-alive\r\n") +
                response_of("200 OK", "hello", "Connection: close\r\n"));
}

TEST_F(HttpServer, streams_chunks_or_a_known_length_or_until_the_end) {
  serve([](Request& request, Response& response) -> Task<> {
    if (request.path() == "/length") response.set_length(6);
    EXPECT_TRUE(co_await response.write("abc"));
    static_cast<void>(co_await sleep_for(1s));
    EXPECT_TRUE(co_await response.write("def"));
    EXPECT_EQ(response.body_bytes(), 6U);
    http::Fields trailers;
    trailers.add("X", "y");
    if (request.path() == "/trailers") {
      EXPECT_TRUE(response.end(trailers));
    }
  });
  const std::string more = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  const std::string chunks = "3\r\nabc\r\n3\r\ndef\r\n0\r\n";
  EXPECT_EQ(ask("GET /trailers HTTP/1.1\r\nHost: a\r\n\r\n" + more),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + "X: y\r\n\r\n" +
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" +
                chunks + "\r\n");
  EXPECT_EQ(ask("GET /length HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            response_of("200 OK", "abcdef", "Connection: close\r\n"));
  EXPECT_EQ(ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcdef");
}

TEST_F(HttpServer, sends_no_body_to_head_and_for_some_statuses) {
  serve([](Request& request, Response& response) -> Task<> {
    if (request.path() == "/204") {
      response.set_status(Status::no_content);
      EXPECT_EQ(response.send("x").error(), http::ErrorCode::response_too_long);
      EXPECT_TRUE(response.send(""));
    } else if (request.path() == "/304") {
      response.set_status(Status::not_modified);
    } else if (request.path() == "/chunks") {
      EXPECT_TRUE(co_await response.write("abc"));
    } else if (request.path() == "/length") {
      response.set_length(7);
      response.send("");
    } else if (request.path() == "/unknown") {
      response.send("");
    } else {
      response.send("hello");
    }
  });
  EXPECT_EQ(ask("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
                "HEAD /chunks HTTP/1.1\r\nHost: a\r\n\r\n"
                "HEAD /length HTTP/1.1\r\nHost: a\r\n\r\n"
                "HEAD /unknown HTTP/1.1\r\nHost: a\r\n\r\n"
                "GET /204 HTTP/1.1\r\nHost: a\r\n\r\n"
                "GET /304 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"
            "HTTP/1.1 200 OK\r\n\r\n"
            "HTTP/1.1 204 No Content\r\n\r\n"
            "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n");
}

TEST_F(HttpServer, asks_for_the_body_when_the_handler_reads_it) {
  serve(echo);
  const std::string head =
      "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-Continue\r\n"
      "Content-Length: 2\r\n\r\n";
  EXPECT_EQ(ask_in_pieces({head, "ab"}),
            "HTTP/1.1 100 Continue\r\n\r\n" +
                response_of("200 OK", "POST / a [ab]", "Connection: close\r\n"));
  // It has the body already.
  EXPECT_EQ(
      ask("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab" +
          head + "cd"),
      response_of("200 OK", "POST / a [ab]") +
          response_of("200 OK", "POST / a [cd]", "Connection: close\r\n"));
}

TEST_F(HttpServer, does_not_ask_for_a_body_that_the_handler_does_not_read) {
  serve(hello);
  EXPECT_EQ(ask("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                "Content-Length: 2\r\n\r\n"),
            response_of("200 OK", "hello", "Connection: close\r\n"));
  EXPECT_EQ(ask("POST / HTTP/1.1\r\nHost: a\r\nExpect: more\r\nContent-Length: 2\r\n\r\nab"),
            response_of("417 Expectation Failed",
                        "417 Expectation Failed: only 100-continue is supported\n",
                        "Connection: close\r\n")
                .replace(33, 0, "Content-Type: text/plain\r\n"));
}

TEST_F(HttpServer, discards_a_short_body_that_the_handler_does_not_read) {
  serve(hello);
  EXPECT_EQ(
      ask_in_pieces({"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n0123456789",
                     "0123456789GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"}),
      response_of("200 OK", "hello") + response_of("200 OK", "hello", "Connection: close\r\n"));
}

TEST_F(HttpServer, rejects_what_is_no_request) {
  serve(hello);
  const std::string answer = ask("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(answer.starts_with(response_of("200 OK", "hello"))) << answer;
  EXPECT_NE(answer.find("HTTP/1.1 400 Bad Request"), std::string::npos) << answer;
  EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
  EXPECT_NE(answer.find("400 Bad Request: The request has no Host field"), std::string::npos)
      << answer;
  EXPECT_TRUE(ask("GET / HTTP/2.0\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 505 "));
  EXPECT_TRUE(ask("GET /" + std::string(10000, 'a')).starts_with("HTTP/1.1 414 "));
  EXPECT_TRUE(ask("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(40000, 'a'))
                  .starts_with("HTTP/1.1 431 "));
}

TEST_F(HttpServer, answers_500_when_a_handler_throws_and_serves_others) {
  std::vector<std::string> thrown;
  http::ServerOptions options;
  options.listen.on_error = [&thrown](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& subject) {
      thrown.emplace_back(subject.what());
    }
  };
  serve(
      [](Request& request, Response& response) -> Task<> {
        if (request.path() == "/now") throw std::runtime_error("now");
        if (request.path() == "/part") {
          EXPECT_TRUE(co_await response.write("part"));
        }
        response.headers().add("X", "dropped");
        if (request.path() != "/") throw std::runtime_error("later");
        response.headers().clear();
        response.send("hello");
      },
      options);
  const std::string expected =
      "HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\n"
      "Content-Length: 26\r\nConnection: close\r\n\r\n500 Internal Server Error\n";
  EXPECT_EQ(ask("GET /now HTTP/1.1\r\nHost: a\r\n\r\n"), expected);
  EXPECT_EQ(ask("GET /later HTTP/1.1\r\nHost: a\r\n\r\n"), expected);
  const std::string part = ask("GET /part HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_NE(part.find("error: Connection reset by peer"), std::string::npos) << part;
  EXPECT_EQ(ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            response_of("200 OK", "hello", "Connection: close\r\n"));
  EXPECT_EQ(thrown, (std::vector<std::string>{"now", "later", "later"}));
}

TEST_F(HttpServer, reports_misuse_of_a_response) {
  serve([](Request& request, Response& response) -> Task<> {
    if (request.path() == "/status") {
      EXPECT_EQ(response.send(Status(99), "").error(), http::ErrorCode::bad_status);
      EXPECT_EQ(response.send(Status::continue_, "").error(), http::ErrorCode::interim_status);
      EXPECT_EQ(response.send(Status::switching_protocols, "").error(),
                http::ErrorCode::interim_status);
    } else if (request.path() == "/twice") {
      EXPECT_TRUE(response.send("once"));
      EXPECT_EQ(response.send("again").error(), http::ErrorCode::response_begun);
      EXPECT_EQ((co_await response.write("again")).error(), http::ErrorCode::response_ended);
      EXPECT_EQ(response.end().error(), http::ErrorCode::response_ended);
    } else {
      response.set_length(3);
      EXPECT_TRUE(co_await response.write("ab"));
      EXPECT_EQ((co_await response.write("cd")).error(), http::ErrorCode::response_too_long);
      EXPECT_EQ(response.end().error(), http::ErrorCode::response_too_short);
    }
  });
  EXPECT_TRUE(ask("GET /status HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                  .starts_with("HTTP/1.1 500 "));
  EXPECT_EQ(ask("GET /twice HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            response_of("200 OK", "once", "Connection: close\r\n"));
  EXPECT_NE(ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").find("error: Connection reset by peer"),
            std::string::npos);
}

TEST_F(HttpServer, closes_the_connection_if_the_handler_says_so) {
  serve([](Request&, Response& response) {
    response.headers().set("Connection", "close");
    response.send("bye");
  });
  EXPECT_EQ(ask("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
            response_of("200 OK", "bye", "Connection: close\r\n"));
}

TEST_F(HttpServer, flushes_a_response_before_the_handler_ends) {
  bool ended = false;
  serve([&ended](Request&, Response& response) -> Task<> {
    response.send("early");
    EXPECT_TRUE(co_await response.flush());
    static_cast<void>(co_await sleep_for(1h));
    ended = true;
  });
  run([](HttpServer& test, const bool& has_ended) -> Task<> {
    TcpStream stream = co_await test.open();
    static_cast<void>(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    Buffer all;
    EXPECT_TRUE(co_await read_until(stream, all, "early"));
    EXPECT_FALSE(has_ended);
  }(*this, ended));
}

TEST_F(HttpServer, without_on_error_counts_exceptions_and_goes_on) {
  serve([](Request& request, Response& response) {
    if (request.path() == "/throw") throw std::runtime_error("broken");
    response.send("hello");
  });
  testing::internal::CaptureStderr();
  ask("GET /throw HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("std::runtime_error: broken"),
            std::string::npos);
  EXPECT_EQ(server_->handler_exceptions(), 1U);
  const std::string answer = ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK")) << answer;
}

/// The connection lingers for ten seconds then.
TEST_F(HttpServer, reports_an_exception_before_the_connection_has_ended) {
  bool is_reported = false;
  http::ServerOptions options;
  options.listen.on_error = [&](const std::exception_ptr&) { is_reported = true; };
  serve([](Request&, Response&) { throw std::runtime_error("broken"); }, options);
  run([](HttpServer& test, const bool& reported) -> Task<> {
    TcpStream stream = co_await test.open();
    static_cast<void>(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    Buffer all;
    EXPECT_TRUE(co_await read_until(stream, all, "500"));
    static_cast<void>(co_await sleep_for(1s));
    EXPECT_TRUE(reported);
  }(*this, is_reported));
}

TEST_F(HttpServer, reports_each_response_for_a_log) {
  std::vector<std::string> log;
  http::ServerOptions options;
  options.on_response = [&log](const Request& request, const Response& response) {
    log.push_back(std::string(request.path()) + " " +
                  std::to_string(http::code_of(response.status())) + " " +
                  std::to_string(response.body_bytes()));
  };
  serve(hello, options);
  ask("GET /a HTTP/1.1\r\nHost: a\r\n\r\nHEAD /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  ask("GET /c HTTP/1.1\r\nHost: a\r\n\r\n\r\n\r\n");
  ASSERT_EQ(log.size(), 4U);
  EXPECT_EQ(log[0], "/a 200 5");
  EXPECT_EQ(log[1], "/b 200 5");
  EXPECT_EQ(log[2], "/c 200 5");
  EXPECT_TRUE(log[3].find(" 400 ") != std::string::npos) << log[3];
}

/// A log may read every part of a request that was rejected.
TEST_F(HttpServer, a_rejected_request_has_no_fields_of_another_one) {
  std::string seen;
  const auto note = [&seen](const http::Fields& fields) {
    for (const http::Field field : fields)
      seen.append(field.name).append("=").append(field.value).append(" ");
  };
  http::ServerOptions options;
  options.on_response = [&](const Request& request, const Response& response) {
    note(request.headers());
    EXPECT_EQ(request.headers().contains("Secret"), response.status() == Status::ok);
    seen += std::to_string(http::code_of(response.status())) + "\n";
  };
  serve(
      [&](Request& request, Response& response) -> Task<> {
        const auto body = co_await request.body().read_all();
        note(request.body().trailers());
        if (body) response.send("done");
      },
      options);
  const std::string first = "GET / HTTP/1.1\r\nHost: a\r\nSecret: one\r\n\r\n";
  ask(first + "GET / HTTP/1.1\r\nUser-Agent: x\r\nbad\r\n\r\n");
  EXPECT_EQ(seen, "Host=a Secret=one 200\n400\n");
  seen.clear();
  ask(first + "GET / HTTP/1.1\r\nUser-Agent: x\r\n");
  EXPECT_EQ(seen, "Host=a Secret=one 200\n408\n");
  seen.clear();
  ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "0\r\nTrailer: two\r\nbad\r\n\r\n");
  EXPECT_EQ(seen, "Host=a Transfer-Encoding=chunked 400\n");
}

/// The limit is that of what is left.
TEST_F(HttpServer, reads_the_rest_of_a_body_that_the_handler_has_nearly_read) {
  http::ServerOptions options;
  options.discarded_bytes_max = 100;
  serve(
      [](Request& request, Response& response) -> Task<> {
        std::size_t total = 0;
        while (total < 900 && !request.body().is_complete()) {
          const auto piece = co_await request.body().read(50);
          if (!piece) co_return;
          total += piece->size();
        }
        response.send("read");
      },
      options);
  const std::string answer =
      ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x') +
          "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(answer,
            response_of("200 OK", "read") + response_of("200 OK", "read", "Connection: close\r\n"));
}

/// Sends back what it receives, after a greeting.
Task<> echo_tunnel(Request& request, Response& response) {
  if (request.path() != "/unnamed") response.headers().set("Upgrade", "echo");
  auto tunnel = co_await response.upgrade();
  if (!tunnel) {
    response.set_status(Status::ok);
    response.send(tunnel.error().message());
    co_return;
  }
  EXPECT_FALSE(request.connection().peer_endpoint());
  EXPECT_TRUE(co_await tunnel->write("hello\n"));
  Buffer bytes;
  for (Result<std::size_t> got = std::size_t{1}; got && *got > 0;) {
    got = co_await tunnel->read(bytes);
    EXPECT_TRUE(co_await tunnel->write(bytes));
  }
}

TEST_F(HttpServer, a_handler_takes_the_connection_over) {
  serve(echo_tunnel);
  const auto talk = [this](std::string request) {
    return run([](HttpServer& test, std::string text) -> Task<std::string> {
      TcpStream stream = co_await test.open();
      static_cast<void>(co_await stream.write(std::string_view(text)));
      static_cast<void>(co_await sleep_for(10min));
      static_cast<void>(co_await stream.write("late"));
      static_cast<void>(co_await stream.shutdown_write());
      co_return co_await read_all(stream);
    }(*this, std::move(request)));
  };
  EXPECT_EQ(talk("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Upgrade\r\nUpgrade: chat, Echo\r\n"
                 "Content-Length: 4\r\n\r\nbodyearly "),
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n"
            "hello\nearly late");
  EXPECT_EQ(talk("CONNECT b:1 HTTP/1.1\r\nHost: b:1\r\n\r\nearly "),
            "HTTP/1.1 200 OK\r\nUpgrade: echo\r\n\r\nhello\nearly late");
  EXPECT_EQ(server_->connections(), 0U);
}

class HttpTunnel : public HttpServer {
 public:
  /// Sends the pieces one after the other, and the end.
  std::string half_close_after(std::vector<std::string> pieces) {
    return run([](HttpTunnel& test, std::vector<std::string> texts) -> Task<std::string> {
      TcpStream stream = co_await test.open();
      for (const std::string& text : texts) {
        EXPECT_TRUE(co_await stream.write(text));
        static_cast<void>(co_await sleep_for(1s));
      }
      static_cast<void>(co_await stream.shutdown_write());
      co_return co_await read_all(stream);
    }(*this, std::move(pieces)));
  }
};

/// RFC 9110, section 7.8.
TEST_F(HttpTunnel, asks_for_the_body_first) {
  serve(echo_tunnel);
  EXPECT_EQ(
      half_close_after({"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n"
                        "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n",
                        "bodyearly"}),
      "HTTP/1.1 100 Continue\r\n\r\n"
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n"
      "hello\nearly");
}

/// A client that has sent the body already, or a part of it, is not asked.
TEST_F(HttpTunnel, does_not_ask_for_a_body_that_has_arrived) {
  serve(echo_tunnel);
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n";
  for (const std::string& request : {head + "Expect: 100-continue\r\nContent-Length: 4\r\n\r\nbody",
                                     head + "Expect: 100-continue\r\n\r\n"})
    EXPECT_EQ(half_close_after({request}),
              "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n"
              "hello\n");
}

TEST_F(HttpServer, refuses_a_tunnel_that_the_client_does_not_ask_for) {
  serve(echo_tunnel);
  const std::string upgrade = "Connection: upgrade, close\r\nUpgrade: echo\r\n\r\n";
  const std::string why =
      "The request does not ask for the protocol in the field Upgrade of the response";
  for (const std::string& request :
       {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nUpgrade: echo\r\n\r\n"s,
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\nUpgrade: chat\r\n\r\n"s,
        "GET / HTTP/1.0\r\n" + upgrade, "GET /unnamed HTTP/1.1\r\nHost: a\r\n" + upgrade})
    EXPECT_TRUE(ask(request).ends_with(why)) << request;
}

TEST_F(HttpServer, answers_a_client_that_has_half_closed) {
  serve(hello_later);
  run([](HttpServer& test) -> Task<> {
    TcpStream stream = co_await test.open();
    static_cast<void>(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    static_cast<void>(co_await stream.shutdown_write());
    const std::string answer = co_await read_all(stream);
    EXPECT_EQ(answer, response_of("200 OK", "later"));
  }(*this));
}

}  // namespace
}  // namespace tambour::server_test
