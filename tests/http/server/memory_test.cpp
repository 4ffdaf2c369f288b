// How much memory messages in short pieces make a server and a client of HTTP hold. Replaces
// operator new, to count.
#include <memory>

#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http_message/h2/frame_writer.h"
#include "http_message/h2/head_writer.h"
#include "http_message/h2/hpack_encoder.h"
#include "support/live_memory.h"
#include "support/on_every_backend.h"
#include "support/peer.h"
#include "support/scale.h"

namespace tambour::memory_test {
namespace {

using test::live_bytes;

/// Holds what the pool of buffers has kept, so that all memory is counted.
std::vector<Buffer> empty_pool() {
  std::vector<Buffer> held;
  for (const std::size_t size : {100U, 4096U, 65536U, 262144U}) {
    for (int i = 0; i < 256 && (size < 65536 || i < 16); ++i)
      held.emplace_back(std::string(size, 'x'));
  }
  return held;
}

/// The memory in use, without what the pool of buffers keeps.
std::size_t used_bytes() {
  const std::vector<Buffer> pool = empty_pool();
  std::size_t bytes = live_bytes;
  for (const Buffer& block : pool) bytes -= block.memory_bytes();
  return bytes;
}

class HttpMemory : public test::OnEveryBackend {
 protected:
  http::Server serve(http::Handler handler) {
    return or_throw(http::Server::listen(loop(), Endpoint::loopback_v4(0), std::move(handler)));
  }
  TcpStream connect(const Endpoint& server) {
    std::optional<TcpStream> stream;
    run([](Endpoint at, std::optional<TcpStream>& created) -> Task<> {
      created = or_throw(co_await TcpStream::connect(at));
    }(server, stream));
    return std::move(*stream);
  }
  /// Sends all of `text`, in pieces of `size` bytes that arrive one at a time.
  void send_pieces(TcpStream& peer, std::string_view text, std::size_t size) {
    while (!text.empty()) {
      text.remove_prefix(test::send_now(peer, text.substr(0, size)));
      run_iterations(1);
    }
  }
};

TAMBOUR_ON_EVERY_BACKEND(HttpMemory);

TEST_P(HttpMemory, of_pipelined_requests_whose_responses_are_not_read) {
  for (const std::size_t size : {0U, 1U, 100U, 1000U}) {
    const std::string body(size, 'x');
    const http::Server server =
        serve([&](http::Request&, http::Response& response) { response.send(Buffer(body)); });
    TcpStream peer = connect(server.endpoint());
    const std::vector<Buffer> held = empty_pool();
    const std::size_t before = live_bytes;
    std::string requests;
    for (int i = 0; i < 2000; ++i) requests += "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for (int refused = 0; refused < 20;) {
      refused = test::send_now(peer, requests) == 0 ? refused + 1 : 0;
      run_iterations(1);
    }
    // The responses of 64 KiB, what is read ahead, and the connection itself.
    EXPECT_LE(live_bytes - before, 350'000U) << size;
    peer.close();
  }
}

/// A second after the last request, a connection holds only what it needs to wait, and at once if
/// more than 1,024 wait.
class HttpMemoryOfIdleConnections : public HttpMemory {
 protected:
  void connect_all(const Endpoint& server, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) peers.push_back(connect(server));
    run_iterations();
  }
  void request_all() {
    for (TcpStream& peer : peers) send_pieces(peer, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 100);
    for (TcpStream& peer : peers) {
      std::string text;
      ASSERT_TRUE(eventually([&] { return (text += test::receive_now(peer)).ends_with("hello"); }));
    }
  }
  /// The same with prior knowledge of HTTP/2.
  void request_all_over_http_2(std::uint32_t stream_id) {
    namespace h2 = http::detail::h2;
    Buffer bytes;
    if (stream_id == 1) {
      bytes.append(h2::client_preface);
      h2::append_settings(bytes, {});
    }
    h2::append_settings_ack(bytes);
    h2::HpackEncoder encoder(0);
    http::RequestHead head{.method = http::Method::get};
    head.target = "/";
    head.authority = "a";
    or_throw(h2::append_head(bytes, encoder, head, {.stream_id = stream_id, .end_stream = true}));
    const std::string text = bytes.to_string();
    for (TcpStream& peer : peers) send_pieces(peer, text, text.size());
    for (TcpStream& peer : peers) {
      std::string answer;
      ASSERT_TRUE(
          eventually([&] { return (answer += test::receive_now(peer)).ends_with("hello"); }));
    }
  }
  /// Each connection has `bytes_max` bytes at most, after `send_all` of the number of the round.
  template <class SendAll>
  void expect_small_connections(std::size_t count, std::size_t bytes_max, SendAll send_all) {
    constexpr std::size_t client_bytes = 128;  // The operation with which a client has connected.
    bytes_max = (test::sanitized ? 2 : 1) * bytes_max + client_bytes;
    const http::Server server =
        serve([](http::Request&, http::Response& response) { response.send("hello"); });
    // What grows with the number of connections and is kept.
    connect_all(server.endpoint(), count);
    send_all(0);
    peers.clear();
    ASSERT_TRUE(eventually([&] { return server.connections() == 0; }));
    const std::size_t before = used_bytes();
    connect_all(server.endpoint(), count);
    for (int i = 0; i < 2; ++i) {
      send_all(i);
      EXPECT_TRUE(eventually([&] { return used_bytes() <= before + count * bytes_max; }))
          << (used_bytes() - before) / count;
    }
    RecordProperty("bytes", std::to_string((used_bytes() - before) / count - client_bytes));
    peers.clear();
  }
  void expect_small_connections(std::size_t count) {
    expect_small_connections(count, 600, [this](int) { request_all(); });
  }

