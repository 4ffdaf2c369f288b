// Datagrams in tasks and with callbacks, on every backend.
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/move_to.h>
#include <tambour/udp/socket.h>

#include "support/network.h"
#include "support/on_every_backend.h"
#include "support/scale.h"
#include "udp/datagrams.h"

namespace tambour::udp_test {
namespace {

using namespace std::chrono_literals;
using test::bytes_of;

class Udp : public test::OnEveryBackend {
 public:
  using OnEveryBackend::loop;

  UdpSocket bind(const Endpoint& at = Endpoint::loopback_v4(0), const UdpOptions& options = {}) {
    auto socket = UdpSocket::bind(loop(), at, options);
    if (!socket) throw std::system_error(socket.error());
    return std::move(*socket);
  }
  /// Returns a socket that is connected to a port on which no socket receives.
  UdpSocket connect_to_unbound_port() {
    // On an address derived from the process id, so that other tests do not take the port in the
    // meantime.
    const int pid = ::getpid();
    const std::string own_text =
        "127.77." + std::to_string(pid / 250 % 250) + "." + std::to_string(1 + pid % 250);
    const Endpoint unbound = bind(Endpoint::parse(own_text, 0).value()).local_endpoint().value();
    UdpSocket socket = bind();
    EXPECT_TRUE(socket.connect(unbound));
    return socket;
  }
};

TAMBOUR_ON_EVERY_BACKEND(Udp);

Task<> echo(UdpSocket& socket, std::size_t capacity) {
  DatagramBatch batch(capacity, 2048);
  while (co_await socket.receive(batch)) {
    if (!co_await socket.send(batch)) co_return;
  }
}

/// Receives an echo of each datagram in `owed`. Returns ETIMEDOUT if nothing arrives for 5 s.
Task<Result<>> receive_echoes(UdpSocket& socket, Endpoint server, DatagramBatch& in,
                              std::set<std::string>& owed) {
  while (!owed.empty()) {
    const auto got = co_await timeout(5s, socket.receive(in));
    if (!got) co_return std::unexpected(got.error());
    EXPECT_TRUE(*got > 0 && *got == in.size());
    for (const Datagram datagram : in) {
      EXPECT_EQ(datagram.peer(), server);
      EXPECT_FALSE(datagram.is_truncated());
      EXPECT_EQ(owed.erase(std::string(datagram.text())), 1U) << datagram.text();
    }
  }
  co_return {};
}

/// Sends `count` datagrams, in batches that fit into the peer's receive buffer, and expects an echo
/// of each. Repeats a datagram only if the kernel has dropped packets in the meantime.
Task<> ask(UdpSocket& socket, Endpoint server, std::size_t count, std::size_t capacity) {
  DatagramBatch out(capacity, 2048);
  DatagramBatch in(capacity, 2048);
  std::set<std::string> owed;
  for (std::size_t next = 0; next < count;) {
    for (; owed.size() < capacity && next < count; ++next)
      owed.insert(std::to_string(next) + std::string(next % 300, 'x'));
    while (!owed.empty()) {
      const std::uint64_t dropped_before = test::packets_dropped();
      for (const std::string& text : owed) EXPECT_TRUE(out.add(bytes_of(text), server));
      EXPECT_TRUE(co_await socket.send(out));
      EXPECT_TRUE(out.empty());
      const auto received = co_await receive_echoes(socket, server, in, owed);
      if (received) continue;
      EXPECT_EQ(received.error(), system_error(ETIMEDOUT));
      EXPECT_GT(test::packets_dropped(), dropped_before)
          << owed.size() << " datagrams have no echo, although the kernel has dropped no packet";
      if (testing::Test::HasFailure()) co_return;
    }
  }
}

TEST_P(Udp, echoes_ten_thousand_in_batches_of_any_size) {
  for (const Endpoint& at : {Endpoint::loopback_v4(0), Endpoint::loopback_v6(0)}) {
    for (const std::size_t capacity : {1, 3, 64}) {
      const std::size_t count = capacity == 64 && at.family() == AF_INET ? 10'000 : 1000;
      UdpSocket server = bind(at);
      UdpSocket client = bind(at);
      TaskScope scope(loop());
      scope.spawn(echo(server, capacity));
      run(ask(client, server.local_endpoint().value(), test::scaled(count), capacity));
    }
  }
}

/// If the receive buffer is full, the kernel drops datagrams, so sending never has to wait.
TEST_P(Udp, a_task_that_only_sends_is_stopped_by_its_timeout) {
  const UdpSocket receiver = bind();
  UdpSocket sender = bind();
  run([](UdpSocket& socket, Endpoint to) -> Task<> {
    auto send_all_the_time = [](UdpSocket& udp_socket, Endpoint there) -> Task<> {
      while (co_await udp_socket.send_to(bytes_of("all the time"), there)) {
      }
    };
    EXPECT_EQ((co_await timeout(1ms, send_all_the_time(socket, to))).error(),
              system_error(ETIMEDOUT));
  }(sender, receiver.local_endpoint().value()));
}

TEST_P(Udp, an_empty_datagram_is_received) {
  UdpSocket server = bind();
  UdpSocket client = bind();
  run([](UdpSocket& from, UdpSocket& to) -> Task<> {
    const Endpoint at = to.local_endpoint().value();
    for (const std::size_t capacity : {1, 8}) {
      DatagramBatch batch(capacity, 100);
      EXPECT_TRUE(co_await from.send_to({}, at));
      EXPECT_EQ(co_await to.receive(batch), 1U);
      EXPECT_TRUE(batch.front().bytes().empty());
      EXPECT_EQ(batch.front().peer(), from.local_endpoint());
    }
    DatagramBatch batch(8, 100);
    for (const char* text : {"a", "", "", "b"}) EXPECT_TRUE(batch.add(bytes_of(text), at));
    EXPECT_TRUE(co_await from.send(batch));
    EXPECT_EQ(co_await to.receive(batch), 4U);
    std::string all;
    for (const Datagram datagram : batch) (all += datagram.text()) += '|';
    EXPECT_EQ(all, "a|||b|");
  }(client, server));
}

TEST_P(Udp, reports_truncated_datagrams) {
  UdpSocket server = bind();
  UdpSocket client = bind();
  run([](UdpSocket& from, UdpSocket& to) -> Task<> {
    const Endpoint at = to.local_endpoint().value();
    for (const std::size_t capacity : {1, 4}) {
      DatagramBatch batch(capacity, 10);
      EXPECT_TRUE(co_await from.send_to(bytes_of("0123456789"), at));
      EXPECT_EQ(co_await to.receive(batch), 1U);
      EXPECT_FALSE(batch.front().is_truncated());
      EXPECT_TRUE(co_await from.send_to(bytes_of("0123456789a"), at));
      EXPECT_EQ(co_await to.receive(batch), 1U);
      EXPECT_TRUE(batch.front().is_truncated());
      EXPECT_EQ(batch.front().text(), "0123456789");
    }
  }(client, server));
}

TEST_P(Udp, a_refusal_is_reported_and_the_socket_stays_usable) {
  UdpSocket socket = connect_to_unbound_port();
  run([](UdpSocket& client) -> Task<> {
    const Error refused = system_error(ECONNREFUSED);
    DatagramBatch batch(4, 100);
    EXPECT_TRUE(co_await client.send(bytes_of("x")));
    EXPECT_EQ((co_await client.receive(batch)).error(), refused);
    EXPECT_TRUE(co_await client.send(bytes_of("x")));
    EXPECT_EQ((co_await client.send(bytes_of("not sent"))).error(), refused);
    // The datagram of a batch that failed is still the first.
    EXPECT_TRUE(co_await client.send(bytes_of("x")));
    EXPECT_TRUE(batch.add(bytes_of("first")));
    EXPECT_TRUE(batch.add(bytes_of("second!")));
    EXPECT_EQ((co_await client.send(batch)).error(), refused);
    EXPECT_EQ(batch.size(), 2U);
    EXPECT_EQ(batch.front().text(), "first");
    // A socket receives on the port again.
    const Endpoint there = client.peer_endpoint().value();
    auto server = UdpSocket::bind(client.loop(), there);
    EXPECT_TRUE(server);
    EXPECT_TRUE(co_await client.send(batch));
    EXPECT_TRUE(co_await server->receive(batch));
    EXPECT_EQ(batch.front().text(), "first");
    EXPECT_TRUE(co_await server->send(batch));
    EXPECT_TRUE(co_await client.receive(batch));
  }(socket));
}

TEST_P(Udp, a_connected_socket_receives_only_from_its_peer) {
  UdpSocket near = bind();
  UdpSocket far = bind();
  UdpSocket unconnected = bind();
  const Endpoint at = near.local_endpoint().value();
  EXPECT_TRUE(near.connect(far.local_endpoint().value()));
  EXPECT_EQ(near.peer_endpoint(), far.local_endpoint());
  EXPECT_TRUE(unconnected.try_send_to(bytes_of("unconnected"), at));
  EXPECT_TRUE(far.try_send_to(bytes_of("peer"), at));
  run([](UdpSocket& socket, UdpSocket& other, Endpoint to) -> Task<> {
    DatagramBatch batch;
    EXPECT_EQ(co_await socket.receive(batch), 1U);
    EXPECT_EQ(batch.front().text(), "peer");
    EXPECT_TRUE(socket.disconnect());
    EXPECT_EQ(socket.local_endpoint(), to);
    EXPECT_EQ((co_await socket.send(bytes_of("x"))).error(), system_error(EDESTADDRREQ));
    EXPECT_TRUE(co_await other.send_to(bytes_of("unconnected"), to));
    EXPECT_EQ(co_await socket.receive(batch), 1U);
    EXPECT_EQ(batch.front().text(), "unconnected");
  }(near, unconnected, at));
}

TEST_P(Udp, sending_a_datagram_that_is_too_long_fails) {
  UdpSocket server = bind();
  UdpSocket client = bind(Endpoint::loopback_v4(0), {.send_buffer_bytes = 200'000});
  run([](UdpSocket& from, UdpSocket& to) -> Task<> {
    const Endpoint at = to.local_endpoint().value();
    const std::string longest(65'507, 'x');
    const std::string too_long(65'508, 'y');
    const Error error = system_error(EMSGSIZE);
    EXPECT_EQ((co_await from.send_to(bytes_of(too_long), at)).error(), error);
    DatagramBatch batch(4, DatagramBatch::bytes_each_max);
    EXPECT_TRUE(batch.add(bytes_of("before"), at));
    EXPECT_TRUE(batch.add(bytes_of(too_long), at));
    EXPECT_TRUE(batch.add(bytes_of(longest), at));
    EXPECT_EQ((co_await from.send(batch)).error(), error);
    EXPECT_EQ(batch.size(), 2U);
    EXPECT_EQ(batch.front().bytes().size(), too_long.size());
    batch.drop_front();
    EXPECT_TRUE(co_await from.send(batch));
    EXPECT_EQ(co_await to.receive(batch), 2U);
    EXPECT_EQ(batch.front().text(), "before");
    batch.drop_front();
    EXPECT_EQ(batch.front().text(), longest);
  }(client, server));
}

TEST_P(Udp, reports_why_an_operation_failed) {
  UdpSocket one = bind();
  EXPECT_EQ(UdpSocket::bind(loop(), one.local_endpoint().value()).error(),
            system_error(EADDRINUSE));
  const Endpoint local = Endpoint::unix_name("@x").value();
  const Error no_ip = system_error(EAFNOSUPPORT);
  EXPECT_EQ(UdpSocket::bind(loop(), local).error(), no_ip);
  EXPECT_EQ(one.connect(local).error(), no_ip);
  EXPECT_EQ(one.try_send_to({}, local).error(), no_ip);
  EXPECT_EQ(one.join(local).error(), no_ip);
  EXPECT_EQ(one.try_send({}).error(), system_error(EDESTADDRREQ));
  UdpSocket closed;
  DatagramBatch batch;
  run([](UdpSocket& socket, DatagramBatch& into) -> Task<> {
    const Error bad = system_error(EBADF);
    EXPECT_EQ((co_await socket.receive(into)).error(), bad);
    EXPECT_TRUE(into.add(bytes_of("x"), Endpoint::loopback_v4(1)));
    EXPECT_EQ((co_await socket.send(into)).error(), bad);
    EXPECT_EQ(into.size(), 1U);
    EXPECT_EQ((co_await socket.send_to({}, Endpoint::loopback_v4(1))).error(), bad);
  }(closed, batch));
  EXPECT_EQ(closed.try_send(batch).error(), system_error(EBADF));
  EXPECT_EQ(closed.serve({}).error(), system_error(EBADF));
  EXPECT_EQ(closed.connect(Endpoint::loopback_v4(1)).error(), system_error(EBADF));
  EXPECT_EQ(closed.join(Endpoint::loopback_v4(1)).error(), system_error(EBADF));
  closed.close();
}

TEST_P(Udp, several_sockets_share_a_port_if_all_request_it) {
  const UdpOptions shared{.reuse_port = true};
  UdpSocket one = bind(Endpoint::loopback_v4(0), shared);
  UdpSocket two = bind(one.local_endpoint().value(), shared);
  EXPECT_EQ(one.local_endpoint(), two.local_endpoint());
  UdpSocket six = bind(Endpoint::any_v6(0), {.v6_only = true});
  UdpSocket four = bind(Endpoint::any_v4(six.local_endpoint()->port()));
}

TEST_P(Udp, a_wait_fails_when_the_socket_is_closed_moved_or_stopped) {
  std::vector<Error> errors;
  auto reader = [](UdpSocket& socket, std::vector<Error>& results) -> Task<> {
    DatagramBatch batch(1, 10);
    const auto got = co_await socket.receive(batch);
    results.push_back(got ? Error() : got.error());
  };
  const Error cancelled = system_error(ECANCELED);
  UdpSocket socket = bind();
  TaskScope scope(loop());
  scope.spawn(reader(socket, errors));
  run_iterations();
  UdpSocket moved = std::move(socket);
  run_iterations();
  EXPECT_TRUE(errors.empty());
  moved.stop_receiving();
  EXPECT_TRUE(errors.empty()) << "completed inside the call";
  run_iterations();
  EXPECT_EQ(errors, std::vector<Error>{cancelled});
  scope.spawn(reader(moved, errors));
  moved.close();
  run_iterations();
  EXPECT_EQ(errors, (std::vector<Error>{cancelled, cancelled}));
  moved = bind();
  scope.spawn(reader(moved, errors));
  run_iterations();
  scope.request_stop();
  run_iterations();
  EXPECT_EQ(errors, (std::vector<Error>{cancelled, cancelled, cancelled}));
  EXPECT_TRUE(moved.is_open());
  // A destroyed task is not resumed.
  {
    TaskScope short_lived(loop());
    short_lived.spawn(reader(moved, errors));
    run_iterations();
  }
  run_iterations();
  EXPECT_EQ(errors.size(), 3U);
}

TEST_P(Udp, serves_by_callbacks) {
  UdpSocket server = bind();
  std::size_t served = 0;
  ASSERT_TRUE(server.serve({.on_datagrams = [&](UdpSocket& socket, DatagramBatch& batch) {
    served += batch.size();
    EXPECT_TRUE(socket.try_send(batch));
    EXPECT_TRUE(batch.empty());
  }}));
  UdpSocket client = bind();
  run(ask(client, server.local_endpoint().value(), 1000, 16));
  EXPECT_EQ(served, 1000U);
  // Receiving continues when the socket is moved.
  UdpSocket moved = std::move(server);
  run(ask(client, moved.local_endpoint().value(), 10, 1));
  EXPECT_EQ(served, 1010U);
  moved.stop_receiving();
  EXPECT_TRUE(client.try_send_to(bytes_of("x"), moved.local_endpoint().value()));
  run_iterations();
  EXPECT_EQ(served, 1010U);
  ASSERT_TRUE(moved.serve({.on_datagrams = [&](UdpSocket&, DatagramBatch&) { served = 0; }}, 1));
  EXPECT_TRUE(run_until([&] { return served == 0; }));
  moved.close();
  loop().run();  // Returns: nothing is pending.
}

TEST_P(Udp, a_callback_may_close_move_and_destroy) {
  const auto bytes = bytes_of("x");
  for (int way = 0; way < 5; ++way) {
    auto socket = std::make_unique<UdpSocket>(bind());
    const Endpoint at = socket->local_endpoint().value();
    UdpSocket elsewhere;
    int calls = 0;
    ASSERT_TRUE(socket->serve({.on_datagrams = [&, alive = std::make_shared<int>(1)](
                                                   UdpSocket& self, DatagramBatch& batch) {
      ++calls;
      if (way == 0) self.close();
      if (way == 1) socket.reset();
      if (way == 2) elsewhere = std::move(self);
      if (way == 3) self.stop_receiving();
      if (way == 4) self = bind();
      EXPECT_EQ(*alive, 1) << "the callback was destroyed while it ran";
      EXPECT_EQ(batch.front().text(), "x");
    }}));
    UdpSocket client = bind();
    EXPECT_TRUE(client.try_send_to(bytes, at));
    EXPECT_TRUE(run_until([&] { return calls == 1; }));
    static_cast<void>(client.try_send_to(bytes, at));
    run_iterations();
    EXPECT_EQ(calls, way == 2 ? 2 : 1) << way;
  }
}

TEST_P(Udp, a_socket_stopped_in_the_same_iteration_receives_nothing) {
  UdpSocket one = bind();
  UdpSocket two = bind();
  std::size_t served = 0;
  const auto stop_both = [&](UdpSocket&, DatagramBatch& batch) {
    served += batch.size();
    one.stop_receiving();
    two.stop_receiving();
  };
  std::size_t received = 0;
  UdpSocket client = bind();
  for (UdpSocket* socket : {&one, &two}) {
    ASSERT_TRUE(socket->serve({.on_datagrams = stop_both}));
    EXPECT_TRUE(client.try_send_to(bytes_of("x"), socket->local_endpoint().value()));
  }
  EXPECT_TRUE(run_until([&] { return served == 1; }));
  EXPECT_EQ(loop().stats().references, 0U) << "the loop is kept";
  TaskScope scope(loop());
  for (UdpSocket* socket : {&one, &two}) {
    scope.spawn([](UdpSocket& from, std::size_t& count) -> Task<> {
      DatagramBatch batch;
      if (const auto got = co_await from.receive(batch)) count += *got;
    }(*socket, received));
  }
  EXPECT_TRUE(run_until([&] { return received == 1; }));
  run_iterations();
  EXPECT_EQ(received + served, 2U);
}

TEST_P(Udp, an_exception_of_a_callback_leaves_run_and_the_socket_keeps_serving) {
  UdpSocket server = bind();
  int calls = 0;
  ASSERT_TRUE(server.serve({.on_datagrams = [&](UdpSocket&, DatagramBatch&) {
    ++calls;
    throw std::runtime_error("on_datagrams");
  }}));
  UdpSocket client = bind();
  for (int round = 1; round <= 2; ++round) {
    EXPECT_TRUE(client.try_send_to(bytes_of("x"), server.local_endpoint().value()));
    EXPECT_THROW(loop().run(), std::runtime_error);
    EXPECT_EQ(calls, round);
  }
}

TEST_P(Udp, errors_are_reported_to_callbacks_and_serving_continues) {
  UdpSocket client = connect_to_unbound_port();
  std::vector<Error> errors;
  std::size_t came = 0;
  ASSERT_TRUE(
      client.serve({.on_datagrams = [&](UdpSocket&, DatagramBatch& batch) { came += batch.size(); },
                    .on_error = [&](UdpSocket&, Error error) { errors.push_back(error); }}));
  for (std::size_t round = 1; round <= 2; ++round) {
    EXPECT_TRUE(client.try_send(bytes_of("x")));
    EXPECT_TRUE(run_until([&] { return errors.size() == round; }));
    EXPECT_EQ(errors.back(), system_error(ECONNREFUSED));
  }
  UdpSocket server = bind(client.peer_endpoint().value());
  EXPECT_TRUE(server.try_send_to(bytes_of("x"), client.local_endpoint().value()));
  EXPECT_TRUE(run_until([&] { return came == 1; }));
}

TEST_P(Udp, destroying_the_loop_ends_all_waits) {
  auto other = std::make_unique<EventLoop>(options());
  auto served = UdpSocket::bind(*other, Endpoint::loopback_v4(0));
  ASSERT_TRUE(served);
  ASSERT_TRUE(served->serve({}));
  spawn(*other, [](UdpSocket socket) -> Task<> {
    DatagramBatch batch;
    static_cast<void>(co_await socket.receive(batch));
    ADD_FAILURE() << "nothing was sent";
  }(std::move(*UdpSocket::bind(*other, Endpoint::loopback_v4(0)))));
  other->run_ready();
  served->stop_receiving();  // Takes effect in an iteration that does not happen.
  ASSERT_TRUE(served->serve({}));
  other.reset();
  EXPECT_TRUE(served->is_open());
}

TEST_P(Udp, a_socket_moved_to_another_loop_is_no_longer_served) {
  EventLoop other(options());
  UdpSocket server = bind();
  const auto kept = std::make_shared<int>();
  ASSERT_TRUE(server.serve({.on_datagrams = [kept](UdpSocket&, DatagramBatch&) { FAIL(); }}));
  EXPECT_EQ(kept.use_count(), 2);
  bool arrived = false;
  move_to(other, std::move(server), [&](UdpSocket socket) { arrived = socket.is_open(); });
  run_iterations();
  EXPECT_EQ(kept.use_count(), 1);
  other.run_ready();
  EXPECT_TRUE(arrived);
}

TEST_P(Udp, a_socket_is_used_on_the_loop_that_it_was_moved_to) {
  EventLoop other(options());
  UdpSocket server = bind(Endpoint::loopback_v4(0), {.gro = true});
  const Endpoint at = server.local_endpoint().value();
  UdpSocket arrived;
  move_to(other, std::move(server), [&](UdpSocket socket) { arrived = std::move(socket); });
  EXPECT_FALSE(server.is_open());  // NOLINT(bugprone-use-after-move): moving closes it.
  other.run_ready();
  ASSERT_TRUE(arrived.is_open());
  EXPECT_EQ(&arrived.loop(), &other);
  // The socket knows its options: with UDP_GRO the batch is too small.
  DatagramBatch small(1, 2048);
  spawn(other, [](UdpSocket& socket, DatagramBatch& batch) -> Task<> {
    EXPECT_EQ((co_await socket.receive(batch)).error(), system_error(EINVAL));
    DatagramBatch large(1, DatagramBatch::bytes_each_max);
    EXPECT_EQ(co_await socket.receive(large), 1U);
  }(arrived, small));
  EXPECT_TRUE(bind().try_send_to(bytes_of("x"), at));
  other.run();
}

}  // namespace
}  // namespace tambour::udp_test
