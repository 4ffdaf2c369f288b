// Echo over TCP, ping-pong: clients that send a message and wait until all of it has come back, and
// a server that is the subject.
//
// Server and clients are processes on different processors, and the clients are the same program
// for every subject: a loop of bare system calls, so that they are not what is measured. With many
// connections the server has always something to do; with one, the kernel's waking of idle
// processors is most of the figure. Processor time of the server per message does not depend on
// that, nor on what else the machine does.
#pragma once

#include <concepts>
#include <csignal>
#include <cstdint>

#include "common/program.h"

namespace bench {

struct ThroughputOptions {
  int connections = 0;
  int size = 0;  ///< Bytes of a message.
  int milliseconds = 0;
  int iterations = 1;
};

/// Exits with 2 and a message when the arguments make no sense, with 0 after --help.
ThroughputOptions parse_throughput_options(int argc, char** argv);

/// What a subject brings: a server on 127.0.0.1 that sends back what comes.
template <class Subject>
concept EchoServer = std::constructible_from<Subject, std::uint16_t> && requires(Subject subject) {
  /// Serve until the last of at least one connection has been closed by its client.
  subject.run();
  { subject.about() } -> std::same_as<About>;
};

/// A port that is free now.
std::uint16_t free_port();

/// The clients, in a child process on another processor. They wait until the server listens.
class Clients {
 public:
  Clients(const ThroughputOptions& options, std::uint16_t port);
  /// Waits for the child; fails if it did. `server_cpu_ns` is what the server has used meanwhile.
  void report_to(Report& report, std::int64_t server_cpu_ns);

 private:
  int figures_;
  int child_;
};

/// Processor time of this process, user and system.
std::int64_t own_cpu_ns();

/// The main function of a throughput program.
template <EchoServer Subject>
int play_throughput(int argc, char** argv) {
  const ThroughputOptions options = parse_throughput_options(argc, argv);
  // Clients end with an answer on its way; not every peer writes without this signal.
  std::signal(SIGPIPE, SIG_IGN);
  Report report;
  About about;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    feed_watchdog();
    const std::uint16_t port = free_port();
    Clients clients(options, port);
    Subject subject(port);
    const std::int64_t before = own_cpu_ns();
    subject.run();
    clients.report_to(report, own_cpu_ns() - before);
    about = subject.about();
  }
  report.print(about);
  return 0;
}

}  // namespace bench
