// The process of the server, as its clients see it: its port and its resource usage.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "common/processor.h"
#include "common/program.h"
#include "common/scraper.h"
#include "server/server.h"

namespace bench {

/// Forks the server onto pinned_processor() and moves the calling thread to another processor.
class ServerProcess {
 public:
  /// Returns when the server listens.
  ServerProcess(Serve serve, ServerOptions options);
  /// Ends the server with SIGTERM, so that valgrind and perf write their results.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  std::uint16_t port() const { return port_; }
  /// Also names the output file of a program such as valgrind that observes the server.
  pid_t process() const { return process_; }
  const SubjectInfo& info() const { return info_; }

  /// Of the process and those that it has started.
  std::int64_t cpu_ns() const;

  /// Waits until the server has processed everything that was sent to it. Pauses the scraper.
  void wait_until_idle() const;

  /// Bytes allocated with malloc(3), overhead included. The server must be idle.
  std::int64_t heap_bytes() const;
  /// Waits until the server accepts connections, and has nothing to do.
  void wait_until_it_listens() const;
  /// Resident bytes, without file-backed memory.
  std::int64_t rss_bytes() const;
  /// The same, but counted page by page: exact, also for a kernel that counts per processor, and
  /// slower.
  std::int64_t anonymous_bytes() const;
  /// Resident bytes, of which those shared with other processes count in part: the proportional set
  /// size of proc_pid_smaps_rollup(5). Includes file-backed memory.
  std::int64_t pss_bytes() const;

 private:
  struct SharedState;

  /// A line of /proc/PID/smaps_rollup, of the process and those that it has started.
  std::int64_t rollup_bytes(const char* name) const;

  /// Whether the server is waiting in the kernel, not for a processor.
  bool is_waiting() const;

  std::uint16_t port_;
  pid_t process_ = -1;
  SubjectInfo info_;
  SharedState* shared_;
  std::optional<Scraper> scraper_;  ///< See wanted_scrapes().
};

}  // namespace bench
