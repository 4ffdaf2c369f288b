// Peers that flood, renegotiate, or send tiny records: clients that use OpenSSL directly.
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <tambour/tambour.h>

#include "support/scale.h"
#include "support/streams.h"
#include "tls/support/certificates.h"

namespace tambour::hostile_peers_test {
namespace {

using namespace std::chrono_literals;
using test::Contexts;

/// A blocking client on a thread of its own.
class RawClient {
 public:
  RawClient(Endpoint to, int version, std::function<void(SSL*)> play)
      : thread_([to, version, play = std::move(play)] {
          const UniqueFd fd(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
          ASSERT_EQ(::connect(fd.get(), to.data(), to.size()), 0);
          const timeval limit{.tv_sec = 60, .tv_usec = 0};
          ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
          ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
          SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
          SSL_CTX_set_max_proto_version(context, version);
          SSL* const ssl = SSL_new(context);
          SSL_set_fd(ssl, fd.get());
          EXPECT_EQ(SSL_connect(ssl), 1);
          play(ssl);
          SSL_free(ssl);
          SSL_CTX_free(context);
          ERR_clear_error();
        }) {}
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() { thread_.join(); }

 private:
  std::thread thread_;
};

class HostilePeers : public testing::Test {
 protected:
  TcpServer listen() {
    ListenOptions options;
    options.tls = contexts.server;
    return TcpServer::listen(loop, Endpoint::loopback_v4(0), options).value();
  }
  /// Runs until the connection of the client has ended, and returns why.
  Error end_of(const std::function<void(SSL*)>& play, int version = TLS1_3_VERSION) {
    TcpServer server = listen();
    std::optional<Error> end;
    server.serve({.on_message =
                      [this](Connection&, Buffer& buffer) {
                        received += buffer.size();
                        buffer.clear();
                      },
                  .on_close = [&](Connection&, Error error) { end = error; }});
    std::atomic<bool> ended{false};
    const RawClient client(server.endpoint(), version, [&](SSL* ssl) {
      play(ssl);
      ended = true;
    });
    Timer tick(loop, [] {});
    tick.start(10ms, 10ms);
    while (!end) loop.run_once();
    return *end;
  }

  static Contexts patient() {
    tls::ServerOptions server;
    server.handshake_timeout = 1min;
    tls::ClientOptions client;
    client.handshake_timeout = 1min;
    return {std::move(server), std::move(client)};
  }

