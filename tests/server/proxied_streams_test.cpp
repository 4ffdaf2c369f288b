// Streams that begin with a PROXY header, over every transport.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/codec.h>
#include <tambour/net/proxy_protocol.h>
#include <tambour/net/tcp.h>
#include <tambour/task/combinators.h>

#include "support/peer.h"
#include "support/streams.h"
#include "transports/every_transport.h"

namespace tambour::proxied_streams_test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view line = "PROXY TCP4 192.0.2.1 192.0.2.2 1234 80\r\n";

class ProxiedStreams : public test::OnEveryBackend {
 protected:
  TcpServer listen(ListenOptions options = {}) {
    options.proxy_protocol = ProxyProtocol::required;
    return test::listen(loop(), Endpoint::loopback_v4(0), std::move(options)).value();
  }
  static std::string version_2() {
    Buffer header;
    EXPECT_TRUE(append_proxy_header(
        header, {.source = Endpoint::parse("192.0.2.1:1234").value(),
                 .destination = Endpoint::parse("192.0.2.2:80").value(),
                 .fields = {{.type = ProxyField::authority, .value = std::string(2000, 'h')}},
                 .has_checksum = true}));
    return header.to_string();
  }
};

TAMBOUR_ON_EVERY_TRANSPORT(ProxiedStreams);

TEST_P(ProxiedStreams, are_read_only_to_the_end_of_the_header) {
  for (const std::string& header : {std::string(line), version_2()}) {
    for (const bool with_buffer : {false, true}) {
      auto ends = test::open_stream_ends(loop());
      const std::string text = header + "behind";
      ASSERT_EQ(test::send_now(ends.far, text), text.size());
      run([](SocketStream& stream, bool buffered) -> Task<> {
        Buffer buffer;
        Result<ProxyHeader> read;
        if (buffered) {
          read = co_await read_proxy_header(stream, buffer);
        } else {
          read = co_await read_proxy_header(stream);
        }
        EXPECT_TRUE(read);
        if (read) {
          EXPECT_EQ(read->source, Endpoint::parse("192.0.2.1:1234").value());
        }
        EXPECT_EQ(buffer.size(), buffered ? 6U : 0U);
        auto behind = co_await read_exactly(stream, buffer, 6);
        EXPECT_TRUE(behind && *behind == "behind");
      }(ends.near, with_buffer));
    }
  }
}

TEST_P(ProxiedStreams, may_begin_byte_by_byte) {
  for (const std::string& header : {std::string(line), version_2().substr(0, 100)}) {
    auto ends = test::open_stream_ends(loop());
    bool is_read = false;
    TaskScope scope(loop());
    scope.spawn([](SocketStream& stream, bool& done) -> Task<> {
      auto read = co_await read_proxy_header(stream);
      EXPECT_TRUE(read);
      done = true;
      std::array<std::byte, 10> place;
      EXPECT_EQ(co_await stream.read(place), 1U);
    }(ends.near, is_read));
    for (std::size_t i = 0; i < header.size(); ++i) {
      EXPECT_FALSE(is_read);
      ASSERT_EQ(test::send_now(ends.far, header.substr(i, 1)), 1U);
      run_iterations(2);
      // The incomplete header does not keep the socket readable: the loop does not spin.
      if (i == 50) {
        EXPECT_TRUE(sleeps_through(20ms));
      }
    }
    if (header == line) {
      EXPECT_TRUE(run_until([&] { return is_read; }));
      ASSERT_EQ(test::send_now(ends.far, "x"), 1U);
      EXPECT_TRUE(run_until([&] { return scope.empty(); }));
    }
  }
}

