// WebSockets over real sockets: between the library's ends on every backend, and with Python's
// websockets, ws on Node.js and gorilla/websocket in Go as clients and as servers.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/websocket/serving.h"
#include "support/on_every_backend.h"
#include "support/temporary_folder.h"

namespace tambour::peers_test {
namespace {

using namespace std::chrono_literals;
using http::WebSocket;
using http::WebSocketMessage;

const std::filesystem::path folder = std::filesystem::path(__FILE__).parent_path();

/// A program that is a client or an echo server, and a command that fails if it is not installed.
struct Peer {
  std::vector<std::string> command;
  std::string probe;
};
const std::string node_path =
    "NODE_PATH=/usr/share/nodejs:/usr/lib/node_modules:/usr/local/lib/node_modules";
const std::vector<Peer> peers{{{"/usr/bin/python3", "-B", folder / "peers.py"},
                               "/usr/bin/python3 -c 'import websockets' 2>/dev/null"},
                              {{"/usr/bin/env", node_path, "node", folder / "peers.js"},
                               node_path + " node -e 'require(\"ws\")' 2>/dev/null"}};

/// Compiled once, with the package of Debian, which is outside of modules.
Peer peer_of_go() {
  static const test::TemporaryFolder built;
  static const std::string program = built.path() + "/peer";
  static const int status = std::system(
      ("go=$(ls /usr/bin/go 2>/dev/null || command -v go) && "
       "if [ -z \"$HOME$GOCACHE\" ]; then export GOCACHE=" +
       built.path() + "/cache; fi && export GOFLAGS= GO111MODULE=off GOPATH=/usr/share/gocode && " +
       "$go build -o " + program + ' ' + (folder / "peers.go").string())
          .c_str());
  return {{program}, status == 0 ? "true" : "false"};
}

class WebSocketPeers : public test::OnEveryBackend {
 protected:
  void TearDown() override {
    server_.reset();
    OnEveryBackend::TearDown();
  }
  std::string serve_echo(const http::WebSocketOptions& options) {
    server_.emplace(or_throw(http::Server::listen(loop(), Endpoint::loopback_v4(0),
                                                  http::serve_websocket(&test::echo, options))));
    return "ws://" + server_->endpoint().to_string() + "/";
  }
  /// Sends messages from the client that the peer is, with compression and without.
  void serve_client(const Peer& peer) {
    http::WebSocketOptions options;
    options.subprotocols = {"v1.chat"};
    std::string url = serve_echo(options);
    EXPECT_EQ(run_client(peer, {url}), "ok\n");
    server_.reset();
    options.compression.emplace();
    url = serve_echo(options);
    EXPECT_EQ(run_client(peer, {url, "deflate"}), "ok\n");
    server_.reset();
  }
  static bool is_installed(const Peer& peer) { return std::system(peer.probe.c_str()) == 0; }
  static std::vector<std::string> command_of(const Peer& peer,
                                             std::initializer_list<std::string> arguments) {
    std::vector<std::string> command = peer.command;
    command.insert(command.end(), arguments);
    return command;
  }
  /// What the client prints, errors included.
  std::string run_client(const Peer& peer, std::initializer_list<std::string> more) {
    std::vector<std::string> arguments = command_of(peer, {"client"});
    arguments.insert(arguments.end(), more);
    Buffer output;
    run([](EventLoop& loop, std::vector<std::string> command, Buffer& into) -> Task<> {
      ProcessOptions options;
      options.arguments = std::move(command);
      options.output = Stdio::pipe();
      options.error_output = Stdio::same_as_output();
      Process running = or_throw(Process::spawn(loop, options));
      for (;;) {
        const Result<std::size_t> got = co_await running.output().read(into);
        if (!got || *got == 0) break;
      }
      static_cast<void>(co_await running.wait());
    }(loop(), std::move(arguments), output));
    return output.to_string();
  }
  /// Exchanges messages with the server that the peer is.
  static Task<> use_server(EventLoop& loop, std::vector<std::string> command) {
    ProcessOptions process;
    process.arguments = std::move(command);
    process.input = Stdio::pipe();
    process.output = Stdio::pipe();
    Process running = or_throw(Process::spawn(loop, process));
    Buffer output;
    while (!output.find('\n')) {
      const Result<std::size_t> got = co_await running.output().read(output);
      EXPECT_TRUE(got && *got > 0);
      if (!got || *got == 0) co_return;
    }
    const std::string port = output.take(*output.find('\n')).to_string();
    http::Client client(loop);
    http::WebSocketOptions options;
    options.subprotocols = {"v1.chat"};
    options.compression.emplace();
    Result<WebSocket> opened =
        co_await http::connect_websocket(client, "ws://127.0.0.1:" + port + "/", options);
    WebSocket socket = or_throw(std::move(opened));
    EXPECT_EQ(socket.subprotocol(), "v1.chat");
    EXPECT_TRUE(socket.has_compression());
    for (const std::size_t size : {0UL, 1UL, 126UL, 65'536UL, 300'000UL}) {
      EXPECT_TRUE(co_await socket.send_text(std::string(size, 'x')));
      const Result<WebSocketMessage> message = co_await socket.receive();
      EXPECT_TRUE(message && message->to_string() == std::string(size, 'x')) << size;
    }
    EXPECT_TRUE(co_await socket.close());
    running.input().close();
    static_cast<void>(co_await running.wait());
  }

