// Names of hosts to addresses.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include <tambour/endpoint.h>
#include <tambour/result.h>
#include <tambour/task.h>

namespace tambour {

enum class AddressFamily : std::uint8_t { any, v4, v6 };

/// The errors of getaddrinfo(3), EAI_NONAME and so on, in the words of gai_strerror(3).
const std::error_category& resolver_category() noexcept;

/// The error that a value of getaddrinfo(3)'s stands for. EAI_SYSTEM: what errno says.
Error resolver_error(int value) noexcept;

/// Finds the addresses of a host. Used by the tasks of one loop, or of many: each implementation
/// says.
class Resolver {
 public:
  Resolver() = default;
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  virtual ~Resolver() = default;

  /// The addresses of `host` with `port`, the best one first, and at least one. An address, in
  /// figures, is its own answer at once. Errors are those of resolver_category(), EAI_NONAME where
  /// there is no such host, and of the system; ECANCELED where the task was asked to stop.
  virtual Task<Result<std::vector<Endpoint>>> resolve(
      std::string host, std::uint16_t port, AddressFamily family = AddressFamily::any) = 0;

  /// That of the system: getaddrinfo(3), on a thread of WorkerPool::names(), which sorts as RFC
  /// 6724 says. EAGAIN if WorkerPool::queued_max() lookups wait for a thread already. A task that
  /// is asked to stop goes on at once, and the late answer is dropped; the thread is busy until
  /// then. In a simulation, it knows the hosts by their names, and "localhost". For any task of any
  /// loop.
  static Resolver& system();
};

}  // namespace tambour