TEST_P(ProxiedStreams, byte_by_byte_hold_little_more_than_their_bytes) {
  const auto heap_bytes = [] {
    const auto info = ::mallinfo2();  // 0 if a sanitizer has replaced malloc(3).
    return info.uordblks + info.hblkhd;
  };
  Buffer header;
  ASSERT_TRUE(append_proxy_header(
      header, {.fields = {{.type = ProxyField::authority, .value = std::string(5000, 'h')}}}));
  const std::string text = header.to_string();
  auto ends = test::open_stream_ends(loop());
  bool is_read = false;
  TaskScope scope(loop());
  scope.spawn([](SocketStream& stream, bool& done) -> Task<> {
    EXPECT_TRUE(co_await read_proxy_header(stream));
    done = true;
  }(ends.near, is_read));
  std::size_t limit = 0;
  const std::size_t before = heap_bytes();
  for (const char byte : text) {
    ASSERT_EQ(test::send_now(ends.far, {&byte, 1}), 1U);
    run_iterations(2);
    limit = std::max(limit, heap_bytes());
  }
  EXPECT_TRUE(run_until([&] { return is_read; }));
  EXPECT_LT(limit - std::min(limit, before), 200'000U);
}

TEST_P(ProxiedStreams, with_a_longer_header_than_the_limit_are_refused_at_once) {
  std::vector<Error> refused;
  ListenOptions options;
  options.on_rejected = [&](Stream&, Error error) { refused.push_back(error); };
  options.proxy_header_bytes_max = 2000;
  options.proxy_header_timeout = 1h;
  TcpServer server = listen(options);
  server.serve([](TcpStream) -> Task<> { co_return; });
  run([](Endpoint to, std::string start) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream && co_await stream->write(start));
    std::array<std::byte, 10> place;
    static_cast<void>(co_await stream->read(place));
  }(server.endpoint(), version_2().substr(0, 16)));
  EXPECT_EQ(refused, std::vector<Error>{system_error(EMSGSIZE)});
}

TEST_P(ProxiedStreams, that_end_too_early_report_it) {
  for (const std::string& header : {std::string(line), version_2().substr(0, 40)}) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, header.size() - 1}) {
      for (const bool with_buffer : {false, true}) {
        auto ends = test::open_stream_ends(loop());
        if (size > 0) {
          ASSERT_EQ(test::send_now(ends.far, std::string_view(header).substr(0, size)), size);
        }
        test::end_now(ends.far);
        run([](SocketStream& stream, bool buffered, StreamError expected) -> Task<> {
          Buffer buffer;
          Result<ProxyHeader> read;
          if (buffered) {
            read = co_await read_proxy_header(stream, buffer);
          } else {
            read = co_await read_proxy_header(stream);
          }
          EXPECT_EQ(read.error(), expected);
        }(ends.near, with_buffer, size == 0 ? StreamError::eof : StreamError::truncated));
      }
    }
  }
}

TEST_P(ProxiedStreams, have_the_addresses_that_the_proxy_reports) {
  std::vector<std::string> sources;
  TcpServer server = listen();
  server.serve([&](TcpStream stream) -> Task<> {
    sources.push_back(stream.peer_endpoint()->to_string());
    EXPECT_NE(stream.proxy_header(), nullptr);
    const TcpStream moved = std::move(stream);
    EXPECT_EQ(moved.peer_endpoint()->to_string(), sources.back());
    EXPECT_TRUE(moved.local_endpoint()->to_string().starts_with("127.0.0.1:"));
    co_return;
  });
  std::string own_text;
  for (const std::string& header :
       {std::string(line), version_2(), std::string("PROXY UNKNOWN\r\n")}) {
    run([](Endpoint to, const std::string& first, std::string& name) -> Task<> {
      auto stream = co_await TcpStream::connect(to);
      name = stream->local_endpoint()->to_string();
      EXPECT_TRUE(co_await stream->write(first));
      EXPECT_TRUE(co_await test::secure(*stream));
      co_await test::expect_closed(*stream);
    }(server.endpoint(), header, own_text));
  }
  EXPECT_EQ(sources, (std::vector<std::string>{"192.0.2.1:1234", "192.0.2.1:1234", own_text}));
  EXPECT_TRUE(run_until([&] { return server.connections() == 0; }));
}

TEST_P(ProxiedStreams, may_be_served_by_callbacks) {
  std::string source, got;
  TcpServer server = listen();
  server.serve({.on_connection =
                    [&](Connection& connection) {
                      source = connection.peer_endpoint()->to_string();
                      EXPECT_EQ(connection.proxy_header()->version, 1);
                    },
                .on_message = [&](Connection&, Buffer& buffer) { got = buffer.to_string(); }});
  run([](Endpoint to) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(co_await stream->write(line));
    EXPECT_TRUE(co_await test::secure(*stream));
    EXPECT_TRUE(co_await stream->write("hello"));
    co_await test::finish(*stream);
  }(server.endpoint()));
  EXPECT_EQ(source, "192.0.2.1:1234");
  EXPECT_EQ(got, "hello");
  EXPECT_TRUE(run_until([&] { return server.connections() == 0; }));
}

