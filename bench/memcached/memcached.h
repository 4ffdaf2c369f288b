// memcached of the system, on libevent or on a drop-in, under the clients of this program.
//
// The clients send one request at a time on each connection. They use bare system calls, and verify
// each answer.
#pragma once

namespace bench {

struct MemcachedOptions {
  const char* subject;
  /// The directory of the drop-ins, or null for the libraries of the system.
  const char* libraries;
};

int run_memcached(int argc, char** argv, const MemcachedOptions& options);

}  // namespace bench
