// Datagrams that are lost, duplicated, delayed or refused. A client that retries gets every answer.
#include <chrono>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/scale.h"

namespace tambour::udp_test {
namespace {

using namespace std::chrono_literals;

Endpoint endpoint_of(sim::Host& host, std::uint16_t port) {
  const sockaddr_in at = host.endpoint(port);
  return Endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof(at)).value();
}

Result<UdpSocket> bind(EventLoop& loop, const Endpoint& at) {
  auto socket = UdpSocket::bind(loop, at);
  // Retry while an injected fault (no free descriptor) makes binding fail.
  for (int i = 0; !socket && i < 1000; ++i) socket = UdpSocket::bind(loop, at);
  return socket;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// Sends the unanswered datagrams in batches, and removes each one that is echoed, until none is
/// left.
class Client {
 public:
  Client(sim::Simulation& simulation, EventLoop& loop, Endpoint server)
      : simulation_(simulation), server_(server), scope_(loop) {
    for (std::size_t i = 0; i < 40; ++i)
      owed_.insert(std::to_string(i) + std::string(simulation.random(100), 'x'));
    owed_.insert("");
    asked_ = owed_;
  }
  void start(UdpSocket& socket) {
    scope_.spawn(receive(socket));
    scope_.spawn(send(socket));
  }
  void stop() { scope_.request_stop(); }
  [[nodiscard]] bool has_ended() const { return scope_.empty(); }
  [[nodiscard]] std::size_t owed() const { return owed_.size(); }

 private:
  Task<> receive(UdpSocket& socket) {
    DatagramBatch batch(1 + simulation_.random(8), 200);
    while (!owed_.empty()) {
      const auto got = co_await socket.receive(batch);
      if (!got && got.error() == system_error(ECANCELED)) co_return;
      if (!got) continue;
      if (*got == 0 || *got != batch.size()) simulation_.fail("received none");
      for (const Datagram datagram : batch) {
        if (datagram.peer() != server_) simulation_.fail("from an unknown address");
        if (!asked_.contains(std::string(datagram.text()))) simulation_.fail("was never asked");
        owed_.erase(std::string(datagram.text()));
      }
    }
    simulation_.stop();
  }

  Task<> send(UdpSocket& socket) {
    DatagramBatch batch(1 + simulation_.random(16), 200);
    while (!owed_.empty()) {
      for (const std::string& text : owed_) {
        if (!batch.add(bytes_of(text), server_)) break;
      }
      while (!batch.empty()) {
        const auto sent = co_await socket.send(batch);
        if (!sent && sent.error() == system_error(ECANCELED)) co_return;
        if (sent ? !batch.empty() : batch.empty()) simulation_.fail("sent, or not?");
        if (!sent) batch.drop_front();
      }
      if (!co_await sleep_for(1s)) co_return;
    }
  }

  sim::Simulation& simulation_;
  Endpoint server_;
  std::set<std::string> owed_;
  std::set<std::string> asked_;
  TaskScope scope_;
};

void scenario(sim::Simulation& simulation) {
  sim::Host& near = simulation.add_host("near");
  sim::Host& far = simulation.add_host("far");
  EventLoop near_loop(near.loop_options());
  EventLoop far_loop(far.loop_options());
  const Endpoint at = endpoint_of(near, 7000);
  auto server = bind(near_loop, at);
  auto socket = bind(far_loop, Endpoint::any_v4(0));
  if (!server || !socket) return simulation.fail("no socket");
  const auto echo = [](UdpSocket& self, DatagramBatch& batch) {
    // Datagrams that do not fit the send buffer are dropped.
    static_cast<void>(self.try_send(batch));
  };
  if (!server->serve({.on_datagrams = echo}, 1 + simulation.random(8), 200))
    return simulation.fail("does not serve");
  if (simulation.random(2) == 0 && !socket->connect(at)) return simulation.fail("not connected");
  Client client(simulation, far_loop, at);
  client.start(*socket);
  // The server is closed and reopened; meanwhile its datagrams are refused.
  simulation.after(3s, [&] { server->close(); });
  simulation.after(6s, [&] {
    server = bind(near_loop, at);
    if (!server || !server->serve({.on_datagrams = echo})) simulation.fail("no server again");
  });
  simulation.after(1h, [&simulation] { simulation.options() = sim::Options(); });
  if (simulation.run(24h) != sim::End::stopped)
    return simulation.fail(std::to_string(client.owed()) + " are still owed");
  client.stop();
  server->close();
  simulation.run_for(1h);
  if (!client.has_ended()) simulation.fail("the client still waits");
}

TEST(SimulatedUdp, a_client_that_retries_gets_each_answer_with_a_thousand_seeds) {
  const auto failure = sim::simulate({.first = 1, .count = test::scaled(1000)}, &scenario);
  EXPECT_FALSE(failure) << failure->report();
}

TEST(SimulatedUdp, calls_with_many_messages_end_at_the_first_failure) {
  sim::Simulation simulation(1);
  sim::Host& host = simulation.add_host("host");
  EventLoop loop(host.loop_options());
  auto server = UdpSocket::bind(loop, Endpoint::loopback_v4(0));
  auto client = UdpSocket::bind(loop, Endpoint::loopback_v4(0));
  ASSERT_TRUE(server && client);
  DatagramBatch batch(8, 100);
  for (const char* text : {"a", "b", "c"})
    ASSERT_TRUE(batch.add(bytes_of(text), server->local_endpoint().value()));
  // sendmmsg(2) drops the error, and the call is repeated from the datagram that failed.
  host.fail_next(sim::SystemCall::send, ENOBUFS, 1, 1);
  EXPECT_TRUE(client->try_send(batch));
  host.fail_next(sim::SystemCall::send, ENOBUFS, 2, 1);
  for (const char* text : {"d", "e"})
    ASSERT_TRUE(batch.add(bytes_of(text), server->local_endpoint().value()));
  EXPECT_EQ(client->try_send(batch).error(), system_error(ENOBUFS));
  EXPECT_EQ(batch.size(), 1U);
  EXPECT_EQ(batch.front().text(), "e");
  // recvmmsg(2) keeps the error for the next call.
  host.fail_next(sim::SystemCall::recv, ENOMEM, 1, 2);
  std::string log;
  ASSERT_TRUE(server->serve(
      {.on_datagrams =
           [&](UdpSocket&, DatagramBatch& came) {
             for (const Datagram datagram : came) log += datagram.text();
           },
       .on_error = [&](UdpSocket&, Error error) { log += '(' + error.message() + ')'; }}));
  simulation.run_for(1s);
  EXPECT_EQ(log, "ab(" + system_error(ENOMEM).message() + ")cd");
}

}  // namespace
}  // namespace tambour::udp_test
