// Bufferevents that encrypt with OpenSSL, over sockets and over other bufferevents. Each number
// names an issue of libevent's tracker.

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "openssl_context.h"

namespace {

int kernel_tls_calls = 0;

}  // namespace

// OpenSSL calls it to start TLS in the kernel.
extern "C" int setsockopt(int fd, int level, int option, const void* value,
                          socklen_t size) noexcept {
  if (level == SOL_TLS) ++kernel_tls_calls;
  return static_cast<int>(::syscall(SYS_setsockopt, fd, level, option, value, size));
}

namespace {

constexpr timeval test_limit{60, 0};

struct Free {
  void operator()(event_base* base) const { event_base_free(base); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

struct End {
  bufferevent* bev = nullptr;
  std::string received;
  int events = 0;
  std::size_t most_per_callback = SIZE_MAX;
  std::size_t expected = SIZE_MAX;  ///< The loop ends once so many bytes were received.
  int free_on = 0;                  ///< Free the bufferevent in the callback of these events.
  bool free_on_read = false;
  int depth = 0;
  int depth_max = 0;
  event_base* base = nullptr;
};

void read_some(bufferevent* bev, void* argument) {
  auto& end = *static_cast<End*>(argument);
  if (end.free_on_read) {
    end.bev = nullptr;
    return bufferevent_free(bev);
  }
  evbuffer* const input = bufferevent_get_input(bev);
  const std::size_t size = std::min(evbuffer_get_length(input), end.most_per_callback);
  const std::size_t before = end.received.size();
  end.received.resize(before + size);
  evbuffer_remove(input, end.received.data() + before, size);
  if (end.received.size() >= end.expected) event_base_loopbreak(end.base);
  if (evbuffer_get_length(input) != 0) bufferevent_trigger(bev, EV_READ, BEV_TRIG_DEFER_CALLBACKS);
}

void take_event(bufferevent* bev, short kind, void* argument) {
  auto& end = *static_cast<End*>(argument);
  end.depth_max = std::max(end.depth_max, ++end.depth);
  end.events |= kind;
  if ((kind & end.free_on) != 0 && end.bev != nullptr) {
    end.bev = nullptr;
    bufferevent_free(bev);
  }
  if ((kind & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0) event_base_loopbreak(end.base);
  --end.depth;
}

/// Two ends of a connection, over a socket pair.
class Connection : public testing::TestWithParam<bool> {
 public:
  Connection() { evutil_socketpair(AF_UNIX, SOCK_STREAM, 0, fds); }
  ~Connection() override {
    for (End* const end : {&client, &server})
      if (end->bev != nullptr) bufferevent_free(end->bev);
    run();
  }

 protected:
  void make(End& end, int fd, bufferevent_ssl_state state, int options) {
    SSL* const ssl = SSL_new(context.get());
    options |= BEV_OPT_CLOSE_ON_FREE;
    if (fd >= 0) evutil_make_socket_nonblocking(fd);
    if (GetParam()) {
      bufferevent* const below = bufferevent_socket_new(base.get(), fd, options);
      end.bev = bufferevent_openssl_filter_new(base.get(), below, ssl, state, options);
    } else {
      end.bev = bufferevent_openssl_socket_new(base.get(), fd, ssl, state, options);
    }
    ASSERT_NE(end.bev, nullptr);
    end.base = base.get();
    bufferevent_setcb(end.bev, &read_some, nullptr, &take_event, &end);
    bufferevent_enable(end.bev, EV_READ | EV_WRITE);
  }
  void open(int options = 0) {
    make(client, fds[0], BUFFEREVENT_SSL_CONNECTING, options);
    make(server, fds[1], BUFFEREVENT_SSL_ACCEPTING, options);
  }
  /// Connects two other ends.
  void open_pair(End& connecting, End& accepting) {
    int pair[2] = {};
    ASSERT_EQ(evutil_socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    make(connecting, pair[0], BUFFEREVENT_SSL_CONNECTING, 0);
    make(accepting, pair[1], BUFFEREVENT_SSL_ACCEPTING, 0);
  }
  /// Runs the loop until nothing happens.
  void run() const {
    for (int i = 0; i < 100; ++i) event_base_loop(base.get(), EVLOOP_NONBLOCK);
  }
  void wait() const {
    event_base_loopexit(base.get(), &test_limit);
    event_base_dispatch(base.get());
  }

  Owned<event_base> base{event_base_new()};
  Owned<SSL_CTX> context{tambour::test::make_openssl_context()};
  int fds[2] = {};
  End client;
  End server;
};

std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 251);
  return bytes;
}

constexpr std::size_t large = 1'000'000;

TEST_P(Connection, carries_bytes_both_ways) {
  open();
  const std::string sent = pattern(large);
  for (const End* const end : {&client, &server})
    bufferevent_write(end->bev, sent.data(), sent.size());
  server.expected = client.expected = large;
  wait();
  if (client.received.size() < large || server.received.size() < large) wait();
  EXPECT_TRUE(server.received == sent);
  EXPECT_TRUE(client.received == sent);
  EXPECT_EQ(client.events, BEV_EVENT_CONNECTED);
  EXPECT_EQ(server.events, BEV_EVENT_CONNECTED);
}

TEST_P(Connection, carries_bytes_with_deferred_callbacks) {
  open(BEV_OPT_DEFER_CALLBACKS);
  const std::string sent = pattern(large);
  bufferevent_write(client.bev, sent.data(), sent.size());
  server.expected = large;
  wait();
  EXPECT_TRUE(server.received == sent);
}

TEST_P(Connection, sends_many_small_writes_in_order) {
  open();
  const std::string sent = pattern(20'000);
  for (const char byte : sent) bufferevent_write(client.bev, &byte, 1);
  server.expected = sent.size();
  wait();
  EXPECT_TRUE(server.received == sent);
}

// 687: transfers stopped, because bytes that were written to an idle bufferevent, outside of its
// callbacks, were not sent.
TEST_P(Connection, issue_687_bytes_written_to_an_idle_connection_are_sent) {
  for (const int options : {0, int{BEV_OPT_DEFER_CALLBACKS}}) {
    End near;
    End far;
    int pair[2] = {};
    evutil_socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    make(near, pair[0], BUFFEREVENT_SSL_CONNECTING, options);
    make(far, pair[1], BUFFEREVENT_SSL_ACCEPTING, options);
    near.expected = far.expected = 0;
    std::string sent;
    for (std::size_t size = 1; size < 200'000; size = size * 2 + 1) {
      const std::string part = pattern(size);
      sent += part;
      for (auto [from, to] : {std::pair(&near, &far), std::pair(&far, &near)}) {
        to->expected = sent.size();
        bufferevent_write(from->bev, part.data(), part.size());
        wait();
        ASSERT_TRUE(to->received == sent) << to->received.size() << " of " << sent.size();
        run();
      }
    }
    for (End* const end : {&near, &far}) bufferevent_free(end->bev);
    run();
  }
}

// 690: the bufferevent no longer read once the high-water mark was reached.
TEST_P(Connection, issue_690_reading_continues_below_the_high_water_mark) {
  open(BEV_OPT_DEFER_CALLBACKS);
  bufferevent_setwatermark(server.bev, EV_READ, 0, 4096);
  server.most_per_callback = 512;
  const std::string sent = pattern(200'000);
  bufferevent_write(client.bev, sent.data(), sent.size());
  server.expected = sent.size();
  wait();
  EXPECT_TRUE(server.received == sent) << server.received.size();
}

// 854: bytes that OpenSSL had decrypted already were not reported after reading was enabled again.
TEST_P(Connection, issue_854_decrypted_bytes_are_read_after_reading_is_enabled) {
  open();
  run();
  bufferevent_set_max_single_read(server.bev, 100);
  const std::string sent = pattern(10'000);  // One record.
  bufferevent_write(client.bev, sent.data(), sent.size());
  server.expected = 1;
  wait();
  bufferevent_disable(server.bev, EV_READ);
  run();
  const std::size_t before = server.received.size();
  run();
  EXPECT_EQ(server.received.size(), before);
  bufferevent_enable(server.bev, EV_READ);
  server.expected = sent.size();
  if (server.received.size() < sent.size()) wait();
  EXPECT_TRUE(server.received == sent) << server.received.size();
}

// 952: the end of the connection made the event callback call itself without end.
TEST_P(Connection, issue_952_the_end_is_reported_without_recursion) {
  open(BEV_OPT_DEFER_CALLBACKS);
  run();
  bufferevent_free(client.bev);
  client.bev = nullptr;
  wait();
  run();
  EXPECT_NE(server.events & (BEV_EVENT_EOF | BEV_EVENT_ERROR), 0);
  bufferevent_disable(server.bev, EV_READ);
  bufferevent_enable(server.bev, EV_READ);
  run();
  EXPECT_LE(server.depth_max, 1);
}

// 428: bytes written in the callback of the connection were not sent.
void greet(bufferevent* bev, short kind, void* argument) {
  static_cast<End*>(argument)->events |= kind;
  if ((kind & BEV_EVENT_CONNECTED) != 0) bufferevent_write(bev, "hello", 5);
}
TEST_P(Connection, issue_428_bytes_written_in_the_callback_of_the_connection_are_sent) {
  open();
  bufferevent_setcb(client.bev, &read_some, nullptr, &greet, &client);
  bufferevent_disable(client.bev, EV_READ);
  server.expected = 5;
  wait();
  EXPECT_EQ(server.received, "hello");
}

TEST_P(Connection, an_end_without_close_notify_is_an_error_unless_allowed) {
  for (const bool allowed : {false, true}) {
    End closing;
    End reading;
    ASSERT_NO_FATAL_FAILURE(open_pair(closing, reading));
    bufferevent_openssl_set_allow_dirty_shutdown(reading.bev, allowed ? 1 : 0);
    EXPECT_EQ(bufferevent_openssl_get_allow_dirty_shutdown(reading.bev), allowed ? 1 : 0);
    run();
    EXPECT_EQ(reading.events, BEV_EVENT_CONNECTED);
    bufferevent_free(closing.bev);
    wait();
    EXPECT_NE(reading.events & (allowed ? BEV_EVENT_EOF : BEV_EVENT_ERROR), 0);
    EXPECT_EQ(reading.events & (allowed ? BEV_EVENT_ERROR : BEV_EVENT_EOF), 0);
    bufferevent_free(reading.bev);
    run();
  }
}

TEST_P(Connection, close_notify_is_an_end) {
  open();
  run();
  SSL_shutdown(bufferevent_openssl_get_ssl(client.bev));
  wait();
  EXPECT_NE(server.events & BEV_EVENT_EOF, 0);
  EXPECT_EQ(server.events & BEV_EVENT_ERROR, 0);
}

TEST_P(Connection, may_be_freed_in_its_callbacks) {
  for (const int events : {BEV_EVENT_CONNECTED, BEV_EVENT_EOF | BEV_EVENT_ERROR, 0}) {
    End one;
    End other;
    ASSERT_NO_FATAL_FAILURE(open_pair(one, other));
    one.free_on = events;
    one.free_on_read = events == 0;
    bufferevent_write(other.bev, "bytes", 5);
    run();
    if (events == (BEV_EVENT_EOF | BEV_EVENT_ERROR)) {
      bufferevent_free(other.bev);
      other.bev = nullptr;
      run();
    }
    EXPECT_EQ(one.bev, nullptr) << events;
    for (const End* const end : {&one, &other})
      if (end->bev != nullptr) bufferevent_free(end->bev);
    run();
  }
}

/// Bytes that are decrypted already wait for the limit, so resuming invokes the callback.
TEST_P(Connection, may_be_freed_when_its_rate_limit_lets_it_read) {
  constexpr std::size_t burst = 3000;
  const timeval tick{0, 100'000};
  const timeval write_limit{1, 0};
  enum class Resume { by_tick, without_limit, without_group, by_group, in_other_group };
  for (const Resume cause : {Resume::by_tick, Resume::without_limit, Resume::without_group,
                             Resume::by_group, Resume::in_other_group}) {
    End one;
    End other;
    ASSERT_NO_FATAL_FAILURE(open_pair(other, one));
    run();
    ev_token_bucket_cfg* const limit = ev_token_bucket_cfg_new(burst, burst, burst, burst, &tick);
    const bool is_group = cause != Resume::by_tick && cause != Resume::without_limit;
    bufferevent_rate_limit_group* const group = bufferevent_rate_limit_group_new(base.get(), limit);
    bufferevent_rate_limit_group* const next = bufferevent_rate_limit_group_new(base.get(), limit);
    if (is_group) {
      bufferevent_add_to_rate_limit_group(one.bev, group);
    } else {
      bufferevent_set_rate_limit(one.bev, limit);
    }
    bufferevent_set_timeouts(one.bev, nullptr, &write_limit);
    const std::string bytes(5000, 'x');
    bufferevent_write(one.bev, bytes.data(), burst);
    bufferevent_write(other.bev, bytes.data(), bytes.size());
    one.expected = 1;
    wait();
    EXPECT_LT(one.received.size(), bytes.size());
    one.free_on_read = true;
    if (cause == Resume::without_limit) bufferevent_set_rate_limit(one.bev, nullptr);
    if (cause == Resume::without_group) bufferevent_remove_from_rate_limit_group(one.bev);
    if (cause == Resume::in_other_group) bufferevent_add_to_rate_limit_group(one.bev, next);
    for (int i = 0; i < 100 && one.bev != nullptr; ++i) {
      event_base_loopexit(base.get(), &tick);
      event_base_dispatch(base.get());
    }
    EXPECT_EQ(one.bev, nullptr) << static_cast<int>(cause);
    for (const End* const end : {&one, &other})
      if (end->bev != nullptr) bufferevent_free(end->bev);
    run();
    bufferevent_rate_limit_group_free(group);
    bufferevent_rate_limit_group_free(next);
    ev_token_bucket_cfg_free(limit);
  }
}

TEST_P(Connection, bytes_that_are_not_tls_are_an_error_of_openssl) {
  make(server, fds[1], BUFFEREVENT_SSL_ACCEPTING, 0);
  ASSERT_EQ(::write(fds[0], "GET / HTTP/1.0\r\n\r\n", 18), 18);
  wait();
  EXPECT_NE(server.events & BEV_EVENT_ERROR, 0);
  EXPECT_NE(bufferevent_get_openssl_error(server.bev), 0U);
  ::close(fds[0]);
}

TEST_P(Connection, renegotiation_with_tls_1_3_fails_and_the_connection_remains) {
  open();
  run();
  EXPECT_EQ(bufferevent_ssl_renegotiate(client.bev), -1);
  bufferevent_write(client.bev, "after", 5);
  server.expected = 5;
  wait();
  EXPECT_EQ(server.received, "after");
}

TEST_P(Connection, renegotiation_with_tls_1_2_keeps_the_bytes) {
  SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_ALLOW_CLIENT_RENEGOTIATION);
  open();
  run();
  EXPECT_EQ(bufferevent_ssl_renegotiate(client.bev), 0);
  bufferevent_write(client.bev, "after", 5);
  server.expected = 5;
  wait();
  EXPECT_EQ(server.received, "after") << client.events << ' ' << server.events;
}

TEST_P(Connection, kernel_tls_is_not_started) {
  SSL_CTX_set_options(context.get(), SSL_OP_ENABLE_KTLS);
  kernel_tls_calls = 0;
  open();
  bufferevent_write(client.bev, "hello", 5);
  server.expected = 5;
  wait();
  EXPECT_EQ(server.received, "hello");
  EXPECT_EQ(kernel_tls_calls, 0);
}

TEST_P(Connection, writing_to_a_peer_that_is_gone_raises_no_signal) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR);  // The signal would end the test.
  open();
  run();
  for (const End* const end : {&client, &server}) bufferevent_disable(end->bev, EV_READ);
  ::shutdown(fds[1], SHUT_RDWR);
  const std::string sent = pattern(large);
  bufferevent_write(client.bev, sent.data(), sent.size());
  wait();
  EXPECT_NE(client.events & BEV_EVENT_ERROR, 0);
}

TEST_P(Connection, connects_by_address_and_reports_a_refused_connection) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int bound = ::socket(AF_INET, SOCK_STREAM, 0);  // Bound, but it does not listen.
  ASSERT_EQ(::bind(bound, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(bound, reinterpret_cast<sockaddr*>(&address), &size), 0);
  make(client, -1, BUFFEREVENT_SSL_CONNECTING, 0);
  ASSERT_EQ(bufferevent_socket_connect(client.bev, reinterpret_cast<sockaddr*>(&address),
                                       static_cast<int>(size)),
            0);
  wait();
  EXPECT_NE(client.events & BEV_EVENT_ERROR, 0);
  EXPECT_EQ(client.events & BEV_EVENT_CONNECTED, 0);
  ::close(bound);
  for (const int fd : fds) ::close(fd);
}

INSTANTIATE_TEST_SUITE_P(, Connection, testing::Bool(),
                         [](const auto& test) { return test.param ? "filter" : "socket"; });

}  // namespace
