// The process of memcached.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "common/processor.h"
#include "memcached/memcached.h"

namespace bench {

class MemcachedProcess {
 public:
  /// Starts memcached on a free port and returns when it listens. With one thread it runs on
  /// pinned_processor(), with more on all processors. Fails unless it has loaded the libraries that
  /// the options name.
  MemcachedProcess(const MemcachedOptions& options, int threads, int connections);
  /// Kills it.
  ~MemcachedProcess();
  MemcachedProcess(const MemcachedProcess&) = delete;
  MemcachedProcess& operator=(const MemcachedProcess&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::int64_t cpu_ns() const { return bench::cpu_ns(process_); }
  /// As memcached reports it.
  [[nodiscard]] const std::string& version() const { return version_; }

 private:
  void wait_until_it_listens();
  void check_libraries(const MemcachedOptions& options) const;

  std::uint16_t port_;
  pid_t process_ = -1;
  std::string version_;
};

}  // namespace bench
