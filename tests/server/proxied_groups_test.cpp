// Servers over a group of loops that require a PROXY header, on every backend.
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/proxy_protocol.h>
#include <tambour/net/server_group.h>
#include <tambour/task/sleep.h>

#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/streams.h"

namespace tambour::proxied_groups_test {
namespace {

using namespace std::chrono_literals;

constexpr Placement all_placements[] = {Placement::kernel, Placement::processor,
                                        Placement::round_robin, Placement::peer_address,
                                        Placement::least_loaded};

std::string header_of(int client, int port = 1234) {
  return "PROXY TCP4 192.0.2." + std::to_string(client) + " 192.0.2.200 " + std::to_string(port) +
         " 80\r\n";
}

class ProxiedGroups : public test::OnEveryBackend {
 protected:
  [[nodiscard]] LoopGroupOptions of(std::size_t threads) const {
    return {.threads = threads, .pin = true, .loop = options()};
  }
  static TcpServerGroup listen(LoopGroup& group, ListenOptions options) {
    options.proxy_protocol = ProxyProtocol::required;
    auto server = TcpServerGroup::listen(group, Endpoint::loopback_v4(0), options);
    if (!server) throw std::system_error(server.error());
    return std::move(*server);
  }
  /// Connects, sends `header`, and returns what the server sends until EOF.
  static Task<std::string> ask(Endpoint to, std::string header) {
    auto stream = co_await TcpStream::connect(to);
    if (!stream || !co_await stream->write(header)) co_return "";
    Buffer answer;
    while ((co_await stream->read(answer)).value_or(0) != 0) {
    }
    co_return answer.to_string();
  }
  static void expect_no_load(LoopGroup& group) {
    for (std::size_t i = 0; i < group.size(); ++i) EXPECT_EQ(group.load(group[i]), 0U) << i;
  }
};

/// Answers with the client's endpoint and the index of the loop.
auto source_and_index(LoopGroup& group) {
  return [&group](TcpStream peer) -> Task<> {
    EXPECT_TRUE(group.in_group_thread());
    EXPECT_NE(peer.proxy_header(), nullptr);
    const std::string answer =
        peer.peer_endpoint()->to_string() + " " + std::to_string(group.index_of(peer.loop()));
    EXPECT_TRUE(co_await peer.write(answer));
  };
}

TAMBOUR_ON_EVERY_BACKEND(ProxiedGroups);

TEST_P(ProxiedGroups, have_the_addresses_that_the_proxy_reports_with_every_placement) {
  for (const Placement placement : all_placements) {
    LoopGroup group(of(3));
    TcpServerGroup server = listen(group, {.placement = placement});
    server.serve(source_and_index(group));
    run([](TcpServerGroup& local) -> Task<> {
      for (int client = 1; client <= 10; ++client) {
        const std::string answer = co_await ask(local.endpoint(), header_of(client));
        EXPECT_TRUE(answer.starts_with("192.0.2." + std::to_string(client) + ":1234 ")) << answer;
      }
      co_await local.shut_down(10s);
    }(server));
    EXPECT_EQ(server.accepted(), 10U);
    EXPECT_EQ(server.connections(), 0U);
    expect_no_load(group);
  }
}

TEST_P(ProxiedGroups, are_placed_by_the_address_that_the_proxy_reports) {
  LoopGroup group(of(3));
  TcpServerGroup server = listen(group, {.placement = Placement::peer_address});
  server.serve(source_and_index(group));
  std::set<char> used;
  run([](TcpServerGroup& local, std::set<char>& indices) -> Task<> {
    for (int client = 1; client <= 20; ++client) {
      const std::string first = co_await ask(local.endpoint(), header_of(client, 1111));
      const std::string second = co_await ask(local.endpoint(), header_of(client, 2222));
      EXPECT_FALSE(first.empty() || second.empty());
      if (first.empty() || second.empty()) co_return;
      EXPECT_EQ(first.back(), second.back()) << client;
      indices.insert(first.back());
    }
  }(server, used));
  // All connections come from 127.0.0.1: with its address, all would go to one loop.
  EXPECT_EQ(used, (std::set{'0', '1', '2'}));
}

TEST_P(ProxiedGroups, may_be_served_by_callbacks) {
  for (const Placement placement : {Placement::round_robin, Placement::peer_address}) {
    LoopGroup group(of(2));
    TcpServerGroup server = listen(group, {.placement = placement});
    server.serve({.on_message = [](Connection& connection, Buffer& bytes) {
      connection.send(connection.peer_endpoint()->to_string() + " " + bytes.to_string());
      bytes.clear();
      connection.close_after_write();
    }});
    run([](Endpoint to) -> Task<> {
      // The bytes behind the header stay in the stream while it moves between loops.
      for (int client = 1; client <= 6; ++client) {
        const std::string expected = "192.0.2." + std::to_string(client) + ":1234 hello";
        EXPECT_EQ(co_await ask(to, header_of(client) + "hello"), expected);
      }
    }(server.endpoint()));
    EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
    expect_no_load(group);
  }
}

TEST_P(ProxiedGroups, without_a_header_do_not_block_others_and_are_refused) {
  for (const Placement placement : {Placement::round_robin, Placement::peer_address}) {
    // The limit also applies to peers that send a header, which must not exceed it on a busy
    // machine.
    for (const Duration limit : {Duration(1h), Duration(50ms)}) {
      const bool is_long = limit > 1min;
      LoopGroup group(of(2));
      std::mutex mutex;
      std::vector<Error> refused;
      TcpServerGroup server = listen(group, {.placement = placement,
                                             .proxy_header_timeout = limit,
                                             .on_rejected = [&](SocketStream& stream, Error error) {
                                               EXPECT_TRUE(group.in_group_thread());
                                               EXPECT_TRUE(stream.is_open());
                                               const std::lock_guard lock(mutex);
                                               refused.push_back(error);
                                             }});
      server.serve(source_and_index(group));
      run([](Endpoint to, bool others_talk) -> Task<> {
        auto silent = co_await TcpStream::connect(to);
        if (others_talk) {
          EXPECT_NE(co_await ask(to, header_of(1)), "");
          EXPECT_EQ(co_await ask(to, "GET / HTTP/1.1\r\n\r\n"), "");
          EXPECT_NE(co_await ask(to, header_of(2)), "");
          co_return;
        }
        Buffer nothing;
        EXPECT_EQ(co_await silent->read(nothing), 0U);
      }(server.endpoint(), is_long));
      EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
      const std::lock_guard lock(mutex);
      EXPECT_EQ(refused, is_long ? (std::vector<Error>{system_error(EPROTO), StreamError::eof})
                                 : (std::vector<Error>{system_error(ETIMEDOUT)}));
      expect_no_load(group);
    }
  }
}

TEST_P(ProxiedGroups, with_a_longer_header_than_the_limit_are_refused_at_once) {
  LoopGroup group(of(2));
  std::atomic<int> refused = 0;
  TcpServerGroup server = listen(group, {.placement = Placement::round_robin,
                                         .proxy_header_timeout = 1h,
                                         .proxy_header_bytes_max = 100,
                                         .on_rejected = [&](Stream&, Error error) {
                                           EXPECT_EQ(error, system_error(EMSGSIZE));
                                           ++refused;
                                         }});
  server.serve(source_and_index(group));
  Buffer header;
  ASSERT_TRUE(append_proxy_header(
      header, {.fields = {{.type = ProxyField::authority, .value = std::string(2000, 'h')}}}));
  // Only the start, so that the server waits for more unless it knows the limit.
  run([](Endpoint to, std::string start) -> Task<> {
    EXPECT_EQ(co_await ask(to, std::move(start)), "");
  }(server.endpoint(), header.to_string().substr(0, 16)));
  EXPECT_TRUE(eventually([&] { return refused == 1 && server.connections() == 0; }));
}

TEST_P(ProxiedGroups, count_as_connections_while_their_header_is_pending) {
  for (const Placement placement : {Placement::round_robin, Placement::peer_address}) {
    LoopGroup group(of(2));
    TcpServerGroup server =
        listen(group, {.placement = placement, .connections_max = 2, .proxy_header_timeout = 20ms});
    std::atomic<std::size_t> limit = 0;
    server.serve([&](TcpStream) -> Task<> {
      std::size_t seen = limit;
      const std::size_t now = server.connections();
      while (seen < now && !limit.compare_exchange_weak(seen, now)) {
      }
      co_await sleep_for(1ms);
    });
    TaskScope clients(loop());
    for (int i = 0; i < 9; ++i)
      clients.spawn([](Endpoint to, std::string header) -> Task<> {
        co_await ask(to, std::move(header));
      }(server.endpoint(), i % 3 != 0 ? header_of(i) : ""));
    EXPECT_TRUE(run_until([&] { return clients.empty(); }));
    EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
    EXPECT_EQ(server.accepted(), 9U);
    EXPECT_LE(limit, 2U);
    expect_no_load(group);
  }
}

TEST_P(ProxiedGroups, do_not_keep_a_server_from_shutting_down) {
  for (const Placement placement : all_placements) {
    LoopGroup group(of(2));
    std::atomic<int> cancelled = 0;
    TcpServerGroup server = listen(group, {.placement = placement,
                                           .proxy_header_timeout = 1h,
                                           .on_rejected = [&](Stream&, Error error) {
                                             EXPECT_EQ(error, system_error(ECANCELED));
                                             ++cancelled;
                                           }});
    server.serve(source_and_index(group));
    run([](TcpServerGroup& local) -> Task<> {
      std::vector<TcpStream> silent;
      co_await test::connect_all(local.endpoint(), 4, silent);
      while (local.connections() < 4) co_await sleep_for(1ms);
      co_await local.shut_down(1ms);
    }(server));
    EXPECT_EQ(cancelled, 4);
    EXPECT_EQ(server.connections(), 0U);
    expect_no_load(group);
  }
}

TEST_P(ProxiedGroups, whose_header_is_pending_end_with_their_server) {
  const std::size_t before = test::open_descriptors();
  for (const Placement placement :
       {Placement::kernel, Placement::round_robin, Placement::peer_address}) {
    for (const bool stops_group : {false, true}) {
      std::vector<TcpStream> silent;
      LoopGroup group(of(2));
      TcpServerGroup server = listen(
          group, {.placement = placement, .on_rejected = [](Stream&, Error) { ADD_FAILURE(); }});
      server.serve(source_and_index(group));
      run(test::connect_all(server.endpoint(), 4, silent));
      EXPECT_TRUE(eventually([&] { return server.connections() == 4; }));
      if (stops_group) group.stop();
      // The server is destroyed here, and then the group.
    }
  }
  EXPECT_EQ(test::open_descriptors(), before);
}

}  // namespace
}  // namespace tambour::proxied_groups_test
