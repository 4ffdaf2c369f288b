// Invalid uses of sockets: truncated addresses, calls on the wrong kind of file, repeated shutdown.
// The simulator must return what Linux returns.
#include <fcntl.h>
#include <sys/socket.h>

#include <string>

#include <gtest/gtest.h>

#include "sim/kernel_comparison.h"

namespace tambour::corners_test {
namespace {

using test::Recorder;
using test::Scenario;

class SimulatedCorners : public test::KernelComparison {};

TEST_P(SimulatedCorners, behaves_like_the_kernel) { compare(); }

void bad_addresses(Recorder& io) {
  for (const int family : {AF_INET, AF_INET6}) {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
      io.say("family " + std::to_string(family) + " type " + std::to_string(type));
      io.bad_addresses(io.socket(family, type), family);
    }
  }
}

void bad_unix_addresses(Recorder& io) {
  for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
    io.say("type " + std::to_string(type));
    io.bad_addresses(io.socket(AF_UNIX, type), AF_UNIX);
  }
}

void names_cut_short(Recorder& io) {
  const auto tcp = io.tcp();
  const auto pair = io.socketpair(SOCK_STREAM);
  const int six = io.bound(AF_INET6, SOCK_DGRAM);
  const int local = io.socket(AF_UNIX, SOCK_DGRAM);
  io.bind_unix(local, std::string("\0tambour-cut-short", 18));
  for (const unsigned size : {0U, 1U, 2U, 8U, 15U, 16U, 27U, 28U}) {
    for (const int fd : {tcp.one, tcp.other, pair.one, six, local}) io.names_cut_short(fd, size);
  }
}

/// Makes every socket call on `fd`, which may not be a socket.
void ask_all(Recorder& io, int fd) {
  const int unbound = io.bound(AF_INET, SOCK_STREAM);
  io.bind_where(fd, unbound);
  io.listen(fd);
  io.accept(fd);
  io.connect(fd, unbound);
  io.shutdown(fd, SHUT_RD);
  io.recv(fd, 1);
  io.send(fd, "x");
  io.send_to(fd, "x", unbound);
  io.error_of(fd);
  io.option(fd, SO_TYPE);
  io.linger_reset(fd);
  io.names(fd);
}

void files_that_are_no_sockets(Recorder& io) {
  const auto pipe = io.pipe();
  ask_all(io, pipe.one);
  ask_all(io, pipe.other);
  ask_all(io, io.eventfd(1));
}

void datagrams_do_not_listen(Recorder& io) {
  for (const int fd : {io.bound(AF_INET, SOCK_DGRAM), io.socketpair(SOCK_DGRAM).one}) {
    io.listen(fd);
    io.accept(fd);
    io.option(fd, SO_ACCEPTCONN);
    io.linger_reset(fd);
  }
}

void kinds(Recorder& io) {
  const int six = io.bound(AF_INET6, SOCK_DGRAM);
  for (const int fd :
       {io.bound(AF_INET, SOCK_STREAM), six, io.socketpair(SOCK_DGRAM).one, io.tcp_listener()}) {
    for (const int option : {SO_TYPE, SO_DOMAIN, SO_ACCEPTCONN}) io.option(fd, option);
  }
}

void shut(Recorder& io, Recorder::Two ends) {
  io.shutdown(ends.one, 3);
  io.shutdown(ends.one, -1);
  io.write(ends.other, "before");
  io.shutdown(ends.one, SHUT_RD);
  io.ready(ends.one);
  io.recv(ends.one, 20);
  io.recv(ends.one, 20);
  io.shutdown(ends.one, SHUT_WR);
  io.shutdown(ends.one, SHUT_WR);
  io.send(ends.one, "x");
  io.ready(ends.one);
  io.ready(ends.other);
  io.recv(ends.other, 20);
  io.shutdown(ends.other, SHUT_RDWR);
  io.ready(ends.other);
  io.send(ends.other, "x");
  io.recv(ends.other, 20);
  io.close(ends.one);
  io.ready(ends.other);
}

void shut_pair(Recorder& io) { shut(io, io.socketpair(SOCK_STREAM)); }
void shut_tcp(Recorder& io) { shut(io, io.tcp()); }

void shut_unix_datagrams(Recorder& io) {
  for (const int mode : {SHUT_RD, SHUT_WR, SHUT_RDWR}) {
    const auto ends = io.socketpair(SOCK_DGRAM);
    io.send(ends.other, "before");
    io.shutdown(ends.one, mode);
    io.ready(ends.one);
    io.ready(ends.other);
    io.recv(ends.one, 10);
    io.recv(ends.one, 10);
    io.send(ends.one, "x");
    io.send(ends.other, "x");
  }
}

void shut_udp(Recorder& io) {
  for (const int mode : {SHUT_RD, SHUT_WR, SHUT_RDWR}) {
    const int one = io.bound(AF_INET, SOCK_DGRAM);
    const int other = io.bound(AF_INET, SOCK_DGRAM);
    io.shutdown(one, 3);
    io.connect(one, other);
    io.send_to(other, "before", one);
    io.shutdown(one, mode);
    io.ready(one);
    io.recv(one, 10);
    io.send(one, "x");
    io.recv(other, 10);
  }
}