  std::vector<TcpStream> peers;
};

TAMBOUR_ON_EVERY_BACKEND(HttpMemoryOfIdleConnections);

TEST_P(HttpMemoryOfIdleConnections, is_that_of_the_wait) { expect_small_connections(300); }

TEST_P(HttpMemoryOfIdleConnections, is_small_over_http_2) {
  expect_small_connections(300, 4096, [this](int round) {
    request_all_over_http_2(static_cast<std::uint32_t>(2 * round + 1));
  });
}

TEST_P(HttpMemoryOfIdleConnections, is_that_of_the_wait_for_more_than_are_kept) {
  if (!is(BackendKind::epoll) && !is(BackendKind::io_uring))
    GTEST_SKIP() << "the others take long for so many descriptors, or cannot watch them";
  expect_small_connections(1100);
}

/// An idle WebSocket holds nothing of HTTP, no buffer and nothing to send.
class HttpMemoryOfIdleWebSockets : public HttpMemoryOfIdleConnections {
 protected:
  static constexpr std::size_t count = 100;
  static constexpr std::string_view handshake =
      "GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

  /// Sends `text` from each peer, and waits for answers that end so.
  void exchange_all(std::string_view text, std::string_view end) {
    for (TcpStream& peer : peers) {
      send_pieces(peer, text, 1000);
      std::string answer;
      ASSERT_TRUE(eventually([&] { return (answer += test::receive_now(peer)).ends_with(end); }))
          << answer;
    }
  }
  /// Opens the WebSockets, which echo a message then.
  void open_all(const http::Server& server) {
    connect_all(server.endpoint(), count);
    exchange_all(handshake, "\r\n\r\n");
    exchange_all(std::string_view("\x81\x82\0\0\0\0hi", 8), "\x81\x02hi");
  }
  /// Bytes for each. Its peer holds none.
  std::size_t idle_bytes(http::Handler handler) {
    const http::Server server = serve(std::move(handler));
    open_all(server);
    peers.clear();
    EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
    const std::size_t before = used_bytes();
    open_all(server);
    const std::size_t bytes = (used_bytes() - before) / count;
    peers.clear();
    EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
    return bytes;
  }
  static Task<> echo(http::WebSocket& socket) {
    for (;;) {
      Result<http::WebSocketMessage> message = co_await socket.receive();
      if (!message) co_return;
      const Result<> sent = co_await socket.send(std::move(*message));
      if (!sent) co_return;
    }
  }
};

TAMBOUR_ON_EVERY_BACKEND(HttpMemoryOfIdleWebSockets);

TEST_P(HttpMemoryOfIdleWebSockets, is_that_of_the_connection_and_its_task) {
  const std::size_t with_callbacks = idle_bytes(http::serve_websocket(http::WebSocketCallbacks{
      .on_message = [](http::WebSocket& socket, http::WebSocketMessage message) {
        EXPECT_TRUE(socket.try_send(std::move(message)));
      }}));
  const std::size_t with_function = idle_bytes(http::serve_websocket(&echo));
  const std::size_t with_request = idle_bytes(
      http::serve_websocket([](http::WebSocket& socket, http::Request&) { return echo(socket); }));
  RecordProperty("with_callbacks", static_cast<int>(with_callbacks));
  RecordProperty("with_function", static_cast<int>(with_function));
  RecordProperty("with_request", static_cast<int>(with_request));
  // 1 KiB, and a share of what the server allocates once for all connections.
  EXPECT_LE(with_callbacks, test::sanitized ? 2200 : 1024 + 16);
  EXPECT_LE(with_function, test::sanitized ? 4000 : 1640);
  EXPECT_LE(with_request, test::sanitized ? 6000 : 2420);
}

/// The anonymous memory of the process that is resident.
std::size_t resident_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  while (file >> word && word != "Anonymous:") continue;
  std::size_t kibibytes = 0;
  file >> kibibytes;
  return kibibytes * 1024;
}

