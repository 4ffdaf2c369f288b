// Each allocation fails once, those of OpenSSL included; and the memory of an idle connection.
// Replaces operator new, and the memory functions of OpenSSL.
#include <memory>

#include <fcntl.h>
#include <malloc.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <tambour/tambour.h>

#include "io/kept_memory.h"
#include "net/stream_filter.h"
#include "support/scale.h"
#include "support/streams.h"
#include "tls/resumption/strike_register.h"
#include "tls/support/certificates.h"

namespace {

/// The allocation to fail: 1 is the next one, 0 none. The tests use one thread.
unsigned countdown = 0;
unsigned refusals = 0;

bool refused() noexcept {
  if (countdown == 0 || --countdown > 0) return false;
  ++refusals;
  return true;
}

/// The bytes in use that malloc(3) has returned here, with what it takes itself.
std::size_t live_bytes = 0;

/// Of memory for a record.
std::size_t large_allocations = 0;
constexpr std::size_t large_bytes = 16'384;

std::size_t bytes_of(void* memory) {
  return memory == nullptr ? 0 : ::malloc_usable_size(memory) + sizeof(std::size_t);
}
void* allocate(std::size_t size) noexcept {
  void* const memory = refused() ? nullptr : std::malloc(size > 0 ? size : 1);
  live_bytes += bytes_of(memory);
  if (size >= large_bytes) ++large_allocations;
  return memory;
}
void release(void* memory) noexcept {
  live_bytes -= bytes_of(memory);
  std::free(memory);
}

void* crypto_allocate(std::size_t size, const char* /*file*/, int /*line*/) {
  return allocate(size);
}
void* crypto_reallocate(void* memory, std::size_t size, const char* /*file*/, int /*line*/) {
  if (refused()) return nullptr;
  const std::size_t before = bytes_of(memory);
  void* const moved = std::realloc(memory, size);
  if (moved != nullptr || size == 0) live_bytes += bytes_of(moved) - before;
  return moved;
}
void crypto_free(void* memory, const char* /*file*/, int /*line*/) { release(memory); }

// Before the first allocation of OpenSSL.
const bool replaced =
    CRYPTO_set_mem_functions(&crypto_allocate, &crypto_reallocate, &crypto_free) == 1;

}  // namespace

