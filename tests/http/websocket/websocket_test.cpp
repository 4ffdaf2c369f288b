// WebSockets between a client and a server of the library: messages, endings, time limits,
// backpressure and cancellation.
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/websocket/serving.h"

namespace tambour::websocket_test {
namespace {

using namespace std::chrono_literals;
using http::CloseCode;
using http::WebSocket;
using http::WebSocketMessage;

class WebSockets : public test::WebSocketServing {};

TEST_F(WebSockets, messages_of_every_size_come_back) {
  serve(http::serve_websocket(&test::echo));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    for (const std::size_t size : {0UL, 1UL, 125UL, 126UL, 65'535UL, 65'536UL, 1'000'000UL}) {
      const std::string text(size, 'x');
      EXPECT_TRUE(co_await socket.send_text(text));
      const Result<WebSocketMessage> message = co_await socket.receive();
      EXPECT_TRUE(message) << message.error().message();
      if (!message) co_return;
      EXPECT_TRUE(message->is_text);
      EXPECT_EQ(message->data.size(), size);
      EXPECT_EQ(message->to_string(), text);
    }
    EXPECT_EQ(socket.stats().messages_received, 7);
    EXPECT_EQ(socket.stats().bytes_received, socket.stats().bytes_sent);
    EXPECT_TRUE(co_await socket.close());
    EXPECT_FALSE(socket.is_open());
    EXPECT_EQ(socket.close_code(), CloseCode::normal);
  }());
}

TEST_F(WebSockets, messages_are_compressed_if_both_ends_agree) {
  http::WebSocketOptions options;
  options.compression.emplace();
  serve(http::serve_websocket(&test::echo, options));
  run([&]() -> Task<> {
    http::Client client(loop_);
    for (const bool compressed : {true, false}) {
      const http::WebSocketOptions chosen = compressed ? options : http::WebSocketOptions();
      WebSocket socket = co_await connect(client, chosen);
      EXPECT_EQ(socket.has_compression(), compressed);
      for (int i = 0; i < 3; ++i) {
        const std::string text = "gr\xc3\xbc\xc3\x9f" + std::string(100'000, 'e');
        EXPECT_TRUE(co_await socket.send_text(text));
        const Result<WebSocketMessage> message = co_await socket.receive();
        EXPECT_TRUE(message);
        if (message) {
          EXPECT_EQ(message->to_string(), text);
        }
      }
      EXPECT_TRUE(co_await socket.close());
    }
  }());
}

TEST_F(WebSockets, a_bomb_closes_with_1009) {
  http::WebSocketOptions options;
  options.compression.emplace();
  options.message_bytes_max = 1'000'000;
  serve(http::serve_websocket(&test::echo, options));
  run([&]() -> Task<> {
    http::Client client(loop_);
    http::WebSocketOptions large = options;
    large.message_bytes_max = 100'000'000;
    WebSocket socket = co_await connect(client, large);
    EXPECT_TRUE(co_await socket.send_text(std::string(20'000'000, 'e')));
    const Result<WebSocketMessage> message = co_await socket.receive();
    EXPECT_EQ(message.error(), StreamError::eof);
    EXPECT_EQ(socket.close_code(), CloseCode::message_too_big);
  }());
}

TEST_F(WebSockets, parts_are_sent_and_received) {
  serve(http::serve_websocket([](WebSocket& socket, http::Request&) -> Task<> {
    Buffer all;
    for (;;) {
      const Result<http::WebSocketPart> part = co_await socket.receive_part(all, 1000);
      EXPECT_TRUE(part);
      if (!part) co_return;
      EXPECT_LE(part->bytes, 1000);
      EXPECT_FALSE(part->is_text);
      const Result<> sent = co_await socket.send_part(std::exchange(all, {}), part->is_last);
      EXPECT_TRUE(sent);
      if (part->is_last) co_return;
    }
  }));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    const std::string bytes(12'345, 'b');
    EXPECT_TRUE(co_await socket.send_binary(Buffer(bytes)));
    const Result<WebSocketMessage> message = co_await socket.receive();
    EXPECT_TRUE(message);
    if (message) {
      EXPECT_EQ(message->to_string(), bytes);
    }
    const Result<WebSocketMessage> end = co_await socket.receive();
    EXPECT_EQ(end.error(), StreamError::eof);
    EXPECT_EQ(socket.close_code(), CloseCode::normal);
  }());
}

