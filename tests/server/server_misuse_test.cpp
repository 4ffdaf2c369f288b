// Misuse of servers and groups aborts with a message that names the function, the server and the
// fix.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/streams.h"
#include "support/temporary_folder.h"

namespace tambour::server_misuse_test {
namespace {

using namespace std::chrono_literals;

class ServerMisuse : public testing::Test {
 protected:
  // Threadsafe style: the dying child is created by fork and exec, so it has no other threads.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static TcpServer listen(EventLoop& loop) {
    return TcpServer::listen(loop, Endpoint::loopback_v4(0)).value();
  }
  static TcpServerGroup listen(LoopGroup& group) {
    return TcpServerGroup::listen(group, Endpoint::loopback_v4(0)).value();
  }
  /// Runs `loop` until the abort, at most one minute.
  static void connect_and_run(EventLoop& loop, const Endpoint& to) {
    spawn(loop, [](Endpoint server) -> Task<> {
      auto stream = co_await TcpStream::connect(server);
      Buffer buffer;
      if (stream) static_cast<void>(co_await stream->read(buffer));
    }(to));
    Timer limit(loop, [&loop] { loop.stop(); });
    limit.start(60s);
    loop.run();
  }
};

TEST_F(ServerMisuse, serving_twice) {
  EventLoop loop;
  TcpServer server = listen(loop);
  server.serve(test::echo<TcpStream>);
  constexpr const char* message =
      "tambour: TcpServer::serve\\(\\) was called twice on the server listening at "
      "127.0.0.1:[0-9]+; create one server";
  EXPECT_DEATH(server.serve(test::echo<TcpStream>), message);
  EXPECT_DEATH(server.serve(ConnectionCallbacks{}), message);
}

TEST_F(ServerMisuse, serving_twice_by_a_group) {
  EXPECT_DEATH(
      {
        LoopGroup group({.threads = 1});
        TcpServerGroup server = listen(group);
        server.serve(ConnectionCallbacks{});
        server.serve(test::echo<TcpStream>);
      },
      "tambour: TcpServerGroup::serve\\(\\) was called twice on the server listening at "
      "127.0.0.1:");
}

TEST_F(ServerMisuse, accepting_from_a_server_that_serves) {
  EXPECT_DEATH(
      {
        EventLoop loop;
        TcpServer server = listen(loop);
        server.serve(test::echo<TcpStream>);
        spawn(loop, [](TcpServer& local) -> Task<> {
          static_cast<void>(co_await local.accept());
        }(server));
      },
      "tambour: TcpServer::accept\\(\\) was called after serve\\(\\) on the server listening at "
      "127");
}

TEST_F(ServerMisuse, using_a_server_after_its_loop) {
  std::optional<EventLoop> loop(std::in_place);
  // Its destructor would abort, so the server is never destroyed. Static, for LeakSanitizer.
  static TcpServer* server;
  server = new TcpServer(listen(*loop));
  loop.reset();
  EXPECT_DEATH(
      server->serve(ConnectionCallbacks{}),
      "tambour: TcpServer::serve\\(\\) was called after its event loop was destroyed on the "
      "server listening at 127.0.0.1:[0-9]+; destroy the server before its EventLoop");
  EXPECT_DEATH(server->stop(), "tambour: TcpServer::stop\\(\\) was called after its event loop");
  EXPECT_DEATH(static_cast<void>(server->shut_down(1s)),
               "tambour: TcpServer::shut_down\\(\\) was called after its event loop");
  EXPECT_DEATH(delete server,
               "tambour: TcpServer::~TcpServer\\(\\) was called after its event loop");
}

TEST_F(ServerMisuse, using_a_unix_server_after_its_loop) {
  const test::TemporaryFolder folder;
  EXPECT_DEATH(
      {
        std::optional<EventLoop> loop(std::in_place);
        auto server =
            UnixServer::listen(*loop, Endpoint::unix_name(folder.path() + "/socket").value());
        loop.reset();
        server->stop();
      },
      "tambour: UnixServer::stop\\(\\) was called after its event loop was destroyed on the server "
      "listening at unix:/.*/socket");
}

TEST_F(ServerMisuse, using_a_moved_from_server) {
  EventLoop loop;
  TcpServer server = listen(loop);
  const TcpServer moved = std::move(server);
  EXPECT_DEATH(server.stop(),  // NOLINT: this is what is tested.
               "tambour: StreamServer::stop\\(\\) was called on a server that was moved from");
}

TEST_F(ServerMisuse, const_functions_of_a_moved_from_server) {
  EventLoop loop;
  TcpServer server = listen(loop);
  const TcpServer moved = std::move(server);
  const auto message = [](const std::string& function) {
    return "tambour: StreamServer::" + function + "\\(\\) was called on a server that was moved";
  };
  // NOLINTBEGIN(bugprone-use-after-move): this is what is tested.
  EXPECT_DEATH(static_cast<void>(server.endpoint()), message("endpoint"));
  EXPECT_DEATH(static_cast<void>(server.fd()), message("descriptor"));
  EXPECT_DEATH(static_cast<void>(server.connections()), message("connections"));
  EXPECT_DEATH(static_cast<void>(server.accepted()), message("accepted"));
  // NOLINTEND(bugprone-use-after-move)
}

TEST_F(ServerMisuse, const_functions_of_a_moved_from_group_server) {
  const auto read = [](void (*use)(const TcpServerGroup&)) {
    LoopGroup group({.threads = 1});
    TcpServerGroup server = listen(group);
    const TcpServerGroup moved = std::move(server);
    use(server);  // NOLINT(bugprone-use-after-move): this is what is tested.
  };
  constexpr const char* message =
      "tambour: StreamServerGroup::(endpoint|connections|accepted)\\(\\) was called on a server "
      "that was moved from";
  using Group = const TcpServerGroup&;
  EXPECT_DEATH(read([](Group server) { static_cast<void>(server.endpoint()); }), message);
  EXPECT_DEATH(read([](Group server) { static_cast<void>(server.connections()); }), message);
  EXPECT_DEATH(read([](Group server) { static_cast<void>(server.accepted()); }), message);
}

TEST_F(ServerMisuse, using_a_group_server_after_its_group) {
  constexpr const char* after =
      "tambour: TcpServerGroup::(stop|serve|~TcpServerGroup)\\(\\) was called after its group was "
      "destroyed on the server listening at 127.0.0.1:[0-9]+; destroy the server before its "
      "LoopGroup";
  const auto misuse = [](void (*use)(TcpServerGroup*)) {
    std::optional<LoopGroup> group(std::in_place, LoopGroupOptions{.threads = 1});
    auto* server = new TcpServerGroup(listen(*group));
    group.reset();
    use(server);
  };
  EXPECT_DEATH(misuse([](TcpServerGroup* server) { server->stop(); }), after);
  EXPECT_DEATH(misuse([](TcpServerGroup* server) { server->serve(ConnectionCallbacks{}); }), after);
  EXPECT_DEATH(misuse([](TcpServerGroup* server) { delete server; }), after);
}

TEST_F(ServerMisuse, a_group_server_may_be_destroyed_after_the_group_was_joined) {
  LoopGroup group({.threads = 2});
  TcpServerGroup server = listen(group);
  server.serve(ConnectionCallbacks{});
  group.stop();
  group.join();
  server.stop();
}

TEST_F(ServerMisuse, using_a_loop_of_a_joined_group) {
  const auto misuse = [](void (*use)(LoopGroup&)) {
    LoopGroup group({.threads = 1});
    group.stop();
    group.join();
    use(group);
  };
  EXPECT_DEATH(misuse([](LoopGroup& group) { static_cast<void>(group[0]); }),
               "tambour: LoopGroup::operator\\[\\]\\(\\) was called after join\\(\\)");
  EXPECT_DEATH(misuse([](LoopGroup& group) { static_cast<void>(group.next()); }),
               "tambour: LoopGroup::next\\(\\) was called after join\\(\\)");
  EXPECT_DEATH(misuse([](LoopGroup& group) { static_cast<void>(group.least_loaded()); }),
               "tambour: LoopGroup::least_loaded\\(\\) was called after join\\(\\)");
  EXPECT_DEATH(
      {
        LoopGroup group({.threads = 2});
        static_cast<void>(group[2]);
      },
      "tambour: LoopGroup::operator\\[\\] was called with index 2, but the group has 2 loops");
}

TEST_F(ServerMisuse, serving_a_connection_without_callbacks) {
  EventLoop loop;
  auto ends = UnixStream::pair(loop);
  ASSERT_TRUE(ends);
  EXPECT_DEATH(Connection::start(std::move(ends->first), nullptr),
               "tambour: Connection::start\\(\\) was called with null callbacks for the stream of "
               "descriptor [0-9]+; pass std::make_shared");
}

TEST_F(ServerMisuse, shutting_down_by_an_own_handler) {
  constexpr const char* message =
      "tambour: TcpServer::shut_down\\(\\) was called by one of its own handlers, for which it "
      "waits, on the server listening at 127.0.0.1:[0-9]+; call stop\\(\\), or spawn";
  EXPECT_DEATH(
      {
        EventLoop loop;
        TcpServer server = listen(loop);
        server.serve([&](TcpStream) -> Task<> { co_await server.shut_down(1h); });
        connect_and_run(loop, server.endpoint());
      },
      message);
  // Also if a combinator runs it in a task of its own.
  EXPECT_DEATH(
      {
        EventLoop loop;
        TcpServer server = listen(loop);
        server.serve([&](TcpStream) -> Task<> {
          co_await when_all(server.shut_down(1h), [](TcpServer&) -> Task<> { co_return; }(server));
        });
        connect_and_run(loop, server.endpoint());
      },
      message);
}

TEST_F(ServerMisuse, shutting_down_a_group_by_an_own_handler) {
  EXPECT_DEATH(
      {
        LoopGroup group({.threads = 2});
        TcpServerGroup server = listen(group);
        server.serve([&](TcpStream) -> Task<> { co_await server.shut_down(1h); });
        EventLoop loop;
        connect_and_run(loop, server.endpoint());
      },
      "tambour: TcpServerGroup::shut_down\\(\\) was called by one of its own handlers");
}

TEST_F(ServerMisuse, the_shutdown_token_of_a_loop_outside_the_group) {
  EXPECT_DEATH(
      {
        LoopGroup group({.threads = 1});
        TcpServerGroup server = listen(group);
        const EventLoop loop;
        static_cast<void>(server.shutdown_token(loop));
      },
      "tambour: TcpServerGroup::shutdown_token\\(\\) was called with a loop that is not one of its "
      "group on the server listening at 127.0.0.1:[0-9]+; pass the loop of the stream");
}

TEST_F(ServerMisuse, running_the_loop_while_listing_connections) {
  EXPECT_DEATH(
      {
        EventLoop loop;
        TcpServer server = listen(loop);
        server.serve({.on_message = [&](Connection&, Buffer&) {
          server.for_each_connection([&](Connection& connection) {
            connection.close();
            loop.run_once();
          });
        }});
        spawn(loop, [](Endpoint to) -> Task<> {
          auto idle = co_await TcpStream::connect(to);
          auto stream = co_await TcpStream::connect(to);
          if (stream) static_cast<void>(co_await stream->write("x"));
          Buffer buffer;
          static_cast<void>(co_await stream->read(buffer));
        }(server.endpoint()));
        Timer limit(loop, [&loop] { loop.stop(); });
        limit.start(60s);
        loop.run();
      },
      "tambour: the callable of for_each_connection\\(\\) ran the event loop, which has removed a "
      "connection of the server listening at 127.0.0.1:[0-9]+; post\\(\\)");
}

TEST_F(ServerMisuse, a_handler_may_spawn_the_shutdown) {
  EventLoop loop;
  TcpServer server = listen(loop);
  server.serve([&](TcpStream) -> Task<> {
    spawn(loop, [](TcpServer& local, EventLoop& its_loop) -> Task<> {
      co_await local.shut_down(0s);
      its_loop.stop();
    }(server, loop));
    co_return;
  });
  connect_and_run(loop, server.endpoint());
  EXPECT_EQ(server.connections(), 0U);
  EXPECT_EQ(server.fd(), -1);
}

}  // namespace
}  // namespace tambour::server_misuse_test