// In no namespace, because the language demands it.
void* operator new(std::size_t size) {
  void* const memory = allocate(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t& /*unused*/) noexcept {
  return allocate(size);
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { release(memory); }

namespace tambour::memory_test {
namespace {

using namespace std::chrono_literals;
using test::Contexts;

/// Returns whether an allocation was refused while `play` ran. What it throws must be bad_alloc.
template <class Play>
bool play_without(unsigned nth, Play&& play) {
  refusals = 0;
  countdown = nth;
  try {
    play();
  } catch (const std::bad_alloc&) {
  } catch (const std::exception& error) {
    countdown = 0;
    ADD_FAILURE() << error.what();
  }
  countdown = 0;
  return refusals > 0;
}

Task<> serve(SocketStream& stream, const tls::ServerContext& tls, bool& complete) {
  if (!co_await tls::accept_early(stream, tls)) co_return;
  Buffer buffer;
  if (!co_await tls::read_early(stream, buffer)) {
    stream.close();
    co_return;
  }
  while (buffer.size() < 50'000) {
    const auto got = co_await stream.read(buffer);
    if (!got || *got == 0) {
      stream.close();
      co_return;
    }
  }
  if (!co_await stream.write(buffer)) stream.close();
  if (stream.is_open()) complete = (co_await stream.shutdown_write()).has_value();
  stream.close();
}

Task<> use(SocketStream& stream, const tls::ClientContext& tls, const std::string& text,
           bool& complete) {
  const tls::Replayable start(text.substr(0, 1000));
  if (!co_await tls::connect(stream, tls, "localhost", start)) co_return;
  const bool is_sent = stream.tls()->early_data() == tls::EarlyData::accepted;
  const std::string rest = text.substr(is_sent ? 1000 : 0);
  const auto written = co_await stream.write(rest);
  Buffer buffer;
  while (written) {
    const auto got = co_await stream.read(buffer);
    if (!got || *got == 0) {
      complete = got && buffer == text;
      break;
    }
  }
  stream.close();
}

/// Returns whether all bytes have arrived in both directions.
bool exchange(EventLoop& loop, const Contexts& contexts, const std::string& text) {
  test::StreamEnds ends = test::open_stream_ends(loop);
  bool sent = false;
  bool received = false;
  std::exception_ptr thrown;
  TaskScope scope(loop);
  scope.set_exception_handler([&](std::exception_ptr subject) {
    thrown = std::move(subject);
    ends.near.close();
    ends.far.close();
  });
  scope.spawn(serve(ends.far, contexts.server, sent));
  scope.spawn(use(ends.near, contexts.client, text, received));
  const TimePoint limit = Clock::now() + 1min;
  while (!scope.empty() && Clock::now() < limit) loop.run_once();
  EXPECT_TRUE(scope.empty()) << "hangs";
  if (thrown) std::rethrow_exception(thrown);
  return sent && received;
}

TEST(Memory, may_run_out_in_handshakes_and_transfers) {
  ASSERT_TRUE(replaced);
  EventLoop loop;
  tls::ServerOptions with_early_data;
  with_early_data.early_data_bytes_max = 1000;
  const Contexts contexts(with_early_data, {});
  const std::string text(50'000, 't');
  ASSERT_TRUE(exchange(loop, contexts, text));
  ASSERT_TRUE(exchange(loop, contexts, text));
  ASSERT_EQ(contexts.server.stats().early_data_accepted, 1U);
  const unsigned step = test::sanitized ? 7 : 1;
  unsigned nth = 1;
  for (;; nth += step) {
    SCOPED_TRACE(nth);
    // Full handshakes too: resumed ones allocate less, and have early data.
    if (nth % 2 == 0) {
      EXPECT_TRUE(contexts.client.reload());
    }
    bool complete = false;
    if (!play_without(nth, [&] { complete = exchange(loop, contexts, text); })) {
      EXPECT_TRUE(complete);
      break;
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(nth, 200U);
  EXPECT_TRUE(exchange(loop, contexts, text));
}

/// A handshake that fails, because the server does not have the expected name. Returns whether an
/// allocation was refused.
bool fail_without(EventLoop& loop, const Contexts& contexts, const char* host, unsigned nth) {
  test::StreamEnds ends = test::open_stream_ends(loop);
  const std::uint64_t failed_before = contexts.client.stats().failed;
  bool has_thrown = false;
  bool has_failed = false;
  TaskScope scope(loop);
  scope.spawn([](SocketStream& stream, const tls::ServerContext& tls) -> Task<> {
    static_cast<void>(co_await tls::accept(stream, tls));
  }(ends.far, contexts.server));
  const auto connect = [&]() -> Task<> {
    try {
      has_failed = !co_await tls::connect(ends.near, contexts.client, host);
    } catch (const std::bad_alloc&) {
      has_thrown = true;
      ends.far.close();
    }
  };
  Task<> connecting = connect();
  const bool was_refused = play_without(nth, [&] {
    scope.spawn(std::move(connecting));
    while (!scope.empty()) loop.run_once();
  });
  // If there is no memory for the tasks, the stream is unchanged and no failure is counted.
  EXPECT_NE(has_thrown, has_failed);
  EXPECT_EQ(ends.near.is_open(), has_thrown);
  EXPECT_LE(contexts.client.stats().failed - failed_before, has_failed ? 1U : 0U);
  return was_refused;
}

TEST(Memory, may_run_out_while_a_wrong_host_is_refused) {
  EventLoop loop;
  tls::ServerOptions options;
  options.identities = {Contexts::authority().issue({.names = {"DNS:*.right.test"}}).identity()};
  const Contexts contexts(std::move(options), {});
  const unsigned step = test::sanitized ? 7 : 1;
  for (const char* const host : {"wrong.test", "wrong_name.test", "192.0.2.1"}) {
    SCOPED_TRACE(host);
    for (unsigned nth = 1; fail_without(loop, contexts, host, nth) && !HasFailure(); nth += step) {
    }
    EXPECT_NE(contexts.last_failure->find(host), std::string::npos);
  }
}

/// The name is verified with or without OpenSSL's own copy of it, but never left out.
TEST(Memory, may_run_out_while_a_name_with_an_underscore_is_verified) {
  EventLoop loop;
  tls::ServerOptions options;
  options.identities = {Contexts::authority().issue({.names = {"DNS:*.right.test"}}).identity()};
  const Contexts contexts(std::move(options), {});
  const unsigned step = test::sanitized ? 7 : 1;
  bool has_succeeded = false;
  for (unsigned nth = 1;; nth += step) {
    SCOPED_TRACE(nth);
    EXPECT_TRUE(contexts.client.reload());
    test::StreamEnds ends = test::open_stream_ends(loop);
    TaskScope scope(loop);
    scope.set_exception_handler([&](std::exception_ptr) { ends.far.close(); });
    scope.spawn([](SocketStream& stream, const tls::ServerContext& tls) -> Task<> {
      static_cast<void>(co_await tls::accept(stream, tls));
    }(ends.far, contexts.server));
    const auto connect = [&]() -> Task<> {
      has_succeeded =
          (co_await tls::connect(ends.near, contexts.client, "x_y.right.test")).has_value();
      ends.near.close();
    };
    has_succeeded = false;
    Task<> connecting = connect();
    const bool was_refused = play_without(nth, [&] {
      scope.spawn(std::move(connecting));
      while (!scope.empty()) loop.run_once();
    });
    if (!was_refused || HasFailure()) break;
  }
  EXPECT_TRUE(has_succeeded);
}

TEST(Memory, may_run_out_while_contexts_are_loaded) {
  EventLoop loop;
  const Contexts contexts;
  tls::ServerOptions options;
  options.identities = {Contexts::localhost().identity()};
  options.authorities = Contexts::authority().pem();
  options.client_certificate = tls::PeerCertificate::optional;
  options.alpn = {"h2", "http/1.1"};
  options.early_data_bytes_max = 1000;
  const unsigned step = test::sanitized ? 23 : 1;
  for (unsigned nth = 1;; nth += step) {
    SCOPED_TRACE(nth);
    Result<void, tls::Failure> loaded;
    if (!play_without(nth, [&] { loaded = contexts.server.reload(options); })) {
      EXPECT_TRUE(loaded);
      break;
    }
    if (HasFailure()) break;
    if (nth % 50 == 1) {
      EXPECT_TRUE(exchange(loop, contexts, std::string(50'000, 't')));
    }
  }
  EXPECT_TRUE(exchange(loop, contexts, std::string(50'000, 't')));
}

TEST(Memory, may_run_out_for_the_strike_register_of_a_forked_child) {
  tls::detail::StrikeRegister strikes;
  const std::array<unsigned char, 32> random{1, 2, 3};
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // The object, and the slots of two periods.
    for (unsigned nth = 1; nth <= 3; ++nth) {
      bool accepted = false;
      if (!play_without(nth, [&] { accepted = strikes.accept(random); }) || accepted) ::_exit(1);
    }
    ::_exit(strikes.accept(random) && !strikes.accept(random) ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(strikes.accept(random));
}

Task<> transfer(SocketStream& from, SocketStream& to) {
  EXPECT_TRUE(co_await from.write("x"));
  Buffer buffer;
  EXPECT_TRUE(co_await to.read(buffer));
}

/// Busy connections of a server keep the memory.
TEST(MemoryForRecords, is_freed_after_each_transfer_unless_it_is_kept) {
  EventLoop loop;
  const Contexts contexts;
  test::StreamEnds ends = test::open_stream_ends(loop);
  TaskScope scope(loop);
  const auto run = [&](Task<> task) {
    scope.spawn(std::move(task));
    while (!scope.empty()) loop.run_once();
  };
  scope.spawn([](SocketStream& stream, const tls::ServerContext& tls) -> Task<> {
    EXPECT_TRUE(co_await tls::accept(stream, tls));
  }(ends.far, contexts.server));
  run([](SocketStream& stream, const tls::ClientContext& tls) -> Task<> {
    EXPECT_TRUE(co_await tls::connect(stream, tls, "localhost"));
  }(ends.near, contexts.client));
  const auto keep = [](SocketStream& stream, bool is_kept) {
    detail::io::KeptMemory* const memory =
        detail::io::KeptMemory::of(detail::net::StreamFilter::of(stream));
    ASSERT_NE(memory, nullptr);
    memory->keep_memory(is_kept);
  };
  const auto allocations_of_transfer = [&] {
    const std::size_t before = large_allocations;
    run(transfer(ends.near, ends.far));
    run(transfer(ends.far, ends.near));
    return large_allocations - before;
  };
  // Until what follows a handshake, such as tickets, has been read.
  for (int i = 0; i < 3; ++i) static_cast<void>(allocations_of_transfer());
  // How often OpenSSL allocates depends on its version.
  const std::size_t without = live_bytes;
  const std::size_t allocations = allocations_of_transfer();
  EXPECT_EQ(live_bytes, without);
  keep(ends.near, true);
  EXPECT_EQ(allocations_of_transfer(), allocations);
  EXPECT_GT(live_bytes, without + 2 * large_bytes);
  EXPECT_LT(allocations_of_transfer(), allocations);
  keep(ends.near, false);
  EXPECT_EQ(live_bytes, without);
  EXPECT_EQ(allocations_of_transfer(), allocations);
}

/// A client on OpenSSL alone.
class PlainClient {
 public:
  explicit PlainClient(const Endpoint& server)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        ssl_(::SSL_new(context()), &::SSL_free) {
    EXPECT_EQ(::connect(socket_.get(), server.data(), server.size()), 0);
    ::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
    ::SSL_set_fd(ssl_.get(), socket_.get());
    ::SSL_set_connect_state(ssl_.get());
  }
  /// Completes the handshake and exchanges a byte. `serve()` lets the server proceed.
  template <class Serve>
  void exchange(Serve&& serve) {
    while (::SSL_do_handshake(ssl_.get()) != 1) serve();
    EXPECT_EQ(::SSL_write(ssl_.get(), "x", 1), 1);
    char byte;
    while (::SSL_read(ssl_.get(), &byte, 1) != 1) serve();
  }

 private:
  static SSL_CTX* context() {
    static SSL_CTX* const of_all = ::SSL_CTX_new(::TLS_client_method());
    ::SSL_CTX_set_mode(of_all, SSL_MODE_RELEASE_BUFFERS);
    return of_all;
  }
  UniqueFd socket_;
  std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_;
};

/// The bytes that a connection holds at both ends when it was used once.
template <class Open>
std::size_t bytes_of_each(Open&& open) {
  constexpr int count = 64;
  const auto open_all = [&] {
    for (int i = 0; i < count; ++i) open();
  };
  open_all();
  const std::size_t before = live_bytes;
  open_all();
  return (live_bytes - before) / count;
}

Task<> serve_echo(TcpStream stream, const tls::ServerContext& context) {
  const auto accepted = co_await tls::accept(stream, context);
  if (!accepted) co_return;
  co_await test::echo(std::move(stream));
}

/// A server on OpenSSL alone, with the same buffers.
std::size_t bytes_of_plain_connections() {
  struct Served {
    UniqueFd socket;
    SSL* ssl;
  };
  const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context(
      ::SSL_CTX_new(::TLS_server_method()), &::SSL_CTX_free);
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  ::SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  const auto bio_of = [](const std::string& pem) {
    return std::unique_ptr<BIO, decltype(&::BIO_free)>(
        ::BIO_new_mem_buf(pem.data(), int(pem.size())), &::BIO_free);
  };
  X509* const certificate = ::PEM_read_bio_X509(bio_of(Contexts::localhost().certificate).get(),
                                                nullptr, nullptr, nullptr);
  EVP_PKEY* const key =
      ::PEM_read_bio_PrivateKey(bio_of(Contexts::localhost().key).get(), nullptr, nullptr, nullptr);
  EXPECT_EQ(::SSL_CTX_use_certificate(context.get(), certificate), 1);
  EXPECT_EQ(::SSL_CTX_use_PrivateKey(context.get(), key), 1);
  ::X509_free(certificate);
  ::EVP_PKEY_free(key);
  EventLoop loop;  // Only for the port.
  const TcpServer server = or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0)));
  std::vector<PlainClient> clients;
  std::vector<Served> all;
  clients.reserve(1000);
  all.reserve(1000);
  const std::size_t bytes = bytes_of_each([&] {
    clients.emplace_back(server.endpoint());
    all.push_back({UniqueFd(::accept4(server.fd(), nullptr, nullptr, SOCK_NONBLOCK)),
                   ::SSL_new(context.get())});
    SSL* const ssl = all.back().ssl;
    ::SSL_set_fd(ssl, all.back().socket.get());
    ::SSL_set_accept_state(ssl);
    clients.back().exchange([ssl] {
      if (::SSL_do_handshake(ssl) != 1) return;
      char byte;
      if (::SSL_read(ssl, &byte, 1) == 1) ::SSL_write(ssl, &byte, 1);
    });
  });
  for (const Served& connection : all) ::SSL_free(connection.ssl);
  return bytes;
}

TEST(IdleConnection, holds_little_more_than_the_memory_of_openssl) {
  EventLoop loop;
  const Contexts contexts;
  TcpServer server = or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0)));
  server.serve([&](TcpStream stream) { return serve_echo(std::move(stream), contexts.server); });
  std::vector<PlainClient> clients;
  clients.reserve(1000);
  const std::size_t bytes = bytes_of_each([&] {
    clients.emplace_back(server.endpoint());
    clients.back().exchange([&] { loop.run_once(); });
  });
  clients.clear();
  const std::size_t floor = bytes_of_plain_connections();
  RecordProperty("bytes", int(bytes));
  RecordProperty("floor", int(floor));
  // Sanitizers enlarge the frames of coroutines.
  EXPECT_LE(bytes, floor + (test::sanitized ? 4096 : 1024));
}

}  // namespace
}  // namespace tambour::memory_test