TEST_F(WebSockets, a_handler_that_throws_closes_with_1011) {
  http::ServerOptions options;
  int errors = 0;
  options.listen.on_error = [&](const std::exception_ptr&) { ++errors; };
  serve(http::serve_websocket([](WebSocket& socket, http::Request&) -> Task<> {
          static_cast<void>(co_await socket.receive());
          throw std::runtime_error("planted");
        }),
        options);
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    EXPECT_TRUE(co_await socket.send_text("now"));
    const Result<WebSocketMessage> end = co_await socket.receive();
    EXPECT_EQ(end.error(), StreamError::eof);
    EXPECT_EQ(socket.close_code(), CloseCode::internal_error);
    EXPECT_TRUE(co_await socket.close());
    static_cast<void>(co_await sleep_for(1s));
  }());
  EXPECT_EQ(errors, 1);
}

TEST_F(WebSockets, callbacks_that_throw_close_with_1011) {
  for (const bool throws_in_open : {true, false}) {
    http::ServerOptions options;
    int errors = 0;
    int exceptions = 0;
    options.listen.on_error = [&](const std::exception_ptr&) { ++errors; };
    options.on_exception = [&](const http::Request& request, const std::exception_ptr&) {
      EXPECT_EQ(request.path(), "/chat");
      ++exceptions;
    };
    http::WebSocketCallbacks callbacks;
    if (throws_in_open)
      callbacks.on_open = [](WebSocket&, http::Request&) { throw std::runtime_error("planted"); };
    callbacks.on_message = [](WebSocket&, WebSocketMessage) {
      throw std::runtime_error("planted");
    };
    serve(http::serve_websocket(std::move(callbacks)), options);
    run([&]() -> Task<> {
      http::Client client(loop_);
      WebSocket socket = co_await connect(client);
      EXPECT_TRUE(co_await socket.send_text("now"));
      const Result<WebSocketMessage> end = co_await socket.receive();
      EXPECT_EQ(end.error(), StreamError::eof);
      EXPECT_EQ(socket.close_code(), CloseCode::internal_error);
      const TimePoint before = loop_.now();
      EXPECT_TRUE(co_await socket.close());
      EXPECT_LT(loop_.now() - before, 5s);
      static_cast<void>(co_await sleep_for(1s));
    }());
    EXPECT_EQ(errors, throws_in_open ? 0 : 1);
    EXPECT_EQ(exceptions, throws_in_open ? 1 : 0);
    EXPECT_EQ(server_->connections(), 0);
    server_.reset();
  }
}

TEST_F(WebSockets, the_request_lives_as_long_as_the_function) {
  std::string seen;
  http::ServerOptions options;
  int responses = 0;
  options.on_response = [&](const http::Request&, const http::Response& response) {
    ++responses;
    EXPECT_EQ(response.status(), http::Status::switching_protocols);
  };
  http::Router router;
  router.get("/{room}",
             http::serve_websocket([&seen](WebSocket& socket, http::Request& request) -> Task<> {
               static_cast<void>(co_await socket.receive());
               EXPECT_TRUE(request.body().is_complete());
               const Result<Buffer> body = co_await request.body().read_all();
               EXPECT_TRUE(body && body->empty());
               EXPECT_FALSE(request.connection().peer_endpoint());
               EXPECT_FALSE(request.disconnect_token().stop_possible());
               EXPECT_FALSE(request.shutdown_token().stop_requested());
               seen = std::string(request.parameter("room")) + " " +
                      std::string(request.headers().get("Upgrade").value_or("")) + " " +
                      std::string(request.route());
             }));
  serve(std::move(router).handler(), options);
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    static_cast<void>(co_await sleep_for(10s));
    EXPECT_EQ(responses, 1);
    EXPECT_TRUE(co_await socket.send_text("now"));
    EXPECT_TRUE(co_await socket.close());
  }());
  EXPECT_EQ(seen, "chat websocket /{room}");
}

