// http::Server over real sockets, on every backend; and over the loops of a group.
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/server/http2_client.h"
#include "http/support/client.h"
#include "support/on_every_backend.h"
#include "support/temporary_folder.h"

namespace tambour::sockets_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;
using test::read_reply;

/// Sends the body back, as it arrives.
Task<> echo(Request& request, Response& response) {
  if (const auto length = request.body().length()) response.set_length(*length);
  while (!request.body().is_complete()) {
    auto piece = co_await request.body().read();
    if (!piece) co_return;
    const auto written = co_await response.write(std::move(*piece));
    if (!written) co_return;
  }
}

Task<> write_all(Stream& stream, std::string text) {
  EXPECT_TRUE(co_await stream.write(std::string_view(text)));
}

class HttpSockets : public test::OnEveryBackend {
 protected:
  void TearDown() override {
    server.reset();
    OnEveryBackend::TearDown();
  }
  void serve(http::Handler handler, Endpoint at = Endpoint::loopback_v4(0),
             http::ServerOptions options = {}) {
    auto opened = http::Server::listen(loop(), at, std::move(handler), std::move(options));
    ASSERT_TRUE(opened) << opened.error().message();
    server = std::make_unique<http::Server>(std::move(*opened));
  }

  std::unique_ptr<http::Server> server;
};

TAMBOUR_ON_EVERY_BACKEND(HttpSockets);

/// Bytes of DATA before a line.
std::size_t data_before(const std::string& lines, std::string_view line) {
  std::size_t bytes = 0;
  const std::size_t end = lines.find(line);
  EXPECT_NE(end, std::string::npos) << lines;
  constexpr std::string_view data = "DATA 1 ";
  for (std::size_t at = lines.find(data); at < end; at = lines.find(data, at + 1))
    bytes += std::stoul(lines.substr(at + data.size()));
  return bytes;
}

/// A download fills the buffers of the kernel, of which that of the server could have megabytes.
TEST_P(HttpSockets, urgent_responses_of_http_2_overtake_what_is_not_sent) {
  serve([](Request& request, Response& response) {
    response.send(std::string(request.path() == "/" ? 12'000'000 : 10, 'x'));
  });
  run([](EventLoop&, Endpoint to) -> Task<> {
    auto connected = co_await TcpStream::connect(to);
    TcpStream stream = or_throw(std::move(connected));
    EXPECT_TRUE(stream.set_option(SOL_SOCKET, SO_RCVBUF, 65'536));
    constexpr std::uint32_t window = 1 << 30;
    test::Http2Client client(std::move(stream),
                             {{test::Http2Client::SettingId::initial_window_size, window}});
    client.grow_window(0, window);
    client.get(1, "/");
    static_cast<void>(co_await client.stream().write(client.out()));
    static_cast<void>(co_await sleep_for(100ms));
    client.get(3, "/urgent", {{"priority", "u=0"}});
    std::string lines;
    // On a busy machine, one exchange() may end before the server has answered.
    for (int i = 0; i < 120 && lines.find("HEADERS 3 ") == std::string::npos; ++i)
      lines += co_await client.exchange();
    EXPECT_LT(data_before(lines, "HEADERS 3 "), 1'000'000);
  }(loop(), server->endpoint()));
}

TEST_P(HttpSockets, bodies_stream_in_both_directions) {
  serve(echo);
  run([](EventLoop& loop, Endpoint to) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream);
    Buffer in;
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{3'000'000}}) {
      const std::string body(size, 'x');
      TaskScope sending(loop);
      sending.spawn(write_all(*stream, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                                           std::to_string(size) + "\r\n\r\n" + body));
      const auto reply = co_await read_reply(*stream, in);
      EXPECT_TRUE(reply && reply->body == body) << size;
      EXPECT_EQ(reply->is_persistent, true);
      co_await sending.join();
    }
  }(loop(), server->endpoint()));
}