void shut_down_without_peer(Recorder& io) {
  const int fresh = io.socket(AF_UNIX, SOCK_STREAM);
  io.shutdown(fresh, SHUT_RD);
  io.ready(fresh);
  const int listener = io.tcp_listener();
  io.shutdown(listener, SHUT_WR);
  io.ready(listener);
  const int client = io.socket(AF_INET, SOCK_STREAM);
  io.connect(client, listener);
  io.shutdown(listener, SHUT_RD);
  io.ready(client);
  io.recv(client, 10);
  io.shutdown(client, SHUT_RDWR);
  io.accept(listener);
}

void peeked_and_thrown_away(Recorder& io, Recorder::Two ends) {
  io.send(ends.one, "0123456789");
  io.recv(ends.other, 4, MSG_PEEK);
  io.recv(ends.other, 0);
  io.read(ends.other, 0);
  io.recv(ends.other, 4, MSG_TRUNC | MSG_PEEK);
  io.recv(ends.other, 4);
  io.recv(ends.other, 20, MSG_PEEK);
  io.send(ends.one, "");
  io.write(ends.one, "");
  io.recv(ends.other, 20);
  io.recv(ends.other, 20);
}

void peeked_pair(Recorder& io) { peeked_and_thrown_away(io, io.socketpair(SOCK_STREAM)); }
void peeked_tcp(Recorder& io) { peeked_and_thrown_away(io, io.tcp()); }

void sent_to_another_address(Recorder& io) {
  const auto pair = io.socketpair(SOCK_STREAM);
  io.send_to(pair.one, "x", pair.one);
  const auto tcp = io.tcp();
  io.send_to(tcp.one, "x", tcp.one);
  io.read(tcp.other, 10);
}

void connected_twice(Recorder& io) {
  const std::string name("\0tambour-twice", 14);
  const int listener = io.socket(AF_UNIX, SOCK_STREAM);
  io.bind_unix(listener, name);
  io.listen(listener);
  const int client = io.socket(AF_UNIX, SOCK_STREAM);
  io.connect_unix(client, name);
  io.connect_unix(client, name);
  io.connect_unix(listener, name);
  io.bind_unix(client, name);
  io.listen(client);
  // A name is bound to one socket type.
  const int datagrams = io.socket(AF_UNIX, SOCK_DGRAM);
  io.connect_unix(datagrams, std::string("\0tambour-nobody", 15));
  io.bind_unix(datagrams, name);
  io.close(listener);
  io.ready(client);
  io.read(client, 10);
  io.send(client, "x");
}

void udp_reconnected(Recorder& io) {
  const int one = io.socket(AF_INET, SOCK_DGRAM);
  const int first = io.bound(AF_INET, SOCK_DGRAM);
  const int second = io.bound(AF_INET, SOCK_DGRAM);
  io.connect(one, first);
  io.connect(one, second);
  io.names(one);
  io.send(one, "to the second");
  io.recv(first, 20);
  io.recv_from(second, one);
  io.send_to(one, "to the first", first);
  io.recv_from(first, one);
}

void both_ends_of_a_pipe(Recorder& io) {
  const auto ends = io.pipe();
  io.read(ends.one, 0);
  io.write(ends.other, "");
  io.fill(ends.other);
  io.write(ends.other, "x");
  io.read(ends.one, 100);
  io.ready(ends.other);
  io.close(ends.one);
  io.ready(ends.other);
  io.close(ends.other);
}

void counters_of_nothing(Recorder& io) {
  const int counter = io.eventfd(0);
  io.write(counter, std::string(8, '\0'));
  io.ready(counter);
  io.read(counter, 8);
  io.write(counter, std::string("\xfe").append(7, '\xff'));
  io.write(counter, std::string("\1").append(7, '\0'));
  io.read(counter, 100);
}

INSTANTIATE_TEST_SUITE_P(
    All, SimulatedCorners,
    testing::Values(
        Scenario{"bad_addresses", bad_addresses},
        Scenario{"bad_unix_addresses", bad_unix_addresses},
        Scenario{"names_cut_short", names_cut_short},
        Scenario{"no_sockets", files_that_are_no_sockets},
        Scenario{"no_listeners", datagrams_do_not_listen}, Scenario{"kinds", kinds},
        Scenario{"shut_pair", shut_pair}, Scenario{"shut_tcp", shut_tcp},
        Scenario{"shut_unix_datagrams", shut_unix_datagrams}, Scenario{"shut_udp", shut_udp},
        Scenario{"shut_without_peer", shut_down_without_peer}, Scenario{"peeked_pair", peeked_pair},
        Scenario{"peeked_tcp", peeked_tcp}, Scenario{"sent_elsewhere", sent_to_another_address},
        Scenario{"connected_twice", connected_twice}, Scenario{"udp_reconnected", udp_reconnected},
        Scenario{"pipe", both_ends_of_a_pipe}, Scenario{"counters", counters_of_nothing}),
    &test::name_of_scenario);

}  // namespace
}  // namespace tambour::corners_test
