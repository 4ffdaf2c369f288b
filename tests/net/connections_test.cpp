// Connections: streams with callbacks, over every transport.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/connection.h>
#include <tambour/net/tcp.h>

#include "net/connection/core.h"
#include "support/peer.h"
#include "support/scale.h"
#include "support/streams.h"
#include "transports/every_transport.h"

namespace tambour::connections_test {
namespace {

using namespace std::chrono_literals;

class Connections : public test::OnEveryBackend {
 protected:
  using Callbacks = ConnectionCallbacks;

  /// Starts a connection with these callbacks; `peer` is its other end.
  Connection& connect(Callbacks callbacks) {
    test::StreamEnds both = test::open_stream_ends(loop());
    peer = std::move(both.far);
    return Connection::start(std::move(both.near),
                             std::make_shared<const Callbacks>(std::move(callbacks)));
  }
  std::function<void(Connection&, Error)> note_end() {
    return [this](Connection&, Error error) { ends.push_back(error); };
  }
  bool run_until_end() {
    return run_until([this] { return !ends.empty(); });
  }
  void peer_sends(std::string_view text) { ASSERT_EQ(test::send_now(peer, text), text.size()); }
  /// Returns everything that has arrived at the peer.
  std::string peer_reads() { return test::receive_now(peer); }

  Stream peer;
  std::vector<Error> ends;
};

TAMBOUR_ON_EVERY_TRANSPORT(Connections);

static_assert(sizeof(detail::net::ConnectionCore) == 184,
              "docs/streams.md gives the size of an idle connection");

TEST_P(Connections, echo) {
  auto server = test::listen(loop());
  ASSERT_TRUE(server);
  server->serve({.on_message = [](Connection& connection, Buffer& buffer) {
    connection.send(std::move(buffer));
  }});
  std::string sent(test::scaled(3'000'000), 'x');
  for (std::size_t i = 0; i < sent.size(); i += 7) sent[i] = char('a' + i % 26);
  bool same = false;
  spawn(loop(), [](Endpoint to, const std::string& text, bool& equal) -> Task<> {
    auto stream = co_await test::connect_to(to);
    EXPECT_TRUE(stream);
    TaskScope scope(stream->loop());
    scope.spawn([](TcpStream& out, const std::string& all) -> Task<> {
      EXPECT_TRUE(co_await out.write(all));
      EXPECT_TRUE(co_await out.shutdown_write());
    }(*stream, text));
    Buffer back;
    while (const auto got = co_await stream->read(back)) {
      if (*got == 0) break;
    }
    co_await scope.join();
    equal = back == text;
  }(server->endpoint(), sent, same));
  EXPECT_TRUE(run_until([&] { return same; }));
  EXPECT_TRUE(run_until([&] { return server->connections() == 0; }));
}

TEST_P(Connections, callbacks_may_be_move_only) {
  std::vector<std::string> known;
  auto prefix = std::make_unique<std::string>("got ");
  connect({.on_message =
               [&, prefix = std::move(prefix)](Connection&, Buffer& buffer) {
                 known.push_back(*prefix + buffer.take(buffer.size()).to_string());
               },
           // As std::function, it may be empty.
           .on_end = std::function<void(Connection&)>(),
           .on_close =
               [this, count = std::make_unique<int>(0)](Connection&, Error error) {
                 EXPECT_EQ(++*count, 1);
                 ends.push_back(error);
               }});
  peer_sends("one");
  run_iterations();
  EXPECT_EQ(known, std::vector<std::string>{"got one"});
  peer.close();
  EXPECT_TRUE(run_until_end());
}

TEST_P(Connections, keeps_bytes_that_on_message_leaves) {
  std::vector<std::string> lines;
  connect({.on_message = [&](Connection&, Buffer& buffer) {
    while (const auto end = buffer.find('\n')) {
      lines.push_back(buffer.take(*end).to_string());
      buffer.consume(1);
    }
  }});
  peer_sends("one\ntw");
  run_iterations();
  EXPECT_EQ(lines, std::vector<std::string>{"one"});
  peer_sends("o\n\n");
  run_iterations();
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", ""}));
}

TEST_P(Connections, resuming_offers_the_remaining_bytes_again) {
  std::vector<std::string> lines;
  int ends_of_input = 0;
  Connection& connection = connect({.on_message =
                                        [&](Connection& self, Buffer& buffer) {
                                          const auto end = buffer.find('\n');
                                          if (!end) return;
                                          lines.push_back(buffer.take(*end).to_string());
                                          buffer.consume(1);
                                          self.pause_reading();
                                        },
                                    .on_end = [&](Connection&) { ++ends_of_input; }});
  peer_sends("one\ntwo\nthree\nrest");
  test::end_now(peer);
  for (std::size_t i = 1; i <= 3; ++i) {
    run_iterations();
    EXPECT_EQ(lines.size(), i);
    EXPECT_EQ(ends_of_input, 0);
    connection.resume_reading();
    EXPECT_EQ(lines.size(), i);
  }
  EXPECT_TRUE(run_until([&] { return ends_of_input == 1; }));
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "three"}));
}

