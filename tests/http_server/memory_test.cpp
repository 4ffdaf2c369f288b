// How much memory messages in short pieces make a server and a client of HTTP hold. Replaces
// operator new, to count.
#include <memory>

#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/live_memory.h"
#include "support/on_every_backend.h"
#include "support/peer.h"

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

class HttpMemory : public test::OnEveryBackend {
 protected:
  http::Server serve(http::Handler handler) {
    return or_throw(http::Server::listen(loop(), Endpoint::loopback_v4(0), std::move(handler)));
  }
  TcpStream connect(const Endpoint& server) {
    std::optional<TcpStream> stream;
    run([](Endpoint at, std::optional<TcpStream>& made) -> Task<> {
      made = or_throw(co_await TcpStream::connect(at));
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

}  // namespace
}  // namespace tambour::memory_test