TEST_P(HttpMemoryOfIdleConnections, goes_back_to_the_system_when_they_have_closed) {
  if (!is(BackendKind::epoll)) GTEST_SKIP() << "the others do the same";
  if (test::sanitized) GTEST_SKIP() << "the heap is not that of the C library";
  const http::Server server =
      serve([](http::Request&, http::Response& response) { response.send("hello"); });
  connect_all(server.endpoint(), 1100);
  request_all();
  const std::size_t before = resident_bytes();
  ASSERT_GT(before, 0U);
  peers.clear();
  ASSERT_TRUE(eventually([&] { return server.connections() == 0; }));
  EXPECT_LT(resident_bytes() + 1'000'000, before);
}

TEST_P(HttpMemoryOfIdleConnections, goes_back_to_the_system_when_they_wait) {
  if (!is(BackendKind::epoll)) GTEST_SKIP() << "the others do the same";
  if (test::sanitized) GTEST_SKIP() << "the heap is not that of the C library";
  const http::Server server =
      serve([](http::Request&, http::Response& response) { response.send("hello"); });
  connect_all(server.endpoint(), 1100);
  request_all();
  const std::size_t before = resident_bytes();
  EXPECT_TRUE(eventually([&] { return resident_bytes() + 1'000'000 < before; }));
  EXPECT_EQ(server.connections(), 1100U);
}

TEST_P(HttpMemory, of_a_request_body_in_short_pieces) {
  constexpr std::size_t count = 20'000;
  for (const std::size_t size : {1U, 2U, 100U, 1000U}) {
    Buffer all;
    const http::Server server =
        serve([&](http::Request& request, http::Response& response) -> Task<> {
          all = or_throw(co_await request.body().read_all(32 << 20));
          response.send("");
        });
    const std::string piece(size, 'x');
    std::string chunks;
    for (std::size_t i = 0; i < count; ++i) {
      std::array<char, 16> line{};
      std::snprintf(line.data(), line.size(), "%zx\r\n", size);
      chunks.append(line.data()).append(piece).append("\r\n");
    }
    const std::vector<Buffer> held = empty_pool();
    const std::size_t before = live_bytes;
    TcpStream chunked = connect(server.endpoint());
    send_pieces(chunked, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 1000);
    send_pieces(chunked, chunks + "0\r\n\r\n", 65536);
    ASSERT_TRUE(run_until([&] { return all.size() == size * count; })) << all.size();
    EXPECT_LE(live_bytes - before, 5 * size * count + 300'000) << "chunks of " << size;

    TcpStream plain = connect(server.endpoint());
    send_pieces(
        plain,
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(size * 5000) + "\r\n\r\n",
        1000);
    send_pieces(plain, std::string(size * 5000, 'x'), size);
    ASSERT_TRUE(run_until([&] { return all.size() == size * 5000; })) << all.size();
    EXPECT_LE(live_bytes - before, 10 * size * 5000 + 300'000) << "segments of " << size;
  }
}

TEST_P(HttpMemory, of_a_response_in_short_pieces) {
  constexpr std::size_t count = 10'000;
  for (const std::string_view chunk : {"1\r\nx\r\n", "x"}) {
    const bool is_chunked = chunk.size() > 1;
    std::optional<TcpStream> peer;
    TcpServer server = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0)));
    server.serve([&](TcpStream stream) -> Task<> {
      peer = std::move(stream);
      co_return;
    });
    http::Client client(loop());
    Buffer all;
    bool complete = false;
    TaskScope scope(loop());
    scope.spawn([](http::Client& from, Endpoint at, Buffer& into, bool& done) -> Task<> {
      auto response = or_throw(co_await from.get("http://" + at.to_string() + "/"));
      into = or_throw(co_await response.read_all());
      done = true;
    }(client, server.endpoint(), all, complete));
    ASSERT_TRUE(run_until([&] { return peer.has_value(); }));
    send_pieces(*peer,
                is_chunked ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                           : "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n",
                1000);
    const std::vector<Buffer> held = empty_pool();
    const std::size_t before = live_bytes;
    std::string body;
    for (std::size_t i = 0; i < count; ++i) body += chunk;
    if (is_chunked) body += "0\r\n\r\n";
    send_pieces(*peer, body, is_chunked ? 65536 : 1);
    ASSERT_TRUE(run_until([&] { return complete; }));
    EXPECT_EQ(all.size(), count);
    EXPECT_LE(live_bytes - before, 10 * count + 300'000) << chunk;
  }
}

/// `count` fields with a name and a value of `size` bytes.
std::string fields_of(std::size_t count, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text.append(std::string(size, 'a')).append(":").append(std::string(size, 'b')).append("\r\n");
  return text;
}