TEST_F(WebSockets, answers_to_messages_that_arrive_together_are_written_together) {
  serve(http::serve_websocket([](WebSocket& socket) -> Task<> {
    for (int i = 0; i < 3; ++i) {
      Result<WebSocketMessage> message = co_await socket.receive();
      EXPECT_TRUE(message);
      if (!message) co_return;
      const Result<> sent = co_await socket.send(std::move(*message));
      EXPECT_TRUE(sent);
      EXPECT_EQ(socket.unsent_bytes(), 5U * static_cast<unsigned>(i + 1));
    }
    // The next iteration writes if the task does something else.
    static_cast<void>(co_await sleep_for(1ms));
    EXPECT_EQ(socket.unsent_bytes(), 0);
    EXPECT_TRUE(socket.try_send(WebSocketMessage("end")));
    static_cast<void>(co_await socket.receive());
  }));
  const std::string frames = test::client_frame(0x81, "one") + test::client_frame(0x81, "two") +
                             test::client_frame(0x81, "six");
  EXPECT_EQ(frames_after(frames + test::client_frame(0x88, "")),
            std::string("\x81\x03one\x81\x03two\x81\x03six\x81\x03"
                        "end\x88\0",
                        22));
}

TEST_F(WebSockets, close_frames_carry_code_and_reason) {
  std::optional<CloseCode> seen;
  std::string reason;
  serve(http::serve_websocket(
      http::WebSocketCallbacks{.on_close = [&](WebSocket& socket, const Error& error) {
        EXPECT_EQ(error, StreamError::eof);
        seen = socket.close_code();
        reason = socket.close_reason();
      }}));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    EXPECT_EQ((co_await socket.close(CloseCode::abnormal)).error(),
              http::WebSocketError::bad_close_code);
    EXPECT_TRUE(socket.is_open());
    EXPECT_TRUE(co_await socket.close(static_cast<CloseCode>(4000), "gone fishing"));
    EXPECT_EQ((co_await socket.close()).error(), system_error(EBADF));
    EXPECT_EQ((co_await socket.send_text("late")).error(), StreamError::eof);
    EXPECT_EQ((co_await socket.receive()).error(), StreamError::eof);
  }());
  EXPECT_EQ(seen, static_cast<CloseCode>(4000));
  EXPECT_EQ(reason, "gone fishing");
}

TEST_F(WebSockets, callbacks_may_answer) {
  serve(http::serve_websocket(
      http::WebSocketCallbacks{.on_open =
                                   [](WebSocket& socket, http::Request& request) {
                                     EXPECT_TRUE(socket.try_send(WebSocketMessage(request.path())));
                                   },
                               .on_message =
                                   [](WebSocket& socket, WebSocketMessage message) {
                                     EXPECT_TRUE(socket.try_send(std::move(message)));
                                   }}));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    EXPECT_TRUE(co_await socket.send_text("hello"));
    const Result<WebSocketMessage> path = co_await socket.receive();
    const Result<WebSocketMessage> hello = co_await socket.receive();
    EXPECT_EQ(path.value().to_string(), "/chat");
    EXPECT_EQ(hello.value().to_string(), "hello");
    EXPECT_TRUE(co_await socket.close());
  }());
}

/// It answers pings, more than the limit of control frames, and sends nothing else.
TEST_F(WebSockets, a_peer_that_only_listens_stays_connected) {
  http::WebSocketOptions options;
  options.control_frames_max = 10;
  bool is_over = false;
  serve(http::serve_websocket(
      [&is_over](WebSocket& socket, http::Request&) -> Task<> {
        static_cast<void>(co_await socket.receive());
        is_over = true;
      },
      options));
  run([&]() -> Task<> {
    http::Client client(loop_);
    options.ping_interval = 0s;
    WebSocket socket = co_await connect(client, options);
    const auto silence = co_await timeout(50min, socket.receive());
    EXPECT_EQ(silence.error(), system_error(ETIMEDOUT));
    EXPECT_TRUE(socket.is_open());
    EXPECT_FALSE(is_over);
  }());
}

