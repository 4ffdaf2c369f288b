// TLS connections with callbacks, on every backend.
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/connection.h>
#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/streams.h"
#include "tls/support/certificates.h"

namespace tambour::connections_test {
namespace {

using namespace std::chrono_literals;
using test::Contexts;

class TlsConnections : public test::OnEveryBackend {
 protected:
  TcpServer listen(ConnectionCallbacks callbacks) {
    ListenOptions options;
    options.tls = contexts.server;
    options.on_rejected = [this](SocketStream&, Error error) { refused.push_back(error); };
    auto server = TcpServer::listen(loop(), Endpoint::loopback_v4(0), options).value();
    server.serve(std::move(callbacks));
    return server;
  }
  SocketStream connect_to(const TcpServer& server) {
    SocketStream connected;
    run([](std::uint16_t to, tls::ClientContext tls, SocketStream& into) -> Task<> {
      auto stream = co_await connect("127.0.0.1", to, tls);
      EXPECT_TRUE(stream) << stream.error().message();
      if (stream) into = std::move(*stream);
    }(server.endpoint().port(), contexts.client, connected));
    return connected;
  }
  static ConnectionCallbacks echo() {
    return {.on_message = [](Connection& peer, Buffer& buffer) { peer.send(std::move(buffer)); }};
  }

