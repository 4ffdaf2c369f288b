// Datagram sockets, pipes, eventfds and invalid descriptors behave as on Linux.
#include <sys/eventfd.h>

#include <string>

#include <gtest/gtest.h>

#include "sim/kernel_comparison.h"

namespace tambour::files_test {
namespace {

using test::Recorder;
using test::Scenario;

class SimulatedFiles : public test::KernelComparison {};

TEST_P(SimulatedFiles, behaves_like_the_kernel) { compare(); }

void udp(Recorder& io) {
  const int one = io.bound(AF_INET, SOCK_DGRAM);
  const int other = io.bound(AF_INET, SOCK_DGRAM);
  io.ready(one);
  io.recv(one, 10);
  io.send(one, "x");
  io.send_to(one, "datagram", other);
  io.send_to(one, "", other);
  io.send_to(one, "third", other);
  io.ready(other);
  io.recv(other, 4, MSG_PEEK);
  io.recv(other, 4, MSG_PEEK | MSG_TRUNC);
  io.recv(other, 4);
  io.recv_from(other, one);
  io.recv_from(other, one);
  io.recv(other, 10);
  io.send(one, std::string(65508, 'x'));
  io.send_to(one, std::string(65508, 'x'), other);
  io.shutdown(one, SHUT_WR);
  io.listen(one);
  io.accept(one);
  io.names(one);
  io.connect(one, other);
  io.names(one);
  io.send(one, "connected");
  io.recv_from(other, one);
}

void udp_refused(Recorder& io) {
  const int closed_peer = io.bound(AF_INET, SOCK_DGRAM);
  const int one = io.socket(AF_INET, SOCK_DGRAM);
  io.connect(one, closed_peer);
  io.close(closed_peer);
  io.send(one, "x");
  io.ready(one);
  io.recv(one, 10);
  io.recv(one, 10);
  io.send(one, "x");
  io.send(one, "x");
  io.error_of(one);
}

void udp_connected_hears_only_its_peer(Recorder& io) {
  const int one = io.bound(AF_INET, SOCK_DGRAM);
  const int peer = io.bound(AF_INET, SOCK_DGRAM);
  const int unconnected = io.bound(AF_INET, SOCK_DGRAM);
  io.connect(one, peer);
  io.send_to(unconnected, "strange", one);
  io.recv(one, 10);
  io.send_to(peer, "known", one);
  io.recv(one, 10);
}

void unix_datagrams(Recorder& io) {
  const auto ends = io.socketpair(SOCK_DGRAM);
  io.ready(ends.one);
  io.send(ends.one, "first");
  io.send(ends.one, "");
  io.send(ends.one, "third");
  io.recv(ends.other, 2);
  io.recv(ends.other, 10);
  io.recv(ends.other, 10, MSG_TRUNC);
  io.recv(ends.other, 10);
  io.names(ends.one);
  io.send(ends.one, "left");
  io.close(ends.one);
  io.recv(ends.other, 10);
  io.recv(ends.other, 10);
  io.send(ends.other, "x");
  io.send(ends.other, "x");
}

void unix_datagrams_wait_for_room(Recorder& io) {
  const auto ends = io.socketpair(SOCK_DGRAM);
  io.fill(ends.one);
  io.ready(ends.one);
  io.drain(ends.other);
  io.ready(ends.one);
}

void pipes(Recorder& io) {
  const auto ends = io.pipe();
  io.ready(ends.one);
  io.ready(ends.other);
  io.read(ends.one, 10);
  io.write(ends.one, "x");
  io.read(ends.other, 10);
  io.write(ends.other, "hello");
  io.ready(ends.one);
  io.read(ends.one, 2);
  io.read(ends.one, 10);
  io.send(ends.other, "x");
  io.shutdown(ends.other, SHUT_WR);
  io.fill(ends.other);
  io.ready(ends.other);
  io.read(ends.one, 1 << 12);
  io.ready(ends.other);
  io.close(ends.other);
  io.drain(ends.one);
  io.ready(ends.one);
  const auto broken = io.pipe();
  io.close(broken.one);
  io.write(broken.other, "x");
  io.ready(broken.other);
}

void event_counters(Recorder& io) {
  const std::string five("\5\0\0\0\0\0\0\0", 8);
  for (const int flags : {0, int(EFD_SEMAPHORE)}) {
    const int counter = io.eventfd(2, flags);
    io.ready(counter);
    io.read(counter, 8);
    io.write(counter, five);
    io.write(counter, "short");
    io.read(counter, 7);
    io.read(counter, 8);
    io.read(counter, 8);
    io.ready(counter);
    io.write(counter, std::string(8, '\xff'));
    io.write(counter, std::string("\xfe").append(7, '\xff'));
    io.write(counter, five);
    io.ready(counter);
  }
}

void descriptors_that_are_none(Recorder& io) {
  const int closed = io.pipe().one;
  io.close(closed);
  io.close(closed);
  io.read(closed, 1);
  io.write(closed, "x");
  io.recv(closed, 1);
  io.listen(closed);
  io.accept(closed);
  io.shutdown(closed, SHUT_WR);
  io.error_of(closed);
  io.names(closed);
  io.ready(closed);
  io.socket(AF_INET, 77);
  io.socket(12345, SOCK_STREAM);
}

INSTANTIATE_TEST_SUITE_P(
    All, SimulatedFiles,
    testing::Values(Scenario{"unix_datagrams", unix_datagrams},
                    Scenario{"unix_datagrams_full", unix_datagrams_wait_for_room},
                    Scenario{"udp", udp}, Scenario{"udp_refused", udp_refused},
                    Scenario{"udp_peer", udp_connected_hears_only_its_peer},
                    Scenario{"pipes", pipes}, Scenario{"event_counters", event_counters},
                    Scenario{"no_descriptors", descriptors_that_are_none}),
    &test::name_of_scenario);

}  // namespace
}  // namespace tambour::files_test