TEST_P(Connections, remaining_bytes_are_offered_once_for_each_pause) {
  int calls = 0;
  Connection& connection = connect({.on_message = [&](Connection& self, Buffer&) {
    ++calls;
    self.pause_reading();
    self.resume_reading();
  }});
  peer_sends("x");
  run_iterations();
  EXPECT_EQ(calls, 1);
  connection.pause_reading();
  connection.resume_reading();
  run_iterations();
  EXPECT_EQ(calls, 2);
}

TEST_P(Connections, a_half_closed_connection_continues_reading) {
  std::string received;
  bool at_end = false;
  Connection& connection = connect({.on_message =
                                        [&](Connection&, Buffer& buffer) {
                                          received += buffer.to_string();
                                          buffer.clear();
                                        },
                                    .on_end = [&](Connection&) { at_end = true; },
                                    .on_close = note_end()});
  const std::string sent(3'000'000, 'x');
  EXPECT_TRUE(connection.send(sent));
  connection.pause_reading();
  connection.shutdown_write();
  EXPECT_FALSE(connection.send("lost"));
  EXPECT_TRUE(connection.is_open());
  peer_sends("answer");
  std::size_t count = 0;
  EXPECT_TRUE(run_until([&] { return (count += peer_reads().size()) == sent.size(); }));
  run_iterations();
  EXPECT_TRUE(test::has_ended(peer));
  EXPECT_EQ(received, "");
  connection.resume_reading();
  run_iterations();
  EXPECT_EQ(received, "answer");
  EXPECT_FALSE(at_end);
  test::end_now(peer);
  EXPECT_TRUE(run_until_end());
  EXPECT_TRUE(at_end);
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

TEST_P(Connections, a_half_close_in_on_end_closes_after_the_remaining_bytes) {
  Connection& connection =
      connect({.on_end = [](Connection& self) { self.shutdown_write(); }, .on_close = note_end()});
  const std::string sent(3'000'000, 'x');
  EXPECT_TRUE(connection.send(sent));
  test::shut_down_now(peer);
  std::size_t count = 0;
  EXPECT_TRUE(run_until([&] { return (count += peer_reads().size()) == sent.size(); }));
  EXPECT_TRUE(run_until_end());
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

TEST_P(Connections, reports_write_completion_and_the_high_water_mark) {
  std::vector<std::size_t> high;
  int complete = 0;
  Connection& connection =
      connect({.on_write_complete = [&](Connection&) { ++complete; },
               .on_high_water = [&](Connection&, std::size_t bytes) { high.push_back(bytes); },
               .high_water_bytes = 1'000'000});
  connection.send("at once");
  run_iterations();
  EXPECT_EQ(complete, 0);
  EXPECT_EQ(peer_reads(), "at once");
  const std::string piece(300'000, 'x');
  std::size_t sent = 0;
  while (connection.unsent() < 1'000'000) {
    EXPECT_TRUE(high.empty());
    connection.send(piece);
    sent += piece.size();
  }
  connection.send("y");
  EXPECT_EQ(high.size(), 1U);
  EXPECT_EQ(high.front() + 1, connection.unsent());
  std::size_t received = 0;
  EXPECT_TRUE(run_until([&] {
    received += peer_reads().size();
    return complete == 1 && received == sent + 1;
  }));
  EXPECT_EQ(connection.unsent(), 0U);
}

TEST_P(Connections, sends_the_remaining_bytes_before_it_closes) {
  std::string text(2'000'000, 'x');
  Connection& connection = connect({.on_close = note_end()});
  connection.send(text);
  connection.close_after_write();
  connection.send("too late");
  std::size_t received = 0;
  EXPECT_TRUE(run_until([&] { return (received += peer_reads().size()) == text.size(); }));
  run_iterations();
  EXPECT_TRUE(ends.empty());
  EXPECT_TRUE(test::has_ended(peer));
  peer.close();
  EXPECT_TRUE(run_until_end());
  EXPECT_EQ(ends, std::vector<Error>{Error()});
  loop().run();
}

TEST_P(Connections, can_answer_a_peer_that_half_closed) {
  connect({.on_message =
               [](Connection& connection, Buffer& buffer) {
                 buffer.clear();
                 connection.send(std::string(2'000'000, 'x'));
               },
           .on_close = note_end()});
  peer_sends("?");
  test::shut_down_now(peer);
  std::size_t received = 0;
  EXPECT_TRUE(run_until([&] {
    received += peer_reads().size();
    return !ends.empty();
  }));
  received += peer_reads().size();
  EXPECT_EQ(received, 2'000'000U);
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

TEST_P(Connections, does_not_read_while_paused) {
  int messages = 0;
  Connection& connection = connect({.on_message = [&](Connection& local, Buffer& buffer) {
    buffer.clear();
    ++messages;
    local.pause_reading();
  }});
  peer_sends("x");
  run_iterations();
  peer_sends("y");
  run_iterations();
  EXPECT_EQ(messages, 1);
  connection.resume_reading();
  run_iterations();
  EXPECT_EQ(messages, 2);
  connection.close();
  loop().run();
}

TEST_P(Connections, closes_after_the_idle_timeout) {
  Connection& connection = connect({.on_close = note_end()});
  connection.set_idle_timeout(20ms);
  const TimePoint begin = loop().now();
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{system_error(ETIMEDOUT)});
  EXPECT_GE(loop().now() - begin, 20ms);
}

TEST_P(Connections, the_longest_idle_timeout_never_expires) {
  connect({.on_close = note_end()}).set_idle_timeout(Duration::max());
  run_for(5ms);
  EXPECT_TRUE(ends.empty());
}

TEST_P(Connections, can_answer_after_on_end_has_returned) {
  int peer_ends = 0;
  Connection& connection =
      connect({.on_end = [&](Connection&) { ++peer_ends; }, .on_close = note_end()});
  peer_sends("?");
  test::shut_down_now(peer);
  EXPECT_TRUE(run_until([&] { return peer_ends == 1; }));
  EXPECT_TRUE(sleeps_through(10ms));
  EXPECT_EQ(peer_ends, 1);
  EXPECT_TRUE(ends.empty());
  connection.send("!");
  connection.close_after_write();
  EXPECT_TRUE(run_until_end());
  EXPECT_EQ(peer_reads(), "!");
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

TEST_P(Connections, on_end_may_close_and_is_not_invoked_after_close_after_write) {
  Connection& connection =
      connect({.on_end = [](Connection& local) { local.close(); }, .on_close = note_end()});
  test::shut_down_now(peer);
  EXPECT_TRUE(run_until_end());
  static_cast<void>(connection);
  ends.clear();
  connect({.on_end = [](Connection&) { FAIL() << "it had said itself that it would end"; },
           .on_close = note_end()})
      .close_after_write();
  test::shut_down_now(peer);
  EXPECT_TRUE(run_until_end());
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

TEST_P(Connections, a_paused_half_closed_connection_closes_with_its_peer) {
  std::string got;
  Connection& connection =
      connect({.on_message = [&](Connection&, Buffer& buffer) { got += buffer.to_string(); },
               .on_close = note_end()});
  connection.pause_reading();
  peer_sends("unread bytes");
  connection.close_after_write();
  run_for(5ms);
  EXPECT_TRUE(ends.empty());
  EXPECT_TRUE(sleeps_through(10ms));
  peer.close();
  EXPECT_TRUE(run_until_end());
  EXPECT_EQ(got, "");
}

TEST_P(Connections, each_of_several_with_an_invalid_descriptor_is_closed_once) {
  const auto callbacks = std::make_shared<const Callbacks>(Callbacks{.on_close = note_end()});
  Connection& first = Connection::start(SocketStream(loop(), 1'000'000), callbacks);
  Connection::start(SocketStream(loop(), 1'000'001), callbacks);
  first.pause_reading();
  first.resume_reading();
  loop().run();
  EXPECT_EQ(ends.size(), 2U);
}

TEST_P(Connections, reports_why_it_was_broken) {
  Connection& connection = connect({.on_close = note_end()});
  peer.close();
  connection.send("x");
  EXPECT_TRUE(ends.empty());
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{system_error(EPIPE)});
}

TEST_P(Connections, may_be_closed_in_any_callback) {
  for (int in = 0; in < 4; ++in) {
    ends.clear();
    const auto close_in = [in](int index_value, Connection& connection) {
      if (in == index_value) connection.close();
    };
    Connection& connection = connect(
        {.on_connection = [&](Connection& own_object) { close_in(0, own_object); },
         .on_message = [&](Connection& own_entry, Buffer&) { close_in(1, own_entry); },
         .on_write_complete = [&](Connection& own_connection) { close_in(2, own_connection); },
         .on_high_water = [&](Connection& local, std::size_t) { close_in(3, local); },
         .high_water_bytes = 1,
         .on_close = note_end()});
    connection.send(std::string(2'000'000, 'x'));
    connection.send("after it was closed, perhaps");
    peer_sends("x");
    EXPECT_TRUE(run_until([&] {
      peer_reads();
      return !ends.empty();
    })) << in;
    EXPECT_EQ(ends, std::vector<Error>{Error()});
    loop().run();
  }
}

TEST_P(Connections, a_server_may_be_destroyed_by_its_own_connection) {
  auto server = std::make_unique<TcpServer>(std::move(test::listen(loop()).value()));
  server->serve(
      {.on_message = [&](Connection&, Buffer&) { server.reset(); }, .on_close = note_end()});
  bool ended = false;
  spawn(loop(), [](Endpoint to, bool& done) -> Task<> {
    auto idle = co_await test::connect_to(to);
    auto busy = co_await test::connect_to(to);
    EXPECT_TRUE(idle && busy && co_await busy->write("x"));
    Buffer nothing;
    static_cast<void>(co_await busy->read(nothing));
    static_cast<void>(co_await idle->read(nothing));
    EXPECT_TRUE(nothing.empty());
    done = true;
  }(server->endpoint(), ended));
  EXPECT_TRUE(run_until([&] { return ended; }));
  EXPECT_EQ(server, nullptr);
  EXPECT_TRUE(ends.empty());
  loop().run();
}

TEST_P(Connections, a_destroyed_loop_closes_its_connections) {
  connect({.on_close = note_end()}).send(std::string(2'000'000, 'x'));
  destroy_loop();
  EXPECT_TRUE(ends.empty());
  EXPECT_FALSE(test::receive_now(peer, 4'000'000).empty());
  EXPECT_TRUE(test::has_ended(peer));
}

TEST_P(Connections, shutting_down_waits_and_then_closes) {
  auto server = test::listen(loop());
  ASSERT_TRUE(server);
  server->serve({.on_close = note_end()});
  spawn(loop(), [](TcpServer& ending) -> Task<> {
    auto stream = co_await test::connect_to(ending.endpoint());
    EXPECT_TRUE(stream && co_await stream->write("x"));
    while (ending.connections() == 0) co_await sleep_for(1ms);
    co_await ending.shut_down(1ms);
    EXPECT_EQ(ending.connections(), 0U);
  }(*server));
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

TEST_P(Connections, an_exception_of_on_connection_ends_it_and_the_next_is_served) {
  auto server = test::listen(loop());
  ASSERT_TRUE(server);
  int opened = 0;
  server->serve({.on_connection =
                     [&opened](Connection&) {
                       if (++opened == 1) throw std::runtime_error("by the first");
                     },
                 .on_message = [](Connection& connection,
                                  Buffer& bytes) { connection.send(std::move(bytes)); }});
  std::vector<TcpStream> streams;
  testing::internal::CaptureStderr();
  run(test::connect_all(server->endpoint(), 1, streams));
  EXPECT_TRUE(run_until([&server] { return server->handler_exceptions() == 1; }));
  static_cast<void>(testing::internal::GetCapturedStderr());
  run(test::expect_echo_from(server->endpoint()));
  EXPECT_EQ(opened, 2);
}

TEST_P(Connections, on_exception_gets_what_a_callback_throws) {
  test::StreamEnds ends = test::open_stream_ends(loop());
  std::vector<std::string> order;
  Connection::start(std::move(ends.near),
                    std::make_shared<const ConnectionCallbacks>(ConnectionCallbacks{
                        .on_message =
                            [&](Connection&, Buffer&) {
                              order.emplace_back("on_message");
                              throw std::runtime_error("thrown");
                            },
                        .on_close =
                            [&](Connection&, const Error& error) {
                              EXPECT_FALSE(error);
                              order.emplace_back("on_close");
                            },
                        .on_exception =
                            [&](const std::exception_ptr& thrown) {
                              EXPECT_THROW(std::rethrow_exception(thrown), std::runtime_error);
                              order.emplace_back("on_exception");
                            }}));
  run([](SocketStream& far) -> Task<> {
    EXPECT_TRUE(co_await far.write("x"));
    co_await test::expect_closed(far);
  }(ends.far));
  EXPECT_EQ(order, (std::vector<std::string>{"on_message", "on_exception", "on_close"}));
}

TEST_P(Connections, without_on_exception_an_exception_leaves_run_and_the_connection_stays_open) {
  test::StreamEnds ends = test::open_stream_ends(loop());
  int messages = 0;
  Connection& connection = Connection::start(
      std::move(ends.near), std::make_shared<const ConnectionCallbacks>(
                                ConnectionCallbacks{.on_message = [&](Connection&, Buffer& bytes) {
                                  bytes.clear();
                                  if (++messages == 1) throw std::runtime_error("thrown");
                                }}));
  run([](SocketStream& far) -> Task<> { EXPECT_TRUE(co_await far.write("x")); }(ends.far));
  EXPECT_THROW(static_cast<void>(run_until([&] { return messages > 1; })), std::runtime_error);
  EXPECT_TRUE(connection.is_open());
}

}  // namespace
}  // namespace tambour::connections_test