TEST_P(ProxiedStreams, without_a_header_do_not_block_others_and_are_closed_in_time) {
  std::vector<Error> refused;
  TcpServer server =
      listen({.proxy_header_timeout = 50ms, .on_rejected = [&](SocketStream& stream, Error error) {
                EXPECT_TRUE(stream.peer_endpoint());
                refused.push_back(error);
              }});
  int served = 0;
  server.serve([&served](TcpStream) -> Task<> {
    ++served;
    co_return;
  });
  run([](Endpoint to, const int& count) -> Task<> {
    auto silent = co_await TcpStream::connect(to);
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(co_await stream->write(line));
    EXPECT_TRUE(co_await test::secure(*stream));
    co_await test::expect_closed(*stream);
    EXPECT_EQ(count, 1);
    Buffer nothing;
    EXPECT_EQ(co_await silent->read(nothing), 0U);
  }(server.endpoint(), served));
  EXPECT_TRUE(run_until([&] { return !refused.empty(); }));
  EXPECT_EQ(refused, std::vector<Error>{system_error(ETIMEDOUT)});
  EXPECT_EQ(served, 1);
}

TEST_P(ProxiedStreams, have_no_time_limit_if_it_is_zero) {
  TcpServer server = listen({.proxy_header_timeout = 0s});
  bool served = false;
  server.serve([&served](TcpStream) -> Task<> {
    served = true;
    co_return;
  });
  run([](Endpoint to) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    co_await sleep_for(1ms);  // Longer than the limit would be.
    EXPECT_TRUE(co_await stream->write(line));
    EXPECT_TRUE(co_await test::secure(*stream));
    co_await test::expect_closed(*stream);
  }(server.endpoint()));
  EXPECT_TRUE(served);
}

TEST_P(ProxiedStreams, count_as_connections_while_their_header_is_pending) {
  TcpServer server = listen({.connections_max = 1, .proxy_header_timeout = 20ms});
  std::size_t limit = 0;
  server.serve([&](TcpStream) -> Task<> {
    limit = std::max(limit, server.connections());
    co_await sleep_for(1ms);
  });
  TaskScope clients(loop());
  for (int i = 0; i < 6; ++i) {
    clients.spawn([](Endpoint to, bool speaks) -> Task<> {
      auto stream = co_await TcpStream::connect(to);
      if (!speaks) {
        Buffer nothing;
        EXPECT_EQ(co_await stream->read(nothing), 0U);
        co_return;
      }
      EXPECT_TRUE(co_await stream->write(line));
      EXPECT_TRUE(co_await test::secure(*stream));
      co_await test::expect_closed(*stream);
    }(server.endpoint(), i % 3 != 0));
  }
  EXPECT_TRUE(run_until([&] { return clients.empty() && server.connections() == 0; }));
  EXPECT_EQ(server.accepted(), 6U);
  // One connection is served; the task of another may be about to end after it has passed on its
  // stream.
  EXPECT_LE(limit, 2U);
}

TEST_P(ProxiedStreams, do_not_keep_a_server_from_shutting_down) {
  std::vector<Error> refused;
  TcpServer server = listen({.proxy_header_timeout = 1h, .on_rejected = [&](Stream&, Error error) {
                               refused.push_back(error);
                             }});
  server.serve([](TcpStream) -> Task<> { co_return; });
  run([](TcpServer& local) -> Task<> {
    auto silent = co_await TcpStream::connect(local.endpoint());
    while (local.connections() == 0) co_await sleep_for(1ms);
    co_await local.shut_down(1ms);
    Buffer nothing;
    EXPECT_EQ(co_await silent->read(nothing), 0U);
  }(server));
  EXPECT_EQ(refused, std::vector<Error>{system_error(ECANCELED)});
  loop().run();
}

}  // namespace
}  // namespace tambour::proxied_streams_test
