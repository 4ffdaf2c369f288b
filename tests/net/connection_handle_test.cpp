// ConnectionHandle on one loop: operations of this thread and of others, after the end of the
// connection and of its loop.
#include <tambour/net/connection_handle.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/peer.h"
#include "support/streams.h"
#include "transports/every_transport.h"

namespace tambour::connection_handle_test {
namespace {

void in_another_thread(const std::function<void()>& call) { std::thread(call).join(); }

class Handles : public test::OnEveryBackend {
 protected:
  Connection& connect(ConnectionCallbacks callbacks = {}) {
    test::StreamEnds both = test::open_stream_ends(loop());
    peer = std::move(both.far);
    callbacks.on_close = [this](Connection& local, Error error) {
      EXPECT_FALSE(handle.is_open());
      EXPECT_EQ(handle.get(), nullptr);
      EXPECT_FALSE(local.handle().is_open());
      ends.push_back(error);
    };
    Connection& connection = Connection::start(
        std::move(both.near), std::make_shared<const ConnectionCallbacks>(std::move(callbacks)));
    handle = connection.handle();
    return connection;
  }
  std::string peer_reads() { return test::receive_now(peer); }
  bool run_until_end() {
    return run_until([this] { return !ends.empty(); });
  }

  Stream peer;
  ConnectionHandle handle;
  std::vector<Error> ends;
};

TAMBOUR_ON_EVERY_TRANSPORT(Handles);

TEST_P(Handles, an_operation_on_the_thread_of_the_loop_takes_effect_at_once) {
  Connection& connection = connect();
  EXPECT_TRUE(handle.is_open());
  EXPECT_EQ(handle.get(), &connection);
  EXPECT_TRUE(handle.send("a"));
  EXPECT_TRUE(handle.send(Buffer("b")));
  EXPECT_EQ(peer_reads(), "ab");
  handle.shutdown_write();
  EXPECT_FALSE(connection.send("x"));
  handle.close();
  EXPECT_FALSE(connection.is_open());
  EXPECT_FALSE(handle.is_open());
  EXPECT_EQ(handle.get(), nullptr);
  EXPECT_TRUE(run_until_end());
}

TEST_P(Handles, an_operation_of_another_thread_takes_effect_in_order) {
  Connection& connection = connect();
  std::string called;
  in_another_thread([&] {
    EXPECT_TRUE(handle.is_open());
    EXPECT_EQ(handle.get(), nullptr);
    EXPECT_TRUE(handle.send("a"));
    Buffer bytes("b");
    EXPECT_TRUE(handle.send(std::move(bytes)));
    EXPECT_TRUE(bytes.empty());  // NOLINT(bugprone-use-after-move): it is empty afterwards.
    EXPECT_TRUE(handle.post([&](Connection& local) {
      EXPECT_EQ(&local, &connection);
      called += "1";
      local.send("c");
    }));
    EXPECT_TRUE(handle.send("d"));
    EXPECT_TRUE(handle.post([&](Connection&) { called += "2"; }));
    handle.close_after_write();
  });
  EXPECT_EQ(peer_reads(), "");
  // This thread does not overtake the other: these bytes are queued behind the close.
  EXPECT_TRUE(handle.send("lost"));
  EXPECT_EQ(peer_reads(), "");
  run_iterations();
  EXPECT_EQ(peer_reads(), "abcd");
  EXPECT_EQ(called, "12");
  EXPECT_TRUE(ends.empty());
  peer.close();
  EXPECT_TRUE(run_until_end());
  EXPECT_EQ(ends.front(), Error());
}

TEST_P(Handles, half_close_and_close_may_come_from_another_thread) {
  Connection& connection = connect();
  in_another_thread([&] { handle.shutdown_write(); });
  run_iterations();
  EXPECT_TRUE(connection.is_open());
  EXPECT_FALSE(connection.send("x"));
  in_another_thread([&] { handle.close(); });
  EXPECT_TRUE(run_until_end());
}

TEST_P(Handles, post_never_invokes_the_task_inside_itself) {
  connect();
  bool called = false;
  EXPECT_TRUE(handle.post([&](Connection&) { called = true; }));
  EXPECT_FALSE(called);
  run_iterations();
  EXPECT_TRUE(called);
}

TEST_P(Handles, a_task_may_post_again_and_use_the_handle) {
  connect();
  int left = 3;
  std::function<void(Connection&)> again = [&](Connection&) {
    EXPECT_TRUE(handle.send("x"));
    if (--left > 0) {
      EXPECT_TRUE(handle.post(again));
    } else {
      handle.close();
    }
  };
  EXPECT_TRUE(handle.post(again));
  EXPECT_TRUE(run_until_end());
  EXPECT_EQ(left, 0);
  EXPECT_EQ(peer_reads(), "xxx");
}

TEST_P(Handles, nothing_happens_after_the_end) {
  Connection& connection = connect();
  const auto token = std::make_shared<int>();
  in_another_thread([&] {
    handle.close();
    // Queued, but destroyed without a call.
    EXPECT_TRUE(handle.post([token](Connection&) { ADD_FAILURE() << "the connection has ended"; }));
  });
  EXPECT_EQ(token.use_count(), 2);
  EXPECT_TRUE(run_until_end());
  run_iterations();
  EXPECT_EQ(token.use_count(), 1);
  static_cast<void>(connection);  // Destroyed.
  const auto refuse = [this] {
    EXPECT_FALSE(handle.is_open());
    EXPECT_EQ(handle.get(), nullptr);
    EXPECT_FALSE(handle.send("x"));
    Buffer bytes("x");
    EXPECT_FALSE(handle.send(std::move(bytes)));
    EXPECT_TRUE(bytes.empty());  // NOLINT(bugprone-use-after-move): it is empty afterwards.
    EXPECT_FALSE(handle.post([](Connection&) { ADD_FAILURE(); }));
    handle.shutdown_write();
    handle.close_after_write();
    handle.close();
  };
  refuse();
  in_another_thread(refuse);
  handle = ConnectionHandle();
  refuse();
  run_iterations();
}

TEST_P(Handles, may_be_used_after_the_loop_has_been_destroyed) {
  connect();
  const auto token = std::make_shared<int>();
  in_another_thread([&] { EXPECT_TRUE(handle.post([token](Connection&) { ADD_FAILURE(); })); });
  peer.close();
  destroy_loop();
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_FALSE(handle.is_open());
  EXPECT_EQ(handle.get(), nullptr);
  in_another_thread([&] { EXPECT_FALSE(handle.send("x")); });
  handle.close();
  EXPECT_TRUE(ends.empty());
}

TEST_P(Handles, an_exception_of_a_task_leaves_the_others_queued) {
  connect();
  int called = 0;
  in_another_thread([&] {
    EXPECT_TRUE(handle.post([](Connection&) { throw std::runtime_error("expected"); }));
    EXPECT_TRUE(handle.post([&](Connection&) { ++called; }));
    EXPECT_TRUE(handle.post([&](Connection&) { ++called; }));
  });
  EXPECT_THROW(run_iterations(), std::runtime_error);
  run_iterations();
  EXPECT_EQ(called, 2);
}

TEST_P(Handles, a_destroyed_task_may_use_the_handle) {
  connect();
  struct Sender {
    ConnectionHandle to;
    ~Sender() { EXPECT_FALSE(to.send("x")); }
  };
  handle.close();
  EXPECT_FALSE(handle.post([own_sender = std::make_unique<Sender>(handle)](Connection&) {}));
  EXPECT_TRUE(run_until_end());
  connect();
  EXPECT_TRUE(handle.post([local = std::make_unique<Sender>(handle)](Connection&) {}));
  ends.clear();
  handle.close();  // Queued behind the task.
  EXPECT_TRUE(handle.post([sender = std::make_unique<Sender>(handle)](Connection&) {}));
  EXPECT_TRUE(handle.is_open());
  destroy_loop();
}

TEST_P(Handles, of_one_connection_are_equal) {
  Connection& connection = connect();
  const ConnectionHandle first = handle;
  EXPECT_EQ(first, connection.handle());
  EXPECT_NE(first, ConnectionHandle());
  Stream kept = std::move(peer);
  connect();
  EXPECT_NE(first, handle);
  const std::unordered_set<ConnectionHandle> set{first, handle, connection.handle()};
  EXPECT_EQ(set.size(), 2U);
  const std::map<ConnectionHandle, int> map{{first, 1}, {handle, 2}, {first, 3}};
  EXPECT_EQ(map.size(), 2U);
}

TEST_P(Handles, an_accepted_connection_ends_with_its_server) {
  auto server = test::listen(loop());
  ASSERT_TRUE(server);
  server->serve(
      {.on_connection = [this](Connection& connection) { handle = connection.handle(); }});
  std::vector<TcpStream> streams;
  run(test::connect_all(server->endpoint(), 1, streams));
  ASSERT_TRUE(run_until([this] { return handle.is_open(); }));
  in_another_thread([&] { EXPECT_TRUE(handle.post([](Connection&) { ADD_FAILURE(); })); });
  {
    const auto destroyed = std::move(server);
  }
  EXPECT_FALSE(handle.is_open());
  EXPECT_FALSE(handle.send("x"));
  run_iterations();
}

}  // namespace
}  // namespace tambour::connection_handle_test
