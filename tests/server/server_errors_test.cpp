// ListenOptions::on_error: what handlers, callbacks and listeners throw, over every transport.
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/tcp.h>
#include <tambour/task/block_on.h>
#include <tambour/task/combinators.h>
#include <tambour/task/sleep.h>

#include "support/log_lines.h"
#include "support/streams.h"
#include "transports/every_transport.h"

namespace tambour::server_errors_test {
namespace {

using namespace std::chrono_literals;

std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& exception) {
    return exception.what();
  }
}

/// Connects, sends a byte, and waits until the server has closed the connection.
Task<> say_and_wait_for_end(Endpoint to) {
  auto stream = co_await test::connect_to(to);
  if (!stream || !co_await stream->write("x")) co_return;
  Buffer nothing;
  while ((co_await stream->read(nothing)).value_or(0) != 0) {
  }
}

class ServerErrors : public test::OnEveryBackend {
 protected:
  void TearDown() override {
    server.reset();
    OnEveryBackend::TearDown();
  }
  void listen(ListenOptions options) {
    server = std::make_unique<TcpServer>(
        test::listen(loop(), Endpoint::loopback_v4(0), std::move(options)).value());
  }
  void listen() {
    listen({.on_error = [this](const std::exception_ptr& thrown) {
      errors.push_back(text_of(thrown));
    }});
  }
  void listen_until_error() {
    listen({.on_error = [this](const std::exception_ptr& thrown) {
      errors.push_back(text_of(thrown));
      server.reset();
    }});
  }

  std::unique_ptr<TcpServer> server;
  std::vector<std::string> errors;
};

TAMBOUR_ON_EVERY_TRANSPORT(ServerErrors);

TEST_P(ServerErrors, exceptions_of_handlers_are_reported_and_the_server_keeps_serving) {
  listen();
  int served = 0;
  server->serve([&served](TcpStream peer) -> Task<> {
    const int local = ++served;
    if (local == 1) throw std::runtime_error("before the first suspension");
    Buffer buffer;
    static_cast<void>(co_await peer.read(buffer));
    if (local == 2) throw std::runtime_error("after it");
    static_cast<void>(co_await peer.write(buffer));
  });
  run(say_and_wait_for_end(server->endpoint()));
  run(say_and_wait_for_end(server->endpoint()));
  run(test::expect_echo_from(server->endpoint()));
  EXPECT_EQ(errors, (std::vector<std::string>{"before the first suspension", "after it"}));
  EXPECT_TRUE(run_until([this] { return server->connections() == 0; }));
}

TEST_P(ServerErrors, exceptions_of_handlers_that_are_no_coroutines_are_reported) {
  listen();
  server->serve([](TcpStream) -> Task<> { throw std::runtime_error("no coroutine"); });
  run(say_and_wait_for_end(server->endpoint()));
  EXPECT_EQ(errors, std::vector<std::string>{"no coroutine"});
  EXPECT_EQ(server->connections(), 0U);
}

TEST_P(ServerErrors, handlers_may_refuse_a_stream_with_an_empty_task) {
  listen();
  server->serve([](TcpStream) -> Task<> { return {}; });
  run(say_and_wait_for_end(server->endpoint()));
  run(say_and_wait_for_end(server->endpoint()));
  EXPECT_EQ(server->connections(), 0U);
  EXPECT_TRUE(errors.empty());
}

TEST_P(ServerErrors, exceptions_of_callbacks_are_reported_and_close_only_their_connection) {
  const auto fail = [](std::string_view where) { throw std::runtime_error(std::string(where)); };
  const std::string much(8'000'000, 'x');
  std::vector<std::pair<std::string, ConnectionCallbacks>> cases;
  cases.emplace_back("on_connection", ConnectionCallbacks{.on_connection = [&](Connection&) {
                       fail("on_connection");
                     }});
  cases.emplace_back("on_message", ConnectionCallbacks{.on_message = [&](Connection&, Buffer&) {
                       fail("on_message");
                     }});
  cases.emplace_back(
      "on_high_water",
      ConnectionCallbacks{.on_message =
                              [&](Connection& local, Buffer& bytes) {
                                bytes.clear();
                                EXPECT_FALSE(local.send(much) && local.is_open());
                              },
                          .on_high_water = [&](Connection&, std::size_t) { fail("on_high_water"); },
                          .high_water_bytes = 1});
  cases.emplace_back(
      "on_close",
      ConnectionCallbacks{.on_message = [](Connection& connection, Buffer&) { connection.close(); },
                          .on_close = [&](Connection&, Error) { fail("on_close"); }});
  for (auto& [name, callbacks] : cases) {
    listen();
    bool closed = false;
    if (!callbacks.on_close) callbacks.on_close = [&](Connection&, Error) { closed = true; };
    server->serve(std::move(callbacks));
    run(say_and_wait_for_end(server->endpoint()));
    EXPECT_EQ(std::exchange(errors, {}), std::vector<std::string>{name});
    EXPECT_TRUE(run_until([this] { return server->connections() == 0; })) << name;
    EXPECT_EQ(closed, name != "on_close") << name;
  }
}

