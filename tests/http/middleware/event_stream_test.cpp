// Server-sent events: their text, keep-alive comments, backpressure, and the end of the stream.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"

namespace tambour::event_stream_test {
namespace {

using namespace std::chrono_literals;
using http::EventStream;
using http::ServerEvent;

const std::string request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

class HttpEvents : public test::Serving {
 public:
  /// What the client receives as the body, without the framing of chunks.
  std::string body_of(const std::string& response) {
    const std::size_t head = response.find("\r\n\r\n") + 4;
    std::string body;
    for (std::size_t at = head; at < response.size();) {
      const std::size_t size = std::stoul(response.substr(at), nullptr, 16);
      at = response.find("\r\n", at) + 2;
      body += response.substr(at, size);
      at += size + 2;
    }
    return body;
  }
  std::string sent(std::vector<ServerEvent> events) {
    server_.reset();
    serve(http::serve_events([events](EventStream& stream) -> Task<> {
      for (const ServerEvent& event : events) EXPECT_TRUE(co_await stream.send(event));
    }));
    return body_of(ask(request));
  }
};

TEST_F(HttpEvents, send_their_members) {
  EXPECT_EQ(sent({{.data = "hello", .event = "greeting", .id = "7", .retry = 1500ms}}),
            "id: 7\nevent: greeting\nretry: 1500\ndata: hello\n\n");
  EXPECT_EQ(sent({{.data = ""}, {.id = ""}, {.retry = 0ms}, {}}),
            "data: \n\nid: \n\nretry: 0\n\n\n");
}

TEST_F(HttpEvents, divide_their_data_into_lines) {
  EXPECT_EQ(sent({{.data = "a\nb\r\nc\rd"}}), "data: a\ndata: b\ndata: c\ndata: d\n\n");
  EXPECT_EQ(sent({{.data = "\n"}}), "data: \ndata: \n\n");
  EXPECT_EQ(sent({{.data = "a\r\n"}}), "data: a\ndata: \n\n");
  EXPECT_EQ(sent({{.data = "\r\r\n\n"}}), "data: \ndata: \ndata: \ndata: \n\n");
  EXPECT_EQ(sent({{.data = " : x"}}), "data:  : x\n\n");
}

TEST_F(HttpEvents, cannot_inject_others) {
  using namespace std::string_view_literals;
  serve(http::serve_events([](EventStream& stream) -> Task<> {
    for (const ServerEvent& event :
         {ServerEvent{.event = "a\nb"}, ServerEvent{.event = "a\r"}, ServerEvent{.id = "a\nb"},
          ServerEvent{.id = "a\rb"}, ServerEvent{.id = "a\0b"sv}}) {
      const Result<> sent = co_await stream.send(event);
      EXPECT_EQ(sent.error(), http::ErrorCode::bad_event);
    }
    EXPECT_TRUE(co_await stream.comment("one\ntwo"));
  }));
  EXPECT_EQ(body_of(ask(request)), ": one\n: two\n\n");
}

TEST_F(HttpEvents, have_the_fields_of_an_event_stream) {
  serve(http::serve_events([](EventStream&) -> Task<> { co_return; }));
  const std::string fields =
      "Content-Type: text/event-stream\r\nX-Accel-Buffering: no\r\nCache-Control: no-store\r\n"
      "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(ask(request), "HTTP/1.1 200 OK\r\n" + fields + "0\r\n\r\n");
  EXPECT_EQ(ask("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            "HTTP/1.1 200 OK\r\n" + fields);
}

TEST_F(HttpEvents, continue_after_the_last_one) {
  serve(http::serve_events([](EventStream& stream) -> Task<> {
    const std::string text(stream.last_event_id());
    EXPECT_TRUE(co_await stream.send({.data = text}));
  }));
  EXPECT_EQ(body_of(ask(request)), "data: \n\n");
  EXPECT_EQ(body_of(ask("GET / HTTP/1.1\r\nHost: a\r\nLast-Event-ID: 41\r\nConnection: close"
                        "\r\n\r\n")),
            "data: 41\n\n");
}

TEST_F(HttpEvents, are_kept_alive_by_comments) {
  serve(http::serve_events(
      [](EventStream& stream) -> Task<> {
        for (const Duration pause : {25s, 5s, 5s, 5s, 1s}) {
          EXPECT_TRUE(co_await sleep_for(pause));
          EXPECT_TRUE(co_await stream.send({.data = "x"}));
        }
      },
      {.keep_alive = 10s}));
  EXPECT_EQ(
      body_of(ask(request)),
      ": \n\n: \n\n" + std::string("data: x\n\ndata: x\n\ndata: x\n\ndata: x\n\ndata: x\n\n"));
}

/// Sends an event each second, and counts them.
http::Handler ticking(int& sent, bool& ended) {
  return http::serve_events([&sent, &ended](EventStream& stream) -> Task<> {
    while (co_await sleep_for(1s)) {
      const Result<> written = co_await stream.send({.data = std::string(1000, 'x')});
      if (!written) break;
      ++sent;
    }
    ended = true;
  });
}

TEST_F(HttpEvents, end_when_the_client_goes) {
  int sent = 0;
  bool ended = false;
  serve(ticking(sent, ended));
  run([](HttpEvents& test) -> Task<> {
    TcpStream stream = co_await test.open();
    EXPECT_TRUE(co_await stream.write(std::string_view(request)));
    static_cast<void>(co_await sleep_for(5500ms));
    stream.close();
    static_cast<void>(co_await sleep_for(100ms));
  }(*this));
  EXPECT_TRUE(ended);
  EXPECT_EQ(sent, 5);
  EXPECT_EQ(server_->connections(), 0U);
}

TEST_F(HttpEvents, wait_for_a_client_that_reads_slowly_and_end_if_it_does_not) {
  simulation_.options().stream_buffer_bytes = 10'000;
  int sent = 0;
  bool ended = false;
  serve(ticking(sent, ended));
  run([](HttpEvents& test, bool& is_over) -> Task<> {
    TcpStream stream = co_await test.open();
    EXPECT_TRUE(co_await stream.write(std::string_view(request)));
    static_cast<void>(co_await sleep_for(60s));
    EXPECT_FALSE(is_over);
    static_cast<void>(co_await sleep_for(120s));
    EXPECT_TRUE(is_over);
  }(*this, ended));
  EXPECT_LT(sent, 20);
}

TEST_F(HttpEvents, that_are_not_read_end_a_silent_function) {
  simulation_.options().stream_buffer_bytes = 1000;
  Duration waited{};
  serve(http::serve_events(
      [&](EventStream&) -> Task<> {
        const TimePoint begin = server_loop_.now();
        static_cast<void>(co_await sleep_for(24h));
        waited = server_loop_.now() - begin;
      },
      {.keep_alive = 1s}));
  run([](HttpEvents& test) -> Task<> {
    TcpStream stream = co_await test.open();
    EXPECT_TRUE(co_await stream.write(std::string_view(request)));
    static_cast<void>(co_await sleep_for(50min));
  }(*this));
  // Some hundred comments fill the buffer, and then the time limit of writes ends the connection.
  EXPECT_GT(waited, 1min);
  EXPECT_LT(waited, 30min);
}

TEST_F(HttpEvents, end_when_the_server_shuts_down) {
  int sent = 0;
  bool ended = false;
  serve(ticking(sent, ended));
  run([](HttpEvents& test) -> Task<> {
    TcpStream stream = co_await test.open();
    EXPECT_TRUE(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    static_cast<void>(co_await sleep_for(3500ms));
    test.server_loop_.post([&test] {
      spawn(test.server_loop_,
            [](http::Server& server) -> Task<> { co_await server.shut_down(1h); }(*test.server_));
    });
    const TimePoint begin = test.loop_.now();
    const std::string received = co_await test.read_all(stream);
    // The response is complete.
    EXPECT_TRUE(received.ends_with("\r\n0\r\n\r\n")) << received;
    EXPECT_LT(test.loop_.now() - begin, 2s);
  }(*this));
  EXPECT_EQ(sent, 3);
  EXPECT_TRUE(ended);
}

TEST_F(HttpEvents, report_the_exception_of_their_function) {
  int errors = 0;
  http::ServerOptions options;
  options.listen.on_error = [&errors](const std::exception_ptr&) { ++errors; };
  serve(http::serve_events([](EventStream& stream) -> Task<> {
          EXPECT_TRUE(co_await stream.send({.data = "x"}));
          throw std::runtime_error("out of events");
        }),
        options);
  // The client must not take the part for the whole.
  EXPECT_TRUE(ask(request).find("error: ") != std::string::npos);
  EXPECT_EQ(errors, 1);
}

}  // namespace
}  // namespace tambour::event_stream_test