TEST_P(HttpMemory, of_fields_and_trailers_of_a_request) {
  for (const std::size_t size : {1U, 2U, 100U, 160U}) {
    TaskEvent end(loop());
    int waiting = 0;
    const http::Server server =
        serve([&](http::Request& request, http::Response& response) -> Task<> {
          static_cast<void>(co_await request.body().read_all());
          EXPECT_FALSE(request.body().trailers().empty());
          ++waiting;
          static_cast<void>(co_await end.wait());
          response.send("");
        });
    constexpr std::size_t count = 20;
    std::vector<TcpStream> peers;
    for (std::size_t i = 0; i < count; ++i) peers.push_back(connect(server.endpoint()));
    run_iterations();
    const std::size_t before = used_bytes();
    const std::size_t trailers = std::min<std::size_t>(32, 8000 / (2 * size));
    const std::size_t fields = std::min<std::size_t>(98, 32'000 / (2 * size));
    for (TcpStream& peer : peers) {
      send_pieces(peer,
                  "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" +
                      fields_of(fields, size) + "\r\n0\r\n" + fields_of(trailers, size) + "\r\n",
                  100'000);
    }
    ASSERT_TRUE(run_until([&] { return waiting == count; }));
    const std::size_t bytes = 2 * size * (fields + trailers);
    EXPECT_LE(used_bytes() - before, count * (3 * bytes / 2 + 10'000)) << size;
    end.set();
    run_iterations(100);
    EXPECT_LE(used_bytes() - before, count * 9000) << "idle, " << size;
  }
}

TEST_P(HttpMemory, of_fields_of_a_response) {
  for (const std::size_t size : {1U, 2U, 100U, 160U}) {
    TcpServer server = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0)));
    const std::string text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" +
                             fields_of(99, size) + "\r\n0\r\n" + fields_of(25, size) + "\r\n";
    std::vector<TcpStream> streams;
    server.serve([&](TcpStream stream) -> Task<> {
      Buffer request;
      static_cast<void>(co_await stream.read(request));
      static_cast<void>(co_await stream.write(text));
      streams.push_back(std::move(stream));
    });
    http::Client client(loop());
    const std::size_t before = used_bytes();
    std::optional<http::ClientResponse> response;
    run([](http::Client& from, Endpoint at, std::optional<http::ClientResponse>& into) -> Task<> {
      into = or_throw(co_await from.get("http://" + at.to_string() + "/"));
      EXPECT_TRUE((co_await into->read_all()).has_value());
    }(client, server.endpoint(), response));
    EXPECT_EQ(response->trailers().size(), 25U);
    EXPECT_LE(used_bytes() - before, 3 * size * 124 + 30'000) << size;
  }
}

TEST_P(HttpMemory, of_a_line_of_the_access_log) {
  for (const char byte : {'a', '\x01', '"', '\xff'}) {
    http::AccessRecord record;
    const std::string text(10'000, byte);
    record.method = "GET";
    record.target = record.referer = record.user_agent = text;
    const std::size_t before = used_bytes();
    const std::string line = http::format_combined(record);
    EXPECT_LE(line.size(), 4 * 3 * text.size() + 200);
    EXPECT_LE(used_bytes() - before, 2 * line.size() + 200);
  }
}

TEST_P(HttpMemory, of_requests_that_wait_for_a_connection) {
  TcpServer server = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0)));
  std::vector<TcpStream> streams;
  server.serve([&](TcpStream stream) -> Task<> {
    streams.push_back(std::move(stream));
    co_return;
  });
  // The frames of the tasks, which sanitizers make larger.
  constexpr std::size_t frames = test::sanitized ? 12'500 : 8'500;
  for (const std::size_t size : {1U, 2U, 100U, 1000U}) {
    http::Client client(loop(), {.connections_per_origin_max = 1});
    const std::string url = "http://" + server.endpoint().to_string() + "/";
    std::size_t refused = 0;
    constexpr std::size_t count = 1000;
    const std::size_t before = used_bytes();
    TaskScope scope(loop());
    for (std::size_t i = 0; i < count; ++i) {
      scope.spawn(
          [](http::Client& to, std::string at, std::size_t bytes, std::size_t& failed) -> Task<> {
            http::ClientRequest request;
            request.method = http::Method::post;
            request.url = std::move(at);
            request.body = Buffer(std::string(bytes, 'x'));
            if (!co_await to.send(std::move(request))) ++failed;
          }(client, url, size, refused));
    }
    run_iterations();
    EXPECT_LE(used_bytes() - before, count * (frames + 5 * size)) << size;
    EXPECT_EQ(refused, 0U);
  }
}

}  // namespace
}  // namespace tambour::memory_test