/// With system calls on the listener.
class ServerErrorsOfSockets : public ServerErrors {};

TAMBOUR_ON_EVERY_BACKEND(ServerErrorsOfSockets);

TEST_P(ServerErrorsOfSockets, a_listener_that_fails_is_reported_with_its_endpoint) {
  bool called = false;
  listen({.on_error = [&](const std::exception_ptr& thrown) {
    called = true;
    try {
      std::rethrow_exception(thrown);
    } catch (const ListenerError& error) {
      EXPECT_EQ(error.code(), system_error(EINVAL));
      EXPECT_EQ(error.endpoint(), server->endpoint());
      EXPECT_NE(std::string_view(error.what()).find(server->endpoint().to_string()),
                std::string_view::npos);
    }
  }});
  server->serve({});
  ASSERT_EQ(::shutdown(server->fd(), SHUT_RDWR), 0);
  EXPECT_TRUE(run_until([&] { return called; }));
  EXPECT_TRUE(errors.empty());
}

TEST_P(ServerErrors, on_error_may_destroy_the_server) {
  const auto suspends = [](TcpStream peer) -> Task<> {
    Buffer buffer;
    static_cast<void>(co_await peer.read(buffer));
    throw std::runtime_error("thrown");
  };
  const auto throws_at_once = [](TcpStream) -> Task<> {
    throw std::runtime_error("thrown");
    co_return;
  };
  const std::function<void()> ways[] = {
      [&] { server->serve(suspends); }, [&] { server->serve(throws_at_once); },
      [&] {
        server->serve(
            {.on_message = [](Connection&, Buffer&) { throw std::runtime_error("thrown"); }});
      }};
  for (const auto& serve : ways) {
    listen_until_error();
    serve();
    TaskScope clients(loop());
    for (int i = 0; i < 3; ++i) clients.spawn(say_and_wait_for_end(server->endpoint()));
    EXPECT_TRUE(run_until([&] { return clients.empty(); }));
    // The others ended with the server.
    EXPECT_EQ(std::exchange(errors, {}), std::vector<std::string>{"thrown"});
    EXPECT_EQ(server, nullptr);
  }
  loop().run();
}

TEST_P(ServerErrorsOfSockets, on_error_of_a_listener_may_destroy_the_server) {
  listen_until_error();
  server->serve({});
  ASSERT_EQ(::shutdown(server->fd(), SHUT_RDWR), 0);
  EXPECT_TRUE(run_until([this] { return server == nullptr; }));
  loop().run();
}

TEST_P(ServerErrors, exceptions_of_on_refused_are_reported) {
  listen({.proxy_protocol = ProxyProtocol::required,
          .on_rejected = [](Stream&, Error) { throw std::runtime_error("on_rejected"); },
          .on_error =
              [this](const std::exception_ptr& thrown) { errors.push_back(text_of(thrown)); }});
  server->serve([](TcpStream) -> Task<> { co_return; });
  run(say_and_wait_for_end(server->endpoint()));
  EXPECT_EQ(errors, std::vector<std::string>{"on_rejected"});
}

TEST_P(ServerErrors, without_on_error_exceptions_end_their_connections_and_are_written) {
  const std::function<void()> ways[] = {[this] {
                                          server->serve([](TcpStream peer) -> Task<> {
                                            Buffer buffer;
                                            static_cast<void>(co_await peer.read(buffer));
                                            throw std::runtime_error("thrown\n\x1b");
                                          });
                                        },
                                        [this] {
                                          server->serve({.on_message = [](Connection&, Buffer&) {
                                            throw std::runtime_error("thrown\n\x1b");
                                          }});
                                        }};
  for (const auto& serve : ways) {
    listen({});
    serve();
    testing::internal::CaptureStderr();
    run(say_and_wait_for_end(server->endpoint()));
    run(say_and_wait_for_end(server->endpoint()));
    EXPECT_TRUE(run_until([this] { return server->connections() == 0; }));
    const std::string written = testing::internal::GetCapturedStderr();
    EXPECT_EQ(server->handler_exceptions(), 2U);
    const std::string line =
        "tambour: a handler or callback of the server at " + server->endpoint().to_string() +
        " has thrown std::runtime_error: thrown??; set on_error to handle it\n";
    // Lines of the tests before may have used up those of this second.
    EXPECT_TRUE(written.empty() || written.find(line) != std::string::npos) << written;
    server.reset();
  }
}