  Contexts contexts;
  bool client_done = false;
  std::vector<Error> refused;
};

TAMBOUR_ON_EVERY_BACKEND(TlsConnections);

TEST_P(TlsConnections, echo_and_end_without_an_error) {
  std::vector<Error> ends;
  auto callbacks = echo();
  std::string cipher;
  callbacks.on_connection = [&](Connection& peer) { cipher = peer.tls()->cipher(); };
  callbacks.on_close = [&](Connection& peer, Error error) {
    EXPECT_EQ(peer.tls()->version(), tls::Version::tls13);
    ends.push_back(error);
  };
  TcpServer server = listen(std::move(callbacks));
  SocketStream stream = connect_to(server);
  run([](SocketStream& peer) -> Task<> {
    co_await test::expect_echo(peer, "hello");
    co_await test::expect_echo(peer, std::string(1'000'000, 'x'));
    EXPECT_TRUE(co_await peer.shutdown_write());
    Buffer buffer;
    EXPECT_EQ(co_await peer.read(buffer), 0U);
  }(stream));
  EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
  EXPECT_EQ(ends, std::vector<Error>{Error()});
  EXPECT_EQ(cipher, "TLS_AES_128_GCM_SHA256");
}

TEST_P(TlsConnections, truncation_is_the_reason_of_the_end) {
  std::vector<Error> ends;
  auto callbacks = echo();
  callbacks.on_close = [&](Connection&, Error error) { ends.push_back(error); };
  TcpServer server = listen(std::move(callbacks));
  SocketStream stream = connect_to(server);
  run([](SocketStream& peer) -> Task<> { co_await test::expect_echo(peer, "x"); }(stream));
  stream.close();
  EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
  EXPECT_EQ(ends, std::vector<Error>{tls::ErrorCode::truncated});
}

TEST_P(TlsConnections, truncation_after_close_after_write_is_not_an_error) {
  std::vector<Error> ends;
  ConnectionCallbacks callbacks;
  callbacks.on_message = [](Connection& peer, Buffer& buffer) {
    buffer.clear();
    peer.send("bye");
    peer.close_after_write();
  };
  callbacks.on_close = [&](Connection&, Error error) { ends.push_back(error); };
  TcpServer server = listen(std::move(callbacks));
  SocketStream stream = connect_to(server);
  run([](SocketStream& peer) -> Task<> {
    EXPECT_TRUE(co_await peer.write("?"));
    Buffer buffer;
    EXPECT_EQ(co_await peer.read(buffer), 3U);
    // Only EOF of TCP, as browsers do.
    EXPECT_EQ(::shutdown(peer.fd(), SHUT_WR), 0);
  }(stream));
  EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

TEST_P(TlsConnections, a_client_connection_sends_more_than_the_kernel_accepts) {
  TcpServer server = listen(echo());
  const std::string sent(8'000'000, 'y');
  std::size_t received = 0;
  int completions = 0;
  std::vector<Error> ends;
  ConnectionCallbacks callbacks;
  callbacks.on_message = [&](Connection& local, Buffer& buffer) {
    received += buffer.size();
    buffer.clear();
    if (received == sent.size()) local.close_after_write();
  };
  callbacks.on_write_complete = [&](Connection&) { ++completions; };
  callbacks.on_close = [&](Connection& peer, Error error) {
    ends.push_back(error);
    EXPECT_EQ(peer.tls()->failure(), "");
  };
  Connection& connection = Connection::start(
      connect_to(server), std::make_shared<const ConnectionCallbacks>(std::move(callbacks)));
  EXPECT_TRUE(connection.send(sent));
  EXPECT_GT(connection.unsent(), 0U);
  EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
  EXPECT_EQ(received, sent.size());
  EXPECT_EQ(completions, 1);
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

TEST_P(TlsConnections, one_send_of_any_size_is_accepted) {
  ConnectionCallbacks callbacks;
  std::size_t received = 0;
  callbacks.on_connection = [](Connection& peer) {
    EXPECT_TRUE(peer.send(Buffer(std::string(30'000'000, 'z'))));
    EXPECT_FALSE(peer.send("one more"));
  };
  callbacks.limits.unsent_bytes_max = 1000;
  TcpServer server = listen(std::move(callbacks));
  SocketStream stream = connect_to(server);
  run([](SocketStream& peer, std::size_t& count) -> Task<> {
    Buffer buffer;
    for (;;) {
      const auto got = co_await peer.read(buffer);
      if (!got || *got == 0) co_return;
      count += *got;
      buffer.clear();
    }
  }(stream, received));
  EXPECT_LT(received, 30'000'000U);
}

TEST_P(TlsConnections, bytes_that_a_task_has_not_read_reach_the_connection) {
  ConnectionCallbacks callbacks;
  callbacks.on_connection = [](Connection& peer) {
    peer.send("hello world");
    peer.close_after_write();
  };
  TcpServer server = listen(std::move(callbacks));
  SocketStream stream = connect_to(server);
  run([](SocketStream& peer) -> Task<> {
    std::array<std::byte, 6> place;
    EXPECT_EQ(co_await peer.read(place), 6U);
  }(stream));
  std::string rest;
  std::vector<Error> ends;
  Connection::start(std::move(stream),
                    std::make_shared<const ConnectionCallbacks>(ConnectionCallbacks{
                        .on_message =
                            [&](Connection&, Buffer& buffer) {
                              rest += buffer.to_string();
                              buffer.clear();
                            },
                        .on_close = [&](Connection&, Error error) { ends.push_back(error); }}));
  EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
  EXPECT_EQ(rest, "world");
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

TEST_P(TlsConnections, reading_resumes_with_what_was_decrypted) {
  std::string got;
  Connection* paused = nullptr;
  ConnectionCallbacks callbacks;
  callbacks.on_message = [&](Connection& peer, Buffer& buffer) {
    got += buffer.to_string();
    buffer.clear();
    peer.pause_reading();
    paused = &peer;
  };
  std::vector<Error> ends;
  callbacks.on_close = [&](Connection&, Error error) { ends.push_back(error); };
  TcpServer server = listen(std::move(callbacks));
  SocketStream stream = connect_to(server);
  const std::string text(200'000, 'q');
  TaskScope scope(loop());
  scope.spawn([](SocketStream& peer, const std::string& all) -> Task<> {
    EXPECT_TRUE(co_await peer.write(all));
    EXPECT_TRUE(co_await peer.shutdown_write());
    Buffer buffer;
    EXPECT_EQ(co_await peer.read(buffer), 0U);
  }(stream, text));
  EXPECT_TRUE(run_until([&] {
    if (Connection* const peer = std::exchange(paused, nullptr)) peer->resume_reading();
    return !ends.empty();
  }));
  EXPECT_EQ(got, text);
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

TEST_P(TlsConnections, half_close_forwards_an_end) {
  std::string got;
  std::vector<Error> ends;
  ConnectionCallbacks callbacks;
  callbacks.on_message = [&](Connection&, Buffer& buffer) {
    got += buffer.to_string();
    buffer.clear();
  };
  callbacks.on_end = [](Connection& peer) {
    peer.send("answer");
    peer.shutdown_write();
  };
  callbacks.on_close = [&](Connection&, Error error) { ends.push_back(error); };
  TcpServer server = listen(std::move(callbacks));
  SocketStream stream = connect_to(server);
  run([](SocketStream& peer) -> Task<> {
    EXPECT_TRUE(co_await peer.write("question"));
    EXPECT_TRUE(co_await peer.shutdown_write());
    Buffer buffer;
    EXPECT_EQ(co_await peer.read(buffer), 6U);
    EXPECT_EQ(buffer, "answer");
    EXPECT_EQ(co_await peer.read(buffer), 0U);
  }(stream));
  EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
  EXPECT_EQ(got, "question");
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

TEST_P(TlsConnections, a_peer_that_does_not_read_meets_the_write_timeout) {
  std::vector<Error> ends;
  ConnectionCallbacks callbacks;
  callbacks.on_connection = [](Connection& peer) { peer.send(std::string(10'000'000, 'a')); };
  callbacks.on_close = [&](Connection&, Error error) { ends.push_back(error); };
  callbacks.limits.write_timeout = 50ms;
  TcpServer server = listen(std::move(callbacks));
  const SocketStream stream = connect_to(server);
  EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
  EXPECT_EQ(ends, std::vector<Error>{system_error(ETIMEDOUT)});
}

TEST_P(TlsConnections, a_client_connects_again) {
  TcpServer server = listen(echo());
  int connections = 0;
  const std::uint16_t port = server.endpoint().port();
  StreamClient client(loop(),
                      [port, tls = contexts.client] { return connect("127.0.0.1", port, tls); },
                      {.on_connection =
                           [&](Connection& connection) {
                             if (++connections < 3) {
                               connection.close_after_write();
                             } else {
                               connection.send("hello");
                             }
                           },
                       .on_message =
                           [&](Connection&, Buffer& buffer) {
                             EXPECT_EQ(buffer, "hello");
                             client_done = true;
                           }},
                      {.retry = {.attempts_max = RetryPolicy::unlimited, .delay = 1ms}});
  client.start();
  EXPECT_TRUE(run_until([&] { return client_done; }));
  EXPECT_EQ(connections, 3);
}

/// A server that answers "STARTTLS" in plaintext and then begins TLS, and the end of its
/// connection.
class StartTls : public TlsConnections {
 protected:
  ConnectionCallbacks server() {
    ConnectionCallbacks callbacks;
    callbacks.on_message = [this](Connection& peer, Buffer& buffer) {
      if (peer.tls() != nullptr) {
        peer.send(std::move(buffer));
        return;
      }
      const auto line = take_line(buffer).value();
      if (!line) return;
      EXPECT_EQ(*line, "STARTTLS");
      peer.send("OK\n");
      tls::accept(peer, contexts.server, [this](Connection& connection, Error error) {
        outcomes.push_back(error);
        if (!error) {
          EXPECT_EQ(connection.tls()->version(), tls::Version::tls13);
        }
      });
      peer.send("first over TLS\n");
    };
    callbacks.on_close = [this](Connection&, Error error) { ends.push_back(error); };
    return callbacks;
  }
  TcpServer listen_in_plaintext() {
    auto listening = TcpServer::listen(loop(), Endpoint::loopback_v4(0)).value();
    listening.serve(server());
    return listening;
  }

  std::vector<Error> outcomes;
  std::vector<Error> ends;
};

TAMBOUR_ON_EVERY_BACKEND(StartTls);

TEST_P(StartTls, upgrades_an_open_connection) {
  TcpServer listening = listen_in_plaintext();
  run([](Endpoint to, tls::ClientContext tls) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    Buffer buffer;
    EXPECT_TRUE(co_await stream->write("STARTTLS\n"));
    auto line = co_await read_line(*stream, buffer);
    EXPECT_TRUE(line && *line == "OK");
    const auto done = co_await tls::connect(*stream, buffer, tls, "localhost");
    EXPECT_TRUE(done) << done.error().message();
    if (!done) co_return;
    line = co_await read_line(*stream, buffer);
    EXPECT_TRUE(line && *line == "first over TLS");
    co_await test::expect_echo(*stream, std::string(100'000, 'x'));
    EXPECT_TRUE(co_await stream->shutdown_write());
    EXPECT_EQ(co_await stream->read(buffer), 0U);
  }(listening.endpoint(), contexts.client));
  EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
  EXPECT_EQ(outcomes, std::vector<Error>{Error()});
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

TEST_P(StartTls, refuses_injected_plaintext) {
  TcpServer listening = listen_in_plaintext();
  run([](Endpoint to) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(co_await stream->write("STARTTLS\nRCPT TO:<victim>\n"));
    Buffer buffer;
    while (const auto got = co_await stream->read(buffer)) {
      if (*got == 0) break;
    }
  }(listening.endpoint()));
  EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
  EXPECT_EQ(outcomes, std::vector<Error>{tls::ErrorCode::unread_plaintext});
  EXPECT_EQ(ends, std::vector<Error>{tls::ErrorCode::unread_plaintext});
}

TEST_P(StartTls, has_a_time_limit) {
  tls::ServerOptions options;
  options.handshake_timeout = 20ms;
  contexts = Contexts(options, {});
  TcpServer listening = listen_in_plaintext();
  run([](Endpoint to) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(co_await stream->write("STARTTLS\n"));
    Buffer buffer;
    while (const auto got = co_await stream->read(buffer)) {
      if (*got == 0) break;
    }
  }(listening.endpoint()));
  EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
  EXPECT_EQ(outcomes, std::vector<Error>{system_error(ETIMEDOUT)});
  EXPECT_EQ(ends, std::vector<Error>{system_error(ETIMEDOUT)});
}

TEST_P(StartTls, works_between_two_connections) {
  TcpServer listening = listen_in_plaintext();
  SocketStream plain;
  run([](Endpoint to, SocketStream& into) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    if (stream) into = std::move(*stream);
  }(listening.endpoint(), plain));
  std::string got;
  ConnectionCallbacks callbacks;
  callbacks.on_connection = [](Connection& local) { local.send("STARTTLS\n"); };
  callbacks.on_message = [&](Connection& connection, Buffer& buffer) {
    got += buffer.to_string();
    buffer.clear();
    if (got == "OK\n")
      tls::connect(connection, contexts.client, "localhost", [](Connection& secured, Error error) {
        EXPECT_FALSE(error) << error.message();
        secured.send("hello\n");
      });
    if (got.ends_with("hello\n")) connection.close_after_write();
  };
  std::vector<Error> own_ends;
  callbacks.on_close = [&](Connection&, Error error) { own_ends.push_back(error); };
  Connection::start(std::move(plain),
                    std::make_shared<const ConnectionCallbacks>(std::move(callbacks)));
  EXPECT_TRUE(run_until([&] { return !own_ends.empty() && !ends.empty(); }));
  EXPECT_EQ(got, "OK\nfirst over TLS\nhello\n");
  EXPECT_EQ(own_ends, std::vector<Error>{Error()});
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

TEST_P(StartTls, a_host_that_is_no_name_ends_the_connection_later) {
  auto listening = TcpServer::listen(loop(), Endpoint::loopback_v4(0)).value();
  std::string history;
  ConnectionCallbacks callbacks;
  callbacks.on_connection = [&](Connection& peer) {
    const auto note = [&](Connection&, Error error) {
      outcomes.push_back(error);
      history += "done ";
    };
    tls::connect(peer, contexts.client, ".localhost", note);
    history += "called ";
  };
  callbacks.on_close = [&](Connection& peer, Error error) {
    ends.push_back(error);
    history += "closed ";
    // Not invoked: the connection has ended.
    tls::connect(peer, contexts.client, "", [](Connection&, Error) { ADD_FAILURE(); });
  };
  listening.serve(std::move(callbacks));
  run([](Endpoint to) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    Buffer buffer;
    EXPECT_EQ(co_await stream->read(buffer), 0U);
  }(listening.endpoint()));
  EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
  EXPECT_EQ(history, "called done closed ");
  EXPECT_EQ(outcomes, std::vector<Error>{system_error(EINVAL)});
  EXPECT_EQ(ends, std::vector<Error>{system_error(EINVAL)});
  EXPECT_NE(contexts.last_failure->find("\".localhost\" is neither a name nor an address"),
            std::string::npos)
      << *contexts.last_failure;
}

TEST_P(StartTls, an_end_that_is_requested_during_the_handshake_is_sent_after_it) {
  for (void (Connection::*end)() noexcept :
       {&Connection::shutdown_write, &Connection::close_after_write}) {
    auto listening = TcpServer::listen(loop(), Endpoint::loopback_v4(0)).value();
    ConnectionCallbacks callbacks;
    callbacks.on_connection = [&](Connection& peer) {
      tls::accept(peer, contexts.server,
                  [this](Connection&, Error error) { outcomes.push_back(error); });
      (peer.*end)();
    };
    callbacks.on_close = [this](Connection&, Error error) { ends.push_back(error); };
    listening.serve(std::move(callbacks));
    run([](Endpoint to, tls::ClientContext tls) -> Task<> {
      auto stream = co_await TcpStream::connect(to);
      EXPECT_TRUE(stream);
      if (!stream) co_return;
      EXPECT_TRUE(co_await tls::connect(*stream, tls, "localhost"));
      Buffer buffer;
      const auto got = co_await timeout(1min, stream->read(buffer));
      EXPECT_TRUE(got) << got.error().message();
      if (got) {
        EXPECT_EQ(*got, 0U);
      }
      EXPECT_TRUE(co_await stream->shutdown_write());
    }(listening.endpoint(), contexts.client));
    EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
    EXPECT_EQ(std::exchange(outcomes, {}), std::vector<Error>{Error()});
    EXPECT_EQ(std::exchange(ends, {}), std::vector<Error>{Error()});
  }
}

TEST_P(StartTls, closing_during_the_handshake_is_silent) {
  auto listening = TcpServer::listen(loop(), Endpoint::loopback_v4(0)).value();
  ConnectionCallbacks callbacks;
  callbacks.on_connection = [this](Connection& peer) {
    tls::accept(peer, contexts.server, [](Connection&, Error) { ADD_FAILURE(); });
    peer.close();
  };
  callbacks.on_close = [this](Connection&, Error error) { ends.push_back(error); };
  listening.serve(std::move(callbacks));
  run([](Endpoint to) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    Buffer buffer;
    static_cast<void>(co_await stream->read(buffer));
  }(listening.endpoint()));
  EXPECT_TRUE(run_until([&] { return !ends.empty(); }));
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

}  // namespace
}  // namespace tambour::connections_test