TEST_P(HttpSockets, many_clients_send_pipelined_requests) {
  serve([](Request& request, Response& response) { response.send(request.path()); });
  TaskScope clients(loop());
  int answered = 0;
  for (int i = 0; i < 20; ++i)
    clients.spawn([](Endpoint to, int& count) -> Task<> {
      auto stream = co_await TcpStream::connect(to);
      EXPECT_TRUE(stream);
      std::string requests;
      for (int entry = 0; entry < 100; ++entry)
        requests += "GET /" + std::to_string(entry) + " HTTP/1.1\r\nHost: a\r\n\r\n";
      co_await write_all(*stream, requests);
      Buffer in;
      for (int value = 0; value < 100; ++value) {
        const auto reply = co_await read_reply(*stream, in);
        EXPECT_TRUE(reply && reply->body == "/" + std::to_string(value));
        ++count;
      }
    }(server->endpoint(), answered));
  EXPECT_TRUE(run_until([&] { return clients.empty(); }));
  EXPECT_EQ(answered, 2000);
  EXPECT_TRUE(run_until([&] { return server->connections() == 0; }));
  EXPECT_EQ(server->accepted(), 20U);
}

TEST_P(HttpSockets, a_server_listens_on_a_unix_path) {
  const test::TemporaryFolder folder;
  const Endpoint at = Endpoint::unix_name(folder.path() + "/socket").value();
  serve([](Request&, Response& response) { response.send("hello"); }, at);
  run([](Endpoint to) -> Task<> {
    auto stream = co_await UnixStream::connect(to);
    EXPECT_TRUE(stream);
    co_await write_all(*stream, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    Buffer in;
    const auto reply = co_await read_reply(*stream, in);
    EXPECT_TRUE(reply && reply->body == "hello");
  }(at));
}

TEST_P(HttpSockets, the_413_reaches_a_client_that_is_still_sending) {
  serve([](Request& request, Response& response) -> Task<> {
    const auto body = co_await request.body().read_all(1000);
    if (body) response.send("?");
  });
  run([](EventLoop& loop, Endpoint to) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream);
    TaskScope sending(loop);
    // More than the buffers of the kernel hold.
    sending.spawn(
        write_all(*stream, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\n" +
                               std::string(20'000'000, 'x')));
    Buffer in;
    const auto reply = co_await read_reply(*stream, in);
    EXPECT_TRUE(reply && reply->status == http::Status::content_too_large);
    co_await sending.join();
  }(loop(), server->endpoint()));
}

TEST_P(HttpSockets, a_shutdown_under_load_fails_no_request) {
  http::ServerOptions patient;
  patient.drain_timeout = 1min;
  serve([](Request&, Response& response) { response.send("hello"); }, Endpoint::loopback_v4(0),
        std::move(patient));
  TaskScope clients(loop());
  int answered = 0;
  for (int i = 0; i < 10; ++i)
    clients.spawn([](Endpoint to, int& count) -> Task<> {
      auto stream = co_await TcpStream::connect(to);
      EXPECT_TRUE(stream);
      Buffer in;
      for (bool is_persistent = true; is_persistent;) {
        co_await write_all(*stream, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        const auto reply = co_await read_reply(*stream, in);
        EXPECT_TRUE(reply) << reply.error().message();
        if (!reply) co_return;
        is_persistent = reply->is_persistent;
        ++count;
      }
    }(server->endpoint(), answered));
  EXPECT_TRUE(run_until([&] { return answered > 200; }));
  run([](http::Server& local) -> Task<> { co_await local.shut_down(1min); }(*server));
  EXPECT_TRUE(run_until([&] { return clients.empty(); }));
  EXPECT_EQ(server->connections(), 0U);
}

TEST_P(HttpSockets, a_group_serves_on_several_threads) {
  LoopGroup group({.threads = 2, .loop = options()});
  std::atomic<int> handled = 0;
  auto opened = http::ServerGroup::listen(group, Endpoint::loopback_v4(0),
                                          [&handled](Request&, Response& response) -> Task<> {
                                            static_cast<void>(co_await sleep_for(1ms));
                                            ++handled;
                                            response.send("hello");
                                          });
  ASSERT_TRUE(opened);
  TaskScope clients(loop());
  for (int i = 0; i < 10; ++i)
    clients.spawn([](Endpoint to) -> Task<> {
      auto stream = co_await TcpStream::connect(to);
      EXPECT_TRUE(stream);
      Buffer in;
      for (int value = 0; value < 10; ++value) {
        co_await write_all(*stream, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        const auto reply = co_await read_reply(*stream, in);
        EXPECT_TRUE(reply && reply->body == "hello");
      }
    }(opened->endpoint()));
  EXPECT_TRUE(run_until([&] { return clients.empty(); }));
  EXPECT_EQ(handled, 100);
  run([](http::ServerGroup& server_group) -> Task<> {
    co_await server_group.shut_down(1min);
  }(*opened));
  EXPECT_EQ(opened->connections(), 0U);
}

}  // namespace
}  // namespace tambour::sockets_test
