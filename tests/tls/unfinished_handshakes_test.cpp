// Thousands of peers that begin a handshake and never finish it. They are in a process of their
// own, because both ends together would exceed the limit of open files.
#include <malloc.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <tambour/tambour.h>

#include "support/streams.h"
#include "tls/support/certificates.h"

namespace tambour::unfinished_handshakes_test {
namespace {

using test::Contexts;

constexpr int peers = 5000;

bool can_open_files(rlim_t count) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_max < count) return false;
  files.rlim_cur = std::max(files.rlim_cur, count);
  return ::setrlimit(RLIMIT_NOFILE, &files) == 0;
}

std::string client_hello() {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL* const ssl = SSL_new(context);
  BIO* const sent = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), sent);
  EXPECT_LT(SSL_connect(ssl), 0);
  char* text = nullptr;
  const long size = BIO_get_mem_data(sent, &text);
  std::string hello(text, std::size_t(size));
  SSL_free(ssl);
  SSL_CTX_free(context);
  return hello;
}

/// The process of the peers: writes a byte when all have connected, and ends when it is killed.
[[noreturn]] void connect_peers(const Endpoint& to, std::string_view bytes, int done) {
  for (int i = 0; i < peers; ++i) {
    const int fd = ::socket(to.family(), SOCK_STREAM, 0);
    if (fd < 0 || ::connect(fd, to.data(), to.size()) != 0) ::_exit(1);
    // The server may have closed it already, to serve later ones.
    static_cast<void>(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0);
  }
  if (::write(done, "1", 1) != 1) ::_exit(1);
  for (;;) ::pause();
}

struct Progress {
  std::size_t heap = 0;  ///< Bytes, when all peers have connected.
  bool done = false;     ///< Another client was served.
};

/// Serves 5,000 peers that send `bytes` and nothing else, and then one that completes.
void serve_peers_that_send(std::string_view bytes) {
  if (!can_open_files(peers + 100)) GTEST_SKIP() << "too few open files are permitted";
  EventLoop loop;
  // Under a sanitizer, the handshakes of the other peers take longer than the default limit.
  tls::ServerOptions for_server;
  for_server.handshake_timeout = std::chrono::minutes(4);
  tls::ClientOptions for_client;
  for_client.handshake_timeout = std::chrono::minutes(4);
  const Contexts contexts(for_server, for_client);
  ListenOptions options;
  options.tls = contexts.server;
  std::size_t refused = 0;
  options.on_rejected = [&](SocketStream&, Error error) {
    EXPECT_EQ(error, tls::ErrorCode::too_many_handshakes);
    ++refused;
  };
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0), options).value();
  server.serve(test::echo<TcpStream>);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const std::size_t heap_before = ::mallinfo2().uordblks;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) connect_peers(server.endpoint(), bytes, pipe[1]);
  ::close(pipe[1]);
  Progress progress;
  spawn(loop,
        [](int connected, TcpServer& to, tls::ClientContext tls, Progress& reached) -> Task<> {
          EXPECT_TRUE(co_await wait_ready(connected, Events::read));
          char byte = 0;
          EXPECT_EQ(::read(connected, &byte, 1), 1) << "a peer could not connect";
          reached.heap = ::mallinfo2().uordblks;
          ConnectOptions patient;
          patient.tls = tls;
          patient.timeout = std::chrono::minutes(4);
          auto stream = co_await connect("127.0.0.1", to.endpoint().port(), patient);
          EXPECT_TRUE(stream);
          if (stream) co_await test::expect_echo(*stream, "hello");
          reached.done = true;
        }(pipe[0], server, contexts.client, progress));
  while (!progress.done) loop.run_once();
  // The work is bounded too: a few events for each peer, and none while they do nothing.
  const LoopStats served = loop.stats();
  EXPECT_LE(served.callbacks, peers * 3);
  bool waited = false;
  Timer wait(loop, [&] { waited = true; });
  wait.start(std::chrono::milliseconds(50));
  while (!waited) loop.run_once();
  EXPECT_LE(loop.stats().callbacks, served.callbacks + 10);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipe[0]);
  EXPECT_GE(refused, peers - options.tls_handshakes_max);
  EXPECT_LE(server.connections(), options.tls_handshakes_max + 1);
  // Three quarters of it are OpenSSL's buffers for records and for a message, if a message is
  // incomplete. Sanitizers do not count the heap.
  if (progress.heap > heap_before) {
    EXPECT_LE(progress.heap - heap_before, options.tls_handshakes_max * 80 * 1024);
  }
}

TEST(UnfinishedHandshakes, that_send_nothing_are_bounded) { serve_peers_that_send({}); }

TEST(UnfinishedHandshakes, that_send_a_part_of_a_client_hello_are_bounded) {
  const std::string hello = client_hello();
  serve_peers_that_send(std::string_view(hello).substr(0, hello.size() / 2));
}

TEST(UnfinishedHandshakes, that_do_not_answer_the_server_are_bounded) {
  serve_peers_that_send(client_hello());
}

}  // namespace
}  // namespace tambour::unfinished_handshakes_test
