// A TCP server, which is the subject, and the workloads of its clients: throughput, latency, churn,
// idle, fanout.
//
// Server and clients are processes on different processors. The clients are the same for every
// subject and use bare system calls, so that they affect the result as little as possible. On a
// machine with two processors, the clients often limit the rate. The processor time of the server
// does not depend on that, nor on other load of the machine.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "common/program.h"

namespace bench {

enum class Service : std::uint8_t {
  echo,       ///< Sends received bytes back.
  broadcast,  ///< Sends received bytes to all connections, including the sender.
};

struct ServerOptions {
  std::uint16_t port = 0;  ///< On 127.0.0.1.
  Service service = Service::echo;
  /// The loops that serve connections, each on its own thread. A server of `server/` has one; a
  /// server of `scaling/` has as many as requested.
  int loops = 1;
  /// The size of a connection's read buffer, if the library leaves it to the program: suitable for
  /// the workload.
  std::size_t buffer_bytes = 0;
  std::string folder{};  ///< For `tls/` and `http/`: a directory for the files of the server.
  int names = 1;         ///< For the servers of `tls/`: certificates by name; see name_of().
  bool tls = false;      ///< For `http/`: with the certificate in `folder`/server.pem.
  bool http_2 = false;   ///< For `http/`: the clients use HTTP/2.
  std::uint16_t upstream_port = 0;  ///< For `http_proxy/`: on 127.0.0.1.
  bool deflate = false;             ///< For `websocket/`: with permessage-deflate.
  int answer_bytes = 0;  ///< For `tls/` and `http/`: the size that requests will ask for.
  /// For Tambour: where its inspector answers, on 127.0.0.1; 0: it does not.
  std::uint16_t metrics_port = 0;
};

/// The interface of a subject.
template <class Subject>
concept ServerSubject =
    std::constructible_from<Subject, const ServerOptions&> && requires(Subject subject) {
      /// Serves until the process is killed. A client that disconnects is not an error.
      subject.run();
      { subject.info() } -> std::same_as<SubjectInfo>;
    };

using OnListening = std::function<void(const SubjectInfo&)>;
/// Creates the subject, invokes the callback when it listens, and serves.
using Serve = void (*)(const ServerOptions&, const OnListening&);

int run_server(int argc, char** argv, Serve serve);

/// The main function of a server program.
template <ServerSubject Subject>
int run_server(int argc, char** argv) {
  return run_server(argc, argv, [](const ServerOptions& options, const OnListening& on_listening) {
    Subject subject(options);
    on_listening(subject.info());
    subject.run();
  });
}

}  // namespace bench
