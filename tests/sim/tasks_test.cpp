// A server and a client written with tasks, in a thousand simulations with faults.
#include <chrono>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/scale.h"

namespace tambour::tasks_test {
namespace {

using namespace std::chrono_literals;

Task<> echo(TcpStream peer) {
  Buffer buffer;
  while (const auto got = co_await peer.read(buffer)) {
    if (*got == 0 || !co_await peer.write(buffer)) co_return;
  }
}

/// Connects, sends a message and reads it back. Injected faults may fail any step, but the data
/// received must match.
Task<Result<>> exchange(sim::Simulation& simulation, Endpoint server, const std::string& message) {
  auto stream = co_await TcpStream::connect(server);
  if (!stream) co_return std::unexpected(stream.error());
  TaskScope scope(stream->loop(), (co_await this_task).stop);
  scope.spawn([](TcpStream& to, const std::string& text) -> Task<> {
    static_cast<void>(co_await to.write(text));
  }(*stream, message));
  Buffer back;
  Result<> outcome;
  while (back.size() < message.size()) {
    const auto got = co_await stream->read(back);
    if (!got) outcome = std::unexpected(got.error());
    if (got && *got == 0) outcome = std::unexpected(system_error(ECONNRESET));
    if (!outcome) break;
    if (!message.starts_with(back.coalesce())) simulation.fail("something else came back");
  }
  scope.request_stop();
  co_await scope.join();
  co_return outcome;
}

Task<> client(sim::Simulation& simulation, Endpoint server, int& done) {
  std::string message;
  for (int i = 0; i < 10; ++i) {
    message.resize(simulation.random(i % 2 == 0 ? 100 : 100'000) + 1);
    for (char& byte : message) byte = char(simulation.random(256));
    for (Duration pause = 10ms;; pause *= 2) {
      if (co_await timeout(10min, exchange(simulation, server, message))) break;
      co_await sleep_for(pause);
    }
    ++done;
  }
}

/// The endpoint of the host's server.
Endpoint endpoint_of(sim::Host& host) {
  const sockaddr_in at = host.endpoint(7000);
  return Endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof(at)).value();
}

void scenario(sim::Simulation& simulation) {
  sim::Host& near = simulation.add_host("near");
  sim::Host& far = simulation.add_host("far");
  EventLoop near_loop(near.loop_options());
  EventLoop far_loop(far.loop_options());
  const Endpoint endpoint = endpoint_of(near);
  auto server = TcpServer::listen(near_loop, endpoint);
  // Retry while an injected fault (no free descriptor) makes listening fail.
  for (int i = 0; !server && i < 1000; ++i) server = TcpServer::listen(near_loop, endpoint);
  if (!server) return simulation.fail("no server: " + server.error().message());
  server->serve(echo);
  int done = 0;
  TaskScope scope(far_loop);
  scope.spawn([](sim::Simulation& sim, Endpoint to, int& count) -> Task<> {
    co_await client(sim, to, count);
    sim.stop();
  }(simulation, endpoint, done));

  for (int i = 0; i < 3; ++i) {
    const Duration begin = std::chrono::milliseconds(simulation.random(2000));
    simulation.after(begin, [&simulation, &near, &far] { simulation.partition(near, far); });
    simulation.after(begin + std::chrono::milliseconds(simulation.random(100'000)),
                     [&simulation] { simulation.heal(); });
  }
  // Simulations with many faults reset large transfers repeatedly, so the faults end after a while.
  simulation.after(1h, [&simulation] { simulation.options() = sim::Options(); });
  if (simulation.run(24h * 365) != sim::End::stopped)
    simulation.fail("after " + std::to_string(done) + " messages nothing happens any more");
  scope.request_stop();
  // No connection is left on the server, however the peer ended it.
  simulation.run_for(24h);
  if (server->connections() != 0)
    simulation.fail(std::to_string(server->connections()) + " streams are left");
}

/// A server that moves its connections to the other loop of its host after each message.
void wandering_scenario(sim::Simulation& simulation) {
  sim::Host& near = simulation.add_host("near");
  sim::Host& far = simulation.add_host("far");
  EventLoop one(near.loop_options());
  EventLoop other(near.loop_options());
  EventLoop far_loop(far.loop_options());
  const Endpoint endpoint = endpoint_of(near);
  auto server = TcpServer::listen(one, endpoint);
  if (!server) return simulation.fail("no server: " + server.error().message());
  int open = 0;
  int moves = 0;
  server->serve({.on_connection = [&open](Connection&) { ++open; },
                 .on_message =
                     [&](Connection& connection, Buffer& bytes) {
                       // Part of the data is sent here; what the peer does not accept yet is sent
                       // from the other loop.
                       connection.send(std::move(bytes));
                       connection.move_to(&connection.loop() == &one ? other : one);
                     },
                 .on_close = [&open](Connection&, Error) { --open; },
                 .on_move = [&moves](Connection&) { ++moves; }});
  int done = 0;
  TaskScope scope(far_loop);
  scope.spawn([](sim::Simulation& sim, Endpoint to, int& count) -> Task<> {
    co_await client(sim, to, count);
    sim.stop();
  }(simulation, endpoint, done));
  simulation.after(1h, [&simulation] { simulation.options() = sim::Options(); });
  if (simulation.run(24h * 365) != sim::End::stopped)
    simulation.fail("after " + std::to_string(done) + " messages nothing happens any more");
  if (moves < done) simulation.fail("only " + std::to_string(moves) + " moves");
  scope.request_stop();
  simulation.run_for(24h);
  if (open != 0) simulation.fail(std::to_string(open) + " connections are left");
}

TEST(SimulatedTasks, connections_move_between_loops_under_random_faults) {
  const auto wander = [](std::uint64_t seed) {
    sim::Options options = sim::Options::rough(seed);
    options.no_descriptors = options.no_memory = 0;
    sim::Simulation simulation(seed, options);
    wandering_scenario(simulation);
    EXPECT_EQ(simulation.failure(), "") << "seed " << seed;
    return simulation.trace();
  };
  for (std::uint64_t seed = 1; seed <= 30 && !HasFailure(); ++seed) wander(seed);
  EXPECT_EQ(wander(1), wander(1));
}

TEST(SimulatedTasks, a_server_and_a_client_survive_a_thousand_seeds) {
  const auto failure = sim::simulate({.first = 1, .count = test::scaled(1000)}, &scenario);
  EXPECT_FALSE(failure) << failure->report();
}

}  // namespace
}  // namespace tambour::tasks_test
