// Round trips on one connection: a client that does nothing but send and wait, and a server that is
// the subject's loop.
//
// The two are processes on different processors. Nearly all of a round trip is the kernel waking
// the processor that has gone idle meanwhile, which is what a loop that spins saves.
#pragma once

#include <concepts>
#include <cstdint>

#include "common/program.h"

namespace bench {

struct LatencyOptions {
  int round_trips = 0;
  int iterations = 1;
};

/// Exits with 2 and a message when the arguments make no sense, with 0 after --help.
LatencyOptions parse_latency_options(int argc, char** argv);

/// What a subject brings; it owns no descriptor.
template <class Subject>
concept Echo = std::constructible_from<Subject, int> && requires(Subject subject) {
  /// Send back what comes until the client closes.
  subject.run();
  { subject.about() } -> std::same_as<About>;
};

/// A connected pair of TCP sockets over the loopback device, TCP_NODELAY set.
struct Connection {
  int server;
  int client;
};
Connection open_connection();

/// Runs the client's side in a child process on another processor, and reads its figures.
class Client {
 public:
  Client(const LatencyOptions& options, const Connection& connection);
  /// Waits for the child; fails if it did.
  void report_to(Report& report);

 private:
  int figures_;
  int child_;
};

/// Reads once from a non-blocking server socket and sends that back. False at end of file.
bool echo_once(int fd);

/// The main function of a latency program.
template <Echo Subject>
int play_latency(int argc, char** argv) {
  const LatencyOptions options = parse_latency_options(argc, argv);
  feed_watchdog();
  Report report;
  About about;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    const Connection connection = open_connection();
    Client client(options, connection);
    Subject subject(connection.server);
    subject.run();
    client.report_to(report);
    about = subject.about();
  }
  report.print(about);
  return 0;
}

}  // namespace bench
