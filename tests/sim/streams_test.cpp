// TCP and Unix stream sockets: each call in each state returns what Linux returns.
#include <string>

#include <gtest/gtest.h>

#include "sim/kernel_comparison.h"

namespace tambour::streams_test {
namespace {

using test::Recorder;
using test::Scenario;

class SimulatedStreams : public test::KernelComparison {};

TEST_P(SimulatedStreams, behaves_like_the_kernel) { compare(); }

// Calls that work on every connected stream.
void exchange(Recorder& io, Recorder::Two ends) {
  io.ready(ends.one);
  io.read(ends.one, 10);
  io.write(ends.one, "hello");
  io.ready(ends.other);
  io.recv(ends.other, 3, MSG_PEEK);
  io.recv(ends.other, 3);
  io.read(ends.other, 10);
  io.recv(ends.other, 10);
  io.ready(ends.other);
  io.send(ends.other, "");
  io.send(ends.other, "world");
  io.recv(ends.one, 0);
  io.recv(ends.one, 100);
  io.option(ends.one, SO_TYPE);
  io.option(ends.one, SO_DOMAIN);
  io.option(ends.one, SO_ACCEPTCONN);
  io.names(ends.one);
  io.names(ends.other);
}

void half_close(Recorder& io, Recorder::Two ends) {
  io.write(ends.one, "last");
  io.shutdown(ends.one, SHUT_WR);
  io.ready(ends.one);
  io.ready(ends.other);
  io.write(ends.one, "more");
  io.read(ends.other, 2);
  io.read(ends.other, 10);
  io.read(ends.other, 10);
  io.read(ends.other, 10);
  io.write(ends.other, "answer");
  io.ready(ends.one);
  io.read(ends.one, 10);
  io.shutdown(ends.other, SHUT_WR);
  io.ready(ends.one);
  io.ready(ends.other);
  io.read(ends.one, 10);
  io.error_of(ends.one);
}

void peer_closes(Recorder& io, Recorder::Two ends) {
  io.write(ends.one, "last");
  io.close(ends.one);
  io.ready(ends.other);
  io.read(ends.other, 10);
  io.read(ends.other, 10);
  io.ready(ends.other);
  io.send(ends.other, "one");
  io.ready(ends.other);
  io.send(ends.other, "two");
  io.send(ends.other, "three");
  io.read(ends.other, 10);
  io.error_of(ends.other);
  io.ready(ends.other);
}

void peer_closes_with_unread_data(Recorder& io, Recorder::Two ends) {
  io.write(ends.other, "not read");
  io.close(ends.one);
  io.ready(ends.other);
  io.read(ends.other, 10);
  io.read(ends.other, 10);
  io.send(ends.other, "x");
  io.ready(ends.other);
}

void peer_closes_with_unread_data_and_writer_learns_first(Recorder& io, Recorder::Two ends) {
  io.write(ends.one, "before");
  io.write(ends.other, "not read");
  io.close(ends.one);
  io.send(ends.other, "x");
  io.send(ends.other, "x");
  io.read(ends.other, 3);
  io.read(ends.other, 10);
  io.read(ends.other, 10);
  io.error_of(ends.other);
}

void shutdown_reading(Recorder& io, Recorder::Two ends) {
  io.shutdown(ends.one, SHUT_RD);
  io.ready(ends.one);
  io.read(ends.one, 10);
  io.shutdown(ends.one, SHUT_RDWR);
  io.ready(ends.one);
  io.ready(ends.other);
  io.read(ends.other, 10);
  io.shutdown(ends.one, 7);
}

void fill_and_drain(Recorder& io, Recorder::Two ends) {
  io.fill(ends.one);
  io.ready(ends.one);
  io.ready(ends.other);
  io.drain(ends.other);
  io.ready(ends.one);
  io.ready(ends.other);
}

template <void (*play)(Recorder&, Recorder::Two)>
void over_pair(Recorder& io) {
  play(io, io.socketpair(SOCK_STREAM));
}
template <void (*play)(Recorder&, Recorder::Two)>
void over_tcp(Recorder& io) {
  play(io, io.tcp());
}

void tcp_reset(Recorder& io) {
  const auto ends = io.tcp();
  io.write(ends.one, "before");
  io.linger_reset(ends.one);
  io.close(ends.one);
  io.ready(ends.other);
  io.read(ends.other, 10);
  io.read(ends.other, 10);
  io.read(ends.other, 10);
  io.send(ends.other, "x");
}

void tcp_refused(Recorder& io) {
  const int idle = io.bound(AF_INET, SOCK_STREAM);
  const int client = io.socket(AF_INET, SOCK_STREAM);
  io.ready(client);
  io.connect(client, idle);
  io.ready(client);
  io.error_of(client);
  io.error_of(client);
  io.names(client);
}

void tcp_refusal_is_reported_by_the_first_call(Recorder& io) {
  const int idle = io.bound(AF_INET, SOCK_STREAM);
  for (int way = 0; way < 3; ++way) {
    const int client = io.socket(AF_INET, SOCK_STREAM);
    io.connect(client, idle);
    if (way == 0) io.read(client, 10);
    if (way == 1) io.send(client, "x");
    if (way == 2) io.connect(client, idle);
    io.error_of(client);
    io.send(client, "x");
  }
}

void tcp_states(Recorder& io) {
  const int fresh = io.socket(AF_INET, SOCK_STREAM);
  io.read(fresh, 10);
  io.send(fresh, "x");
  io.shutdown(fresh, SHUT_WR);
  io.accept(fresh);
  io.names(fresh);
  const int listener = io.tcp_listener();
  io.ready(listener);
  io.accept(listener);
  io.read(listener, 10);
  io.send(listener, "x");
  io.option(listener, SO_ACCEPTCONN);
  io.listen(listener, 1);
  io.connect(listener, listener);
  const int client = io.socket(AF_INET, SOCK_STREAM);
  io.connect(client, listener);
  io.connect(client, listener);
  io.connect(client, listener);
  io.ready(listener);
  io.listen(client);
  const int server = io.accept(listener);
  io.ready(listener);
  io.connect(server, listener);
  io.names(client);
  io.close(listener);
  io.write(client, "still");
  io.read(server, 10);
}

void tcp_listener_closes_with_connections_waiting(Recorder& io) {
  const int listener = io.tcp_listener();
  const int client = io.socket(AF_INET, SOCK_STREAM);
  io.connect(client, listener);
  io.ready(client);
  io.close(listener);
  io.ready(client);
  io.read(client, 10);
}

void tcp_data_before_accept(Recorder& io) {
  const int listener = io.tcp_listener();
  const int client = io.socket(AF_INET, SOCK_STREAM);
  io.connect(client, listener);
  io.write(client, "early");
  io.close(client);
  const int server = io.accept(listener);
  io.ready(server);
  io.read(server, 10);
  io.read(server, 10);
}

void tcp_reset_before_accept(Recorder& io) {
  const int listener = io.tcp_listener();
  const int client = io.socket(AF_INET, SOCK_STREAM);
  io.connect(client, listener);
  io.linger_reset(client);
  io.close(client);
  io.ready(listener);
  const int server = io.accept(listener);
  io.ready(server);
  io.read(server, 10);
  io.read(server, 10);
}

void addresses_in_use(Recorder& io) {
  for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
    const int one = io.bound(AF_INET, type);
    io.bind_where(one, one);
    const int other = io.socket(AF_INET, type);
    io.bind_where(other, one);
    io.close(one);
    io.names(other);
  }
  const int six = io.bound(AF_INET6, SOCK_STREAM);
  const int four = io.socket(AF_INET, SOCK_STREAM);
  io.connect(four, six);
  io.bind_where(four, six);
}

void unix_names(Recorder& io) {
  const std::string name("\0tambour-comparison", 19);
  const int idle = io.socket(AF_UNIX, SOCK_STREAM);
  io.ready(idle);
  io.read(idle, 10);
  io.send(idle, "x");
  io.listen(idle);
  io.accept(idle);
  io.connect_unix(idle, name);
  io.connect_unix(idle, "/nowhere/at/all");
  const int listener = io.socket(AF_UNIX, SOCK_STREAM);
  io.bind_unix(listener, name);
  io.bind_unix(listener, name);
  const int second = io.socket(AF_UNIX, SOCK_STREAM);
  io.bind_unix(second, name);
  io.connect_unix(idle, name);
  io.listen(listener, 0);
  io.connect_unix(idle, name);
  io.connect_unix(idle, name);
  io.connect_unix(second, name);
  io.ready(listener);
  const int server = io.accept(listener);
  io.connect_unix(second, name);
  io.names(idle);
  io.names(server);
  io.write(idle, "hello");
  io.read(server, 10);
  io.close(listener);
  io.ready(second);
  io.read(second, 10);
  const int late = io.socket(AF_UNIX, SOCK_STREAM);
  io.connect_unix(late, name);
}

void duplicates(Recorder& io) {
  const auto ends = io.socketpair(SOCK_STREAM);
  const int copy = io.dup(ends.one);
  io.close(ends.one);
  io.ready(ends.other);
  io.write(copy, "by the copy");
  io.read(ends.other, 20);
  io.close(copy);
  io.read(ends.other, 20);
}

INSTANTIATE_TEST_SUITE_P(
    Pair, SimulatedStreams,
    testing::Values(Scenario{"exchange", over_pair<exchange>},
                    Scenario{"half_close", over_pair<half_close>},
                    Scenario{"peer_closes", over_pair<peer_closes>},
                    Scenario{"unread", over_pair<peer_closes_with_unread_data>},
                    Scenario{"unread_writer",
                             over_pair<peer_closes_with_unread_data_and_writer_learns_first>},
                    Scenario{"shutdown_reading", over_pair<shutdown_reading>},
                    Scenario{"fill", over_pair<fill_and_drain>}, Scenario{"duplicates", duplicates},
                    Scenario{"names", unix_names}),
    &test::name_of_scenario);

INSTANTIATE_TEST_SUITE_P(
    Tcp, SimulatedStreams,
    testing::Values(Scenario{"exchange", over_tcp<exchange>},
                    Scenario{"half_close", over_tcp<half_close>},
                    Scenario{"peer_closes", over_tcp<peer_closes>},
                    Scenario{"unread", over_tcp<peer_closes_with_unread_data>},
                    Scenario{"unread_writer",
                             over_tcp<peer_closes_with_unread_data_and_writer_learns_first>},
                    Scenario{"shutdown_reading", over_tcp<shutdown_reading>},
                    Scenario{"fill", over_tcp<fill_and_drain>}, Scenario{"reset", tcp_reset},
                    Scenario{"refused", tcp_refused},
                    Scenario{"refused_ways", tcp_refusal_is_reported_by_the_first_call},
                    Scenario{"states", tcp_states},
                    Scenario{"listener_closes", tcp_listener_closes_with_connections_waiting},
                    Scenario{"before_accept", tcp_data_before_accept},
                    Scenario{"reset_before_accept", tcp_reset_before_accept},
                    Scenario{"in_use", addresses_in_use}),
    &test::name_of_scenario);

}  // namespace
}  // namespace tambour::streams_test