  EventLoop loop;
  Contexts contexts = patient();
  std::size_t received = 0;
};

TEST_F(HostilePeers, a_flood_of_key_updates_is_bounded) {
  int updates = 0;
  const Error end = end_of([&](SSL* ssl) {
    ::signal(SIGPIPE, SIG_IGN);
    while (updates < 10'000 && SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 &&
           SSL_do_handshake(ssl) == 1)
      ++updates;
  });
  EXPECT_EQ(end, tls::ErrorCode::too_many_key_updates);
}

TEST_F(HostilePeers, some_key_updates_are_answered) {
  const Error end = end_of([](SSL* ssl) {
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
      EXPECT_EQ(SSL_write(ssl, "hello", 5), 5);
    }
    EXPECT_EQ(SSL_shutdown(ssl), 0);
    char place;
    EXPECT_LE(SSL_read(ssl, &place, 1), 0);
    EXPECT_EQ(SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
  });
  EXPECT_EQ(end, Error());
  EXPECT_EQ(received, 100U);
}

TEST_F(HostilePeers, key_update_is_answered_without_a_write) {
  bool answered = false;
  const Error end = end_of([&](SSL* ssl) {
    SSL_set_msg_callback_arg(ssl, &answered);
    SSL_set_msg_callback(ssl, [](int is_sent, int /*version*/, int type, const void* bytes,
                                 std::size_t size, SSL* /*ssl*/, void* seen) {
      if (is_sent == 0 && type == SSL3_RT_HANDSHAKE && size > 0 &&
          *static_cast<const unsigned char*>(bytes) == SSL3_MT_KEY_UPDATE)
        *static_cast<bool*>(seen) = true;
    });
    SSL_clear_mode(ssl, SSL_MODE_AUTO_RETRY);
    EXPECT_EQ(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    EXPECT_EQ(SSL_do_handshake(ssl), 1);
    char byte;
    // Each call reads a ticket, or the answer.
    for (int i = 0; i < 3 && !answered; ++i) {
      const int got = SSL_read(ssl, &byte, 1);
      EXPECT_EQ(SSL_get_error(ssl, got), SSL_ERROR_WANT_READ);
    }
    EXPECT_EQ(SSL_shutdown(ssl), 0);
  });
  EXPECT_EQ(end, Error());
  EXPECT_TRUE(answered);
}

/// A connection whose socket is full although it has nothing to send itself, because the client
/// does not read.
class FullSockets : public HostilePeers {
 protected:
  static constexpr Duration write_timeout = 200ms;

  /// Fills the buffer of the socket. Returns false if it was full.
  static bool fill(int fd) {
    const std::array<char, 4096> bytes{};
    bool was_full = true;
    while (::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) was_full = false;
    return !was_full;
  }

  ConnectionCallbacks callbacks() {
    ConnectionCallbacks chosen;
    chosen.on_close = [this](Connection&, Error error) { end_with(error); };
    chosen.limits.write_timeout = write_timeout;
    return chosen;
  }
  void end_with(const Error& error) {
    end = error;
    has_ended = true;
  }

  /// The client sends a byte. When the socket is full, it calls `then`, and waits.
  Error end_of(TcpServer& server, const std::function<void(SSL*)>& then) {
    const RawClient client(server.endpoint(), TLS1_3_VERSION, [&](SSL* ssl) {
      EXPECT_EQ(SSL_write(ssl, "x", 1), 1);
      while (!is_full && !has_ended) std::this_thread::sleep_for(1ms);
      then(ssl);
      while (!has_ended) std::this_thread::sleep_for(1ms);
    });
    Timer tick(loop, [] {});
    tick.start(10ms, 10ms);
    Timer limit(loop, [&] { end_with(system_error(ETIME)); });
    limit.start(1min);
    while (!end) loop.run_once();
    return *end;
  }

  static void ask_for_new_key(SSL* ssl) {
    EXPECT_EQ(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    EXPECT_EQ(SSL_write(ssl, "x", 1), 1);
  }

  /// A connection with callbacks. When the socket is full, `then` is called.
  Error end_of_connection(const std::function<void(Connection&)>& then,
                          const std::function<void(SSL*)>& then_client) {
    TcpServer server = listen();
    int quiet = 0;
    Connection* open = nullptr;
    Timer filling(loop, [&] {
      // The kernel may move bytes to the client for a while.
      quiet = fill(open->fd()) ? 0 : quiet + 1;
      if (quiet < 20) return;
      filling.stop();
      EXPECT_EQ(open->unsent(), 0U);
      then(*open);
      is_full = true;
    });
    ConnectionCallbacks chosen = callbacks();
    chosen.on_message = [&](Connection& peer, Buffer& buffer) {
      buffer.clear();
      if (is_full) peer.send("answer");
      if (open == nullptr) filling.start(5ms, 5ms);
      open = &peer;
    };
    server.serve(std::move(chosen));
    return end_of(server, then_client);
  }

  std::optional<Error> end;  ///< Why the connection has ended.
  std::atomic<bool> is_full{false};
  std::atomic<bool> has_ended{false};
};

TEST_F(FullSockets, an_answer_to_a_key_update_has_the_write_timeout) {
  EXPECT_EQ(end_of_connection([](Connection&) {}, &ask_for_new_key), system_error(ETIMEDOUT));
}

TEST_F(FullSockets, the_end_of_tls_has_the_write_timeout) {
  EXPECT_EQ(end_of_connection([](Connection& peer) { peer.shutdown_write(); }, [](SSL*) {}),
            system_error(ETIMEDOUT));
}

TEST_F(FullSockets, an_answer_that_a_task_has_left_has_the_write_timeout) {
  TcpServer server = listen();
  const auto shared = std::make_shared<const ConnectionCallbacks>(callbacks());
  server.serve([&](TcpStream stream) -> Task<> {
    Buffer buffer;
    EXPECT_TRUE(co_await stream.read(buffer));
    for (int quiet = 0; quiet < 20; ++quiet) {
      if (fill(stream.fd())) quiet = 0;
      static_cast<void>(co_await sleep_for(5ms));
    }
    is_full = true;
    EXPECT_TRUE(co_await stream.read(buffer));
    Connection::start(std::move(stream), shared);
  });
  EXPECT_EQ(end_of(server, &ask_for_new_key), system_error(ETIMEDOUT));
}

TEST_F(HostilePeers, renegotiation_is_refused) {
  const Error end = end_of(
      [](SSL* ssl) {
        EXPECT_EQ(SSL_write(ssl, "hello", 5), 5);
        EXPECT_EQ(SSL_renegotiate(ssl), 1);
        EXPECT_NE(SSL_do_handshake(ssl), 1);
      },
      TLS1_2_VERSION);
  EXPECT_NE(end, Error());
  EXPECT_EQ(received, 5U);
}

TEST_F(HostilePeers, tiny_records_arrive_unchanged) {
  const std::size_t count = test::scaled(20'000);
  const Error end = end_of([count](SSL* ssl) {
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(SSL_write(ssl, "x", 1), 1);
    SSL_shutdown(ssl);
    char place;
    static_cast<void>(SSL_read(ssl, &place, 1));
  });
  EXPECT_EQ(end, Error());
  EXPECT_EQ(received, count);
}

/// One client is served while `peers` others never finish their handshakes, of which the server
/// refuses `refused_min`. It has at most `connections_max` connections then.
void serve_beside_idle_peers(EventLoop& loop, const Contexts& contexts, ListenOptions options,
                             std::size_t peers, std::size_t refused_min,
                             std::size_t connections_max) {
  std::size_t refused = 0;
  options.tls = contexts.server;
  options.on_rejected = [&](SocketStream&, Error error) {
    EXPECT_EQ(error, tls::ErrorCode::too_many_handshakes);
    ++refused;
  };
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0), options).value();
  server.serve(test::echo<TcpStream>);
  std::vector<TcpStream> idle;
  bool done = false;
  spawn(loop,
        [](Endpoint to, tls::ClientContext tls, std::size_t count, std::vector<TcpStream>& all,
           bool& is_done) -> Task<> {
          co_await test::connect_all(to, count, all);
          auto stream = co_await connect("127.0.0.1", to.port(), tls);
          EXPECT_TRUE(stream);
          if (stream) co_await test::expect_echo(*stream, "hello");
          is_done = true;
        }(server.endpoint(), contexts.client, peers, idle, done));
  while (!done) loop.run_once();
  EXPECT_GE(refused, refused_min);
  EXPECT_LE(server.connections(), connections_max);
}

TEST_F(HostilePeers, many_peers_that_never_finish_do_not_keep_others_from_being_served) {
  ListenOptions options;
  options.tls_handshakes_max = 50;
  serve_beside_idle_peers(loop, contexts, options, 500, 450, 51);
}

TEST_F(HostilePeers, peers_that_never_finish_do_not_use_up_the_connections) {
  ListenOptions options;
  options.connections_max = 10;
  serve_beside_idle_peers(loop, contexts, options, 25, 15, 10);
}

}  // namespace
}  // namespace tambour::hostile_peers_test
