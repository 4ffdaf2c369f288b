// Makes each allocation of an exchange over TLS fail in turn, those of OpenSSL included: no crash,
// no leak, and no wrong bytes.

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "failing_allocations.h"
#include "openssl_context.h"

using failing_allocations::allocate;
using failing_allocations::countdown;
using failing_allocations::fails;
using failing_allocations::live;
using failing_allocations::reallocate;
using failing_allocations::release;

namespace {

void* openssl_allocate(std::size_t size, const char* /*file*/, int /*line*/) {
  return fails() ? nullptr : std::malloc(size);
}
void* openssl_reallocate(void* memory, std::size_t size, const char* /*file*/, int /*line*/) {
  return fails() ? nullptr : std::realloc(memory, size);
}
void openssl_release(void* memory, const char* /*file*/, int /*line*/) { std::free(memory); }

void echo(bufferevent* bev, void* /*argument*/) {
  // If this fails for lack of memory, the bytes remain and the next callback tries again.
  bufferevent_write_buffer(bev, bufferevent_get_input(bev));
}

struct Client {
  std::string received;
  bool failed = false;
};
void take(bufferevent* bev, void* argument) {
  auto& client = *static_cast<Client*>(argument);
  char bytes[256];
  for (std::size_t n = 0; (n = bufferevent_read(bev, bytes, sizeof bytes)) > 0;)
    client.received.append(bytes, n);
}
void take_event(bufferevent* /*bev*/, short kind, void* argument) {
  if ((kind & (BEV_EVENT_ERROR | BEV_EVENT_EOF)) != 0)
    static_cast<Client*>(argument)->failed = true;
}

/// Takes the descriptor, also when it fails.
bufferevent* make(event_base* base, SSL_CTX* context, int fd, bufferevent_ssl_state state,
                  bool filter) {
  constexpr int options = BEV_OPT_CLOSE_ON_FREE;
  SSL* const ssl = SSL_new(context);
  bufferevent* created = nullptr;
  if (ssl == nullptr) {
    ::close(fd);
  } else if (!filter) {
    created = bufferevent_openssl_socket_new(base, fd, ssl, state, options);
    if (created == nullptr) ::close(fd);
  } else {
    bufferevent* const below = bufferevent_socket_new(base, fd, options);
    if (below == nullptr) {
      SSL_free(ssl);
      ::close(fd);
      return nullptr;
    }
    created = bufferevent_openssl_filter_new(base, below, ssl, state, options);
    if (created == nullptr) bufferevent_free(below);
  }
  return created;
}

void run(event_base* base) { event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK); }

/// Returns whether the echo arrived. Anything may fail, but no bytes may be wrong.
bool exchange(event_base* base, SSL_CTX* context, bool filter) {
  const std::string sent(3000, 'm');
  int fds[2] = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0) return false;
  Client client;
  Client server;
  bufferevent* const one = make(base, context, fds[0], BUFFEREVENT_SSL_CONNECTING, filter);
  bufferevent* const other = make(base, context, fds[1], BUFFEREVENT_SSL_ACCEPTING, filter);
  if (one != nullptr && other != nullptr) {
    bufferevent_setcb(one, &take, nullptr, &take_event, &client);
    bufferevent_setcb(other, &echo, nullptr, &take_event, &server);
    bufferevent_enable(one, EV_READ | EV_WRITE);
    bufferevent_enable(other, EV_READ | EV_WRITE);
    bufferevent_write(one, sent.data(), sent.size());
    for (int i = 0; i < 40 && client.received.size() < sent.size(); ++i) {
      if (client.failed || server.failed) break;
      run(base);
    }
  }
  if (one != nullptr) bufferevent_free(one);
  if (other != nullptr) bufferevent_free(other);
  for (int i = 0; i < 3; ++i) run(base);
  EXPECT_EQ(client.received, sent.substr(0, client.received.size()));
  return client.received.size() == sent.size();
}

class Faults : public testing::TestWithParam<bool> {};

TEST_P(Faults, each_allocation_fails_in_turn) {
  event_base* const base = event_base_new();
  SSL_CTX* const context = tambour::test::make_openssl_context();
  ASSERT_TRUE(exchange(base, context, GetParam()));
  const int live_before = live;
  int n = 0;
  for (;; ++n) {
    countdown = n;
    const bool succeeded = exchange(base, context, GetParam());
    const bool failed_one = countdown < 0;
    countdown = -1;
    ERR_clear_error();
    for (int i = 0; i < 3; ++i) run(base);
    ASSERT_EQ(live, live_before) << "allocation " << n;
    if (!failed_one) {
      EXPECT_TRUE(succeeded);
      break;
    }
  }
  EXPECT_GT(n, 100);
  SSL_CTX_free(context);
  event_base_free(base);
}

INSTANTIATE_TEST_SUITE_P(, Faults, testing::Bool(),
                         [](const auto& test) { return test.param ? "filter" : "socket"; });

void discard(int /*severity*/, const char* /*text*/) {}

}  // namespace

int main(int argc, char** argv) {
  if (CRYPTO_set_mem_functions(&openssl_allocate, &openssl_reallocate, &openssl_release) == 0)
    return 1;
  event_set_mem_functions(&allocate, &reallocate, &release);
  event_set_log_callback(&discard);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