/// As many control frames as are allowed, and others later.
TEST_F(WebSockets, more_control_frames_are_allowed_after_a_while) {
  http::WebSocketOptions options;
  options.control_frames_max = 10;
  options.ping_interval = 0s;
  serve(http::serve_websocket(&test::echo, options));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client, http::WebSocketOptions(options));
    for (int burst = 0; burst < 3; ++burst) {
      for (int i = 0; i < 10; ++i) EXPECT_TRUE(socket.ping("x"));
      const auto silence = co_await timeout(25s, socket.receive());
      EXPECT_EQ(silence.error(), system_error(ETIMEDOUT));
    }
    EXPECT_TRUE(socket.is_open());
    for (int i = 0; i < 11; ++i) EXPECT_TRUE(socket.ping("x"));
    const auto message = co_await socket.receive();
    EXPECT_FALSE(message);
    EXPECT_EQ(socket.close_code(), CloseCode::policy_violation);
  }());
}

TEST_F(WebSockets, a_peer_that_vanished_is_noticed) {
  serve(http::serve_websocket(&test::echo));
  run([&]() -> Task<> {
    http::Client client(loop_);
    http::WebSocketOptions options;
    options.ping_interval = 5s;
    options.pong_timeout = 3s;
    WebSocket socket = co_await connect(client, options);
    // While the peer answers pings, silence is no error.
    const auto silence = co_await timeout(60s, socket.receive());
    EXPECT_EQ(silence.error(), system_error(ETIMEDOUT));
    EXPECT_TRUE(socket.is_open());
    EXPECT_GE(socket.stats().pongs_received, 10);
    EXPECT_TRUE(socket.round_trip_time());
    simulation_.partition(host_, client_host_);
    const TimePoint before = loop_.now();
    const Result<WebSocketMessage> message = co_await socket.receive();
    EXPECT_EQ(message.error(), system_error(ETIMEDOUT));
    EXPECT_LE(loop_.now() - before, 10s);
    EXPECT_FALSE(socket.is_open());
    EXPECT_EQ(socket.close_code(), CloseCode::abnormal);
  }());
}

/// The deadlines of all of them are equal, because the tasks begin to receive at the same time.
TEST_F(WebSockets, time_limits_that_end_together_end_each) {
  http::WebSocketOptions silent;
  silent.ping_interval = 0s;
  const auto sleep = [](WebSocket& /*socket*/, http::Request&) -> Task<> {
    static_cast<void>(co_await sleep_for(1h));
  };
  serve(http::serve_websocket(sleep, silent));
  run([&]() -> Task<> {
    constexpr std::size_t count = 100;
    http::ClientOptions client_options;
    client_options.connections_per_origin_max = count;
    http::Client client(loop_, client_options);
    http::WebSocketOptions options;
    options.ping_interval = 5s;
    options.pong_timeout = 3s;
    std::vector<WebSocket> sockets(count);
    for (WebSocket& socket : sockets) socket = co_await connect(client, options);
    const TimePoint before = loop_.now();
    std::size_t timeouts = 0;
    TaskScope tasks(loop_);
    for (WebSocket& socket : sockets) {
      tasks.spawn([&]() -> Task<> {
        const Result<WebSocketMessage> message = co_await socket.receive();
        if (!message && message.error() == system_error(ETIMEDOUT)) ++timeouts;
      });
    }
    co_await tasks.join();
    EXPECT_EQ(timeouts, count);
    EXPECT_GE(loop_.now() - before, 7s);
    EXPECT_LE(loop_.now() - before, 9s);
  }());
}

TEST_F(WebSockets, a_task_that_does_not_receive_for_long_loses_nothing) {
  http::WebSocketOptions patient;
  patient.ping_interval = 0s;  // This peer does not ask whether the client is there.
  serve(http::serve_websocket(&test::echo, patient));
  run([&]() -> Task<> {
    http::Client client(loop_);
    http::WebSocketOptions options;
    options.ping_interval = 5s;
    options.pong_timeout = 3s;
    WebSocket socket = co_await connect(client, options);
    static_cast<void>(co_await timeout(6s, socket.receive()));
    EXPECT_TRUE(co_await socket.send_text("first"));
    static_cast<void>(co_await sleep_for(10min));
    const Result<WebSocketMessage> message = co_await socket.receive();
    EXPECT_TRUE(message);
    if (message) {
      EXPECT_EQ(message->to_string(), "first");
    }
    EXPECT_TRUE(co_await socket.close());
  }());
}

