// A server with tasks, UDP and a file runs unchanged in a simulation: the options of the loop are
// the only difference. Two virtual hosts, one thread, no real network and no real disk.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

#include <tambour/tambour.h>

using namespace std::chrono_literals;
using namespace tambour;

/// Stores what a client sends, and confirms it. This code does not depend on the simulation.
Task<> store(TcpStream peer) {
  std::array<std::byte, 64> bytes;
  const auto got = co_await peer.read(bytes);
  auto file = co_await File::open("stored", FileMode::create);
  if (!got || !file) co_return;
  const auto written = co_await file->write_at(std::span(bytes).first(*got), 0);
  if (written) static_cast<void>(co_await peer.write("stored"));
}

Task<> client(Endpoint server, Endpoint monitor, int& confirmed) {
  co_await sleep_for(1h);  // Takes no real time.
  auto stream = co_await timeout(10s, TcpStream::connect(server));
  if (!stream || !co_await stream->write("text")) co_return;
  std::array<std::byte, 64> bytes;
  if (co_await stream->read(bytes) != 6U) co_return;
  ++confirmed;
  auto socket = UdpSocket::bind(stream->loop(), Endpoint::any_v4(0));
  if (socket) static_cast<void>(co_await socket->send_to(std::span(bytes).first(6), monitor));
}

int main() {
  sim::Simulation simulation(42);  // The seed: the same one repeats the run, event for event.
  EventLoop near(simulation.add_host("server").loop_options());  // 10.0.0.1
  EventLoop far(simulation.add_host("client").loop_options());

  auto server = TcpServer::listen(near, Endpoint::any_v4(7000));
  auto monitor = UdpSocket::bind(near, Endpoint::any_v4(7001));
  if (!server || !monitor) return 1;
  server->serve(store);
  int reports = 0;
  if (!monitor->serve({.on_datagrams = [&](UdpSocket&, DatagramBatch& batch) {
        reports += static_cast<int>(batch.size());
      }}))
    return 1;

  int confirmed = 0;
  const auto address = [](std::uint16_t port) {
    return or_throw(Endpoint::parse("10.0.0.1", port));
  };
  spawn(far, client(address(7000), address(7001), confirmed));
  simulation.run_for(2h);
  std::printf("%d confirmed, %d reported\n", confirmed, reports);
  return confirmed == 1 && reports == 1 ? 0 : 1;
}
