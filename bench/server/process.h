// The server's process, as its clients see it: a port, and what it has used.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "common/processor.h"
#include "common/program.h"
#include "server/server.h"

namespace bench {

/// Forks the server onto the program's own processor, and moves the caller to another.
class ServerProcess {
 public:
  /// Returns when it listens.
  ServerProcess(Serve serve, ServerOptions options);
  /// Ends it with SIGTERM, for which valgrind and perf write down what they know.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  std::uint16_t port() const { return port_; }
  const About& about() const { return about_; }

  std::int64_t cpu_ns() const { return bench::cpu_ns(process_); }

  /// Waits until it has done all that clients have asked of it.
  void settle() const;

  /// Bytes that it has from malloc(3), overhead included. It must be at rest.
  std::int64_t heap_bytes() const;
  /// Resident, and not files.
  std::int64_t rss_bytes() const;

 private:
  struct Page;

  /// Whether it waits in the kernel, and not for a processor.
  bool sleeps() const;

  std::uint16_t port_;
  pid_t process_ = -1;
  About about_;
  Page* page_;
};

}  // namespace bench