TEST_F(WebSockets, a_cancelled_receive_loses_no_message) {
  serve(http::serve_websocket([](WebSocket& socket, http::Request&) -> Task<> {
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(co_await socket.send_part(Buffer("a" + std::to_string(i)), false, true));
      static_cast<void>(co_await sleep_for(30ms));
      EXPECT_TRUE(co_await socket.send_part(Buffer("b"), true));
    }
  }));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    int received = 0;
    for (int i = 0; i < 1000 && received < 20; ++i) {
      auto message = co_await timeout(7ms, socket.receive());
      if (!message) {
        EXPECT_EQ(message.error(), system_error(ETIMEDOUT));
        continue;
      }
      EXPECT_EQ(message->to_string(), "a" + std::to_string(received) + "b");
      ++received;
    }
    EXPECT_EQ(received, 20);
  }());
}

TEST_F(WebSockets, a_slow_peer_slows_down_the_sender) {
  http::WebSocketOptions options;
  options.unsent_bytes_max = 100'000;
  std::vector<std::size_t> received;
  bool is_full = false;
  serve(http::serve_websocket(
      [&](WebSocket& socket, http::Request&) -> Task<> {
        Result<> sent;
        for (int i = 0; i < 10'000 && sent; ++i)
          sent = socket.try_send(WebSocketMessage(std::string(1000, 'x')));
        is_full = !sent && sent.error() == system_error(EAGAIN);
        EXPECT_LT(socket.unsent_bytes(), 101'100);
        EXPECT_TRUE(co_await socket.flush());
        EXPECT_EQ(socket.unsent_bytes(), 0);
        for (int i = 0; i < 100; ++i) EXPECT_TRUE(co_await socket.send_text("y"));
      },
      options));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    static_cast<void>(co_await sleep_for(1s));
    for (;;) {
      const Result<WebSocketMessage> message = co_await socket.receive();
      if (!message) break;
      received.push_back(message->data.size());
    }
  }());
  EXPECT_TRUE(is_full);
  ASSERT_GT(received.size(), 200);
  EXPECT_EQ(received.front(), 1000);
  EXPECT_EQ(received.back(), 1);
}

TEST_F(WebSockets, a_peer_that_does_not_read_is_dropped) {
  http::WebSocketOptions options;
  options.write_timeout = 5s;
  std::optional<Error> error;
  serve(http::serve_websocket(
      [&](WebSocket& socket, http::Request&) -> Task<> {
        for (;;) {
          const Result<> sent = co_await socket.send_text(std::string(100'000, 'x'));
          if (sent) continue;
          error = sent.error();
          co_return;
        }
      },
      options));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    static_cast<void>(co_await sleep_for(1min));
  }());
  EXPECT_EQ(error, system_error(ETIMEDOUT));
}

TEST_F(WebSockets, tasks_send_concurrently_and_in_order) {
  serve(http::serve_websocket([](WebSocket& socket, http::Request&) -> Task<> {
    TaskScope tasks(socket.loop());
    for (int i = 0; i < 100; ++i) {
      tasks.spawn([&socket, i]() -> Task<> {
        EXPECT_TRUE(co_await socket.send_text(std::to_string(i) + std::string(5000, ' ')));
      });
    }
    co_await tasks.join();
  }));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    for (int i = 0; i < 100; ++i) {
      const Result<WebSocketMessage> message = co_await socket.receive();
      EXPECT_TRUE(message);
      if (!message) co_return;
      EXPECT_TRUE(message->to_string().starts_with(std::to_string(i) + " "));
    }
  }());
}