  std::optional<http::Server> server_;
};

TAMBOUR_ON_EVERY_BACKEND(WebSocketPeers);

TEST_P(WebSocketPeers, many_exchange_messages_at_the_same_time) {
  const std::string url = serve_echo({});
  run([](EventLoop& loop, std::string server) -> Task<> {
    http::ClientOptions options;
    options.connections_per_origin_max = 200;
    http::Client client(loop, options);
    TaskScope visitors(loop);
    for (int visitor = 0; visitor < 100; ++visitor) {
      visitors.spawn([&client, &server, visitor]() -> Task<> {
        Result<WebSocket> opened = co_await http::connect_websocket(client, server);
        EXPECT_TRUE(opened);
        if (!opened) co_return;
        WebSocket socket = std::move(*opened);
        for (int i = 0; i < 20; ++i) {
          const std::string text = std::to_string(visitor) + " " + std::to_string(i);
          EXPECT_TRUE(co_await socket.send_text(text));
          const Result<WebSocketMessage> message = co_await socket.receive();
          EXPECT_TRUE(message && message->to_string() == text);
        }
        EXPECT_TRUE(co_await socket.close());
      });
    }
    co_await visitors.join();
  }(loop(), url));
}

TEST_P(WebSocketPeers, topics_reach_the_subscribers_of_each_loop) {
  constexpr int clients = 12;
  constexpr int numbers = 100;
  LoopGroup group({.threads = 3, .loop = options()});
  http::WebSocketTopicOptions topic_options;
  topic_options.when_slow = http::WhenSubscriberSlow::delay_publisher;
  topic_options.backlog_bytes_max = 2000;
  http::WebSocketTopic topic(group, topic_options);
  http::Handler handler =
      http::serve_websocket([&topic](WebSocket& socket, http::Request&) -> Task<> {
        topic.subscribe(socket);
        for (;;) {
          Result<WebSocketMessage> message = co_await socket.receive();
          if (!message) co_return;
          EXPECT_TRUE(co_await topic.publish(std::move(*message)));
        }
      });
  std::optional<http::ServerGroup> server(
      or_throw(http::ServerGroup::listen(group, Endpoint::loopback_v4(0), std::move(handler))));
  run([](EventLoop& loop, std::string url, http::WebSocketTopic& numbered) -> Task<> {
    http::ClientOptions options;
    options.connections_per_origin_max = clients;
    http::Client client(loop, options);
    TaskScope visitors(loop);
    for (int visitor = 0; visitor < clients; ++visitor) {
      visitors.spawn([&]() -> Task<> {
        Result<WebSocket> opened = co_await http::connect_websocket(client, url);
        WebSocket socket = or_throw(std::move(opened));
        EXPECT_TRUE(co_await socket.send_text("hello"));
        int next = 0;
        for (int hellos = 0; hellos < 1 || next < numbers;) {
          const Result<WebSocketMessage> message = co_await socket.receive();
          EXPECT_TRUE(message);
          if (!message) co_return;
          if (message->data == "hello") {
            ++hellos;
          } else {
            EXPECT_EQ(message->to_string(), std::to_string(next++));
          }
        }
        EXPECT_TRUE(co_await socket.close());
      });
    }
    while (numbered.size() < clients) static_cast<void>(co_await sleep_for(1ms));
    for (int i = 0; i < numbers; ++i)
      EXPECT_TRUE(co_await numbered.publish(WebSocketMessage(std::to_string(i))));
    co_await visitors.join();
  }(loop(), "ws://" + server->endpoint().to_string() + "/", topic));
  EXPECT_EQ(topic.stats().published, numbers + clients);
  EXPECT_EQ(topic.stats().dropped + topic.stats().closed, 0);
  server.reset();
  group.stop();
  group.join();
}

TEST_P(WebSocketPeers, clients_of_others_are_served) {
  bool is_skipped = true;
  for (const Peer& peer : peers) {
    if (!is_installed(peer)) continue;
    is_skipped = false;
    serve_client(peer);
  }
  if (is_skipped) GTEST_SKIP() << "python3-websockets and ws of Node.js are not installed";
}

TEST_P(WebSocketPeers, servers_of_others_are_used) {
  bool is_skipped = true;
  for (const Peer& peer : peers) {
    if (!is_installed(peer)) continue;
    is_skipped = false;
    run(use_server(loop(), command_of(peer, {"server"})));
  }
  if (is_skipped) GTEST_SKIP() << "python3-websockets and ws of Node.js are not installed";
}

/// Compiling takes seconds, so `make test-all` runs it.
TEST_P(WebSocketPeers, go_is_served_and_used) {
  if (std::getenv("TAMBOUR_TEST_GO") == nullptr) GTEST_SKIP() << "TAMBOUR_TEST_GO is not set";
  if (!std::filesystem::exists("/usr/share/gocode/src/github.com/gorilla/websocket"))
    GTEST_SKIP() << "golang-github-gorilla-websocket-dev is not installed";
  const Peer go = peer_of_go();
  ASSERT_TRUE(is_installed(go)) << "peers.go does not compile";
  serve_client(go);
  run(use_server(loop(), command_of(go, {"server"})));
}

}  // namespace
}  // namespace tambour::peers_test