TEST_P(ServerErrors, out_of_memory_in_a_handler_ends_only_its_connection) {
  listen();
  int served = 0;
  server->serve([&served](TcpStream peer) -> Task<> {
    if (++served == 1) throw std::bad_alloc();
    co_await test::echo(std::move(peer));
  });
  run(say_and_wait_for_end(server->endpoint()));
  run(test::expect_echo_from(server->endpoint()));
  EXPECT_EQ(errors.size(), 1U);
  EXPECT_EQ(server->handler_exceptions(), 1U);
}

TEST_P(ServerErrors, at_most_ten_lines_a_second_are_written) {
  listen({});
  server->serve({.on_connection = [](Connection&) { throw std::runtime_error("thrown"); }});
  testing::internal::CaptureStderr();
  const TimePoint began = Clock::now();
  for (int i = 0; i < 25; ++i) run(say_and_wait_for_end(server->endpoint()));
  EXPECT_TRUE(run_until([this] { return server->handler_exceptions() == 25; }));
  const std::string written = testing::internal::GetCapturedStderr();
  // A second may have begun before the test. Each later one has a line that counts what was left
  // out.
  const auto seconds = 2 + (Clock::now() - began) / 1s;
  EXPECT_LE(std::ranges::count(written, '\n'), 11 * seconds - 1) << written;
}

TEST_P(ServerErrors, a_program_may_handle_the_exceptions_of_its_callbacks_itself) {
  listen();
  int handled = 0;
  server->serve({.on_message = [](Connection&, Buffer&) { throw std::runtime_error("thrown"); },
                 .on_exception = [&handled](const std::exception_ptr&) { ++handled; }});
  run(say_and_wait_for_end(server->endpoint()));
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(server->handler_exceptions(), 1U);
  EXPECT_TRUE(errors.empty());
}

TEST_P(ServerErrorsOfSockets, without_on_error_a_listener_that_fails_leaves_run) {
  listen({});
  server->serve({});
  ASSERT_EQ(::shutdown(server->fd(), SHUT_RDWR), 0);
  EXPECT_THROW(static_cast<void>(run_until([] { return false; })), ListenerError);
  EXPECT_EQ(server->handler_exceptions(), 0U);
}

TEST_P(ServerErrors, exceptions_of_on_error_leave_run) {
  listen({.on_error = [](const std::exception_ptr& thrown) { std::rethrow_exception(thrown); }});
  server->serve([](TcpStream) -> Task<> {
    throw std::logic_error("again");
    co_return;
  });
  EXPECT_THROW(run(say_and_wait_for_end(server->endpoint())), std::logic_error);
}

// Once, because records are limited for the whole process.
TEST(ServerRecords, of_a_full_server_an_exception_and_a_shutdown) {
  test::LogLines log;
  EventLoop loop;
  ListenOptions options;
  options.connections_max = 1;
  options.on_error = [](const std::exception_ptr&) {};
  TcpServer server = or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0), options));
  server.serve([](TcpStream peer) -> Task<> {
    Buffer buffer;
    static_cast<void>(co_await peer.read(buffer));
    throw std::runtime_error("a secret of the program, not of a client");
  });
  auto use = [&]() -> Task<> {
    auto stream = co_await TcpStream::connect(server.endpoint());
    EXPECT_TRUE(stream);
    while (!log.has("message=\"accepting is paused: the server is full\" connections=1"))
      static_cast<void>(co_await sleep_for(1ms));
    static_cast<void>(co_await stream->write("planted-secret"));
    while (!log.has("message=\"a handler has thrown\" server=127.0.0.1:"))
      static_cast<void>(co_await sleep_for(1ms));
    EXPECT_FALSE(log.has("shutting down"));
    co_await server.shut_down(0s);
  };
  block_on(loop, timeout(1min, use()));
  EXPECT_GE(server.accept_pauses(), 1U);
  EXPECT_TRUE(log.has("level=error component=server"));
  EXPECT_TRUE(log.has("exception=\"a secret of the program"));
  EXPECT_TRUE(log.has("level=info component=server message=\"shutting down\" connections="));
  EXPECT_FALSE(log.has("planted-secret"));
}

}  // namespace
}  // namespace tambour::server_errors_test