TEST_F(WebSockets, a_cancelled_send_is_completed_in_the_background) {
  serve(http::serve_websocket([](WebSocket& socket, http::Request&) -> Task<> {
    for (int i = 0; i < 20; ++i) {
      const auto sent =
          co_await timeout(1ms, socket.send_text(std::string(300'000, static_cast<char>('a' + i))));
      if (!sent) {
        EXPECT_EQ(sent.error(), system_error(ETIMEDOUT));
      }
      static_cast<void>(co_await socket.flush());
    }
  }));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    for (int i = 0; i < 20; ++i) {
      static_cast<void>(co_await sleep_for(20ms));
      const Result<WebSocketMessage> message = co_await socket.receive();
      EXPECT_TRUE(message);
      if (!message) co_return;
      EXPECT_EQ(message->to_string(), std::string(300'000, static_cast<char>('a' + i)));
    }
  }());
}

TEST_F(WebSockets, the_address_of_the_client_stays_known) {
  serve(http::serve_websocket([](WebSocket& socket, http::Request& request) -> Task<> {
    const Result<IpAddress> address = request.client_address();
    EXPECT_TRUE(address);
    const std::string text = address ? address->to_string() : "unknown";
    EXPECT_TRUE(co_await socket.send_text(text));
  }));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    const sockaddr_in local = client_host_.endpoint(1);
    const auto expected =
        Endpoint::from(reinterpret_cast<const sockaddr*>(&local), sizeof local).value();
    const Result<WebSocketMessage> message = co_await socket.receive();
    EXPECT_TRUE(message);
    if (message) {
      EXPECT_EQ(message->to_string(), expected.ip_address()->to_string());
    }
  }());
}

TEST_F(WebSockets, end_when_the_server_shuts_down) {
  std::optional<Error> server_error;
  http::ServerOptions server_options;
  serve(http::serve_websocket([&](WebSocket& socket, http::Request&) -> Task<> {
    const Result<WebSocketMessage> message = co_await socket.receive();
    server_error = message.error();
  }));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    server_loop_.post([&] { spawn(server_loop_, server_->shut_down(10s)); });
    const Result<WebSocketMessage> message = co_await socket.receive();
    EXPECT_EQ(message.error(), StreamError::eof);
    EXPECT_EQ(socket.close_code(), CloseCode::going_away);
    static_cast<void>(co_await socket.close());
    static_cast<void>(co_await sleep_for(1s));
  }());
  EXPECT_EQ(server_error, StreamError::eof);
  EXPECT_EQ(server_->connections(), 0);
}

TEST_F(WebSockets, a_peer_that_does_not_answer_the_close_frame_is_not_waited_for) {
  std::optional<Result<>> closed;
  serve(http::serve_websocket(
      [&](WebSocket& socket, http::Request&) -> Task<> { closed = co_await socket.close(); }));
  run([&]() -> Task<> {
    http::Client client(loop_);
    WebSocket socket = co_await connect(client);
    static_cast<void>(co_await sleep_for(1min));
  }());
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->error(), system_error(ETIMEDOUT));
}

TEST_F(WebSockets, may_be_destroyed_while_tasks_use_them) {
  serve(http::serve_websocket(
      [](WebSocket&, http::Request&) -> Task<> { static_cast<void>(co_await sleep_for(1h)); }));
  run([&]() -> Task<> {
    http::Client client(loop_);
    std::optional<WebSocket> socket(co_await connect(client));
    TaskScope tasks(loop_);
    int ended = 0;
    tasks.spawn([&]() -> Task<> {
      const Result<WebSocketMessage> message = co_await socket->receive();
      EXPECT_EQ(message.error(), system_error(ECANCELED));
      ++ended;
    });
    for (int i = 0; i < 3; ++i) {
      tasks.spawn([&]() -> Task<> {
        const Result<> sent = co_await socket->send_text(std::string(10'000'000, 'x'));
        EXPECT_EQ(sent.error(), system_error(ECANCELED));
        ++ended;
      });
    }
    static_cast<void>(co_await sleep_for(1ms));
    socket.reset();
    co_await tasks.join();
    EXPECT_EQ(ended, 4);
  }());
}

TEST_F(WebSockets, connect_reports_what_the_server_refuses) {
  serve([](http::Request&, http::Response& response) { response.send("not a WebSocket"); });
  run([&]() -> Task<> {
    http::Client client(loop_);
    const Result<WebSocket> opened = co_await http::connect_websocket(client, url());
    EXPECT_EQ(opened.error(), http::WebSocketError::unexpected_status);
  }());
}

}  // namespace
}  // namespace tambour::websocket_test
