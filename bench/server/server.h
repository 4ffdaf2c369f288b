// A TCP server, which is the subject, and the games that clients play with it: throughput, latency,
// churn, idle, fanout.
//
// Server and clients are processes on different processors, and the clients are the same for every
// subject: bare system calls, so that they are not what is measured. Where two processors are all
// there is, the clients are often what limits a rate; processor time of the server does not depend
// on that, nor on what else the machine does.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "common/program.h"

namespace bench {

enum class Service : std::uint8_t {
  echo,    ///< What comes is sent back.
  spread,  ///< What comes is sent to all connections, that one included.
};

struct ServerOptions {
  std::uint16_t port = 0;  ///< Of 127.0.0.1.
  Service service = Service::echo;
  /// What a connection reads into, where the library leaves that to the program: as much as whoever
  /// writes the server for this game would give it.
  std::size_t buffer_bytes = 0;
};

/// What a subject brings.
template <class Subject>
concept Server =
    std::constructible_from<Subject, const ServerOptions&> && requires(Subject subject) {
      /// Serve; the process is ended from outside. A client that leaves is no error.
      subject.run();
      { subject.about() } -> std::same_as<About>;
    };

using Listens = std::function<void(const About&)>;
/// Makes the subject, says when it listens, and serves.
using Serve = void (*)(const ServerOptions&, const Listens&);

int play_server(int argc, char** argv, Serve serve);

/// The main function of a server program.
template <Server Subject>
int play_server(int argc, char** argv) {
  return play_server(argc, argv, [](const ServerOptions& options, const Listens& listens) {
    Subject subject(options);
    listens(subject.about());
    subject.run();
  });
}

}  // namespace bench
