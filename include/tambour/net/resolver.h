// Host name resolution.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/ip_address.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// The error category of getaddrinfo(3): EAI_NONAME and so on, with the messages of
/// gai_strerror(3).
const std::error_category& resolver_category() noexcept;

/// Converts a return value of getaddrinfo(3) to an Error; for EAI_SYSTEM, the current errno.
[[nodiscard]] Error resolver_error(int value) noexcept;

/// A server of a service: from SRV records (RFC 2782) or HTTPS records (RFC 9460).
struct ServiceTarget {
  std::string host{};
  std::uint16_t port = 0;
  /// The application protocols that the server supports, if its record is an HTTPS record.
  std::vector<std::string> alpn{};
  /// Addresses, with the port, that may be used until those of the host are known. At most 32 of
  /// each family.
  std::vector<Endpoint> address_hints{};

  bool operator==(const ServiceTarget&) const = default;
};

/// Resolves host names. Whether one object may be used by the tasks of several loops depends on the
/// implementation.
class Resolver {
 public:
  Resolver() = default;
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  virtual ~Resolver() = default;

  /// Returns the addresses of `host` with `port`, the preferred one first, and at least one. A
  /// numeric address is returned without a lookup. Fails with errors of resolver_category(), for
  /// example EAI_NONAME if the host does not exist, with system errors, and with ECANCELED if the
  /// task is asked to stop.
  [[nodiscard]] virtual Task<Result<std::vector<Endpoint>>> resolve(
      std::string host, std::uint16_t port, AddressFamily family = AddressFamily::any) = 0;

  /// Invoked with all addresses that are known so far, the preferred one first. `complete`: it is
  /// the last call.
  using Found = Callback<void(const std::vector<Endpoint>& addresses, bool complete)>;
  /// Like resolve(), but invokes `found` as soon as the addresses of one family are known, for a
  /// caller that can start with them. Not invoked after the task has ended. By default, invokes it
  /// once, with the result of resolve().
  [[nodiscard]] virtual Task<Result<>> resolve_each(std::string host, std::uint16_t port,
                                                    AddressFamily family, Found found);

  /// The servers of a service by its SRV records, for example of "_imaps._tcp.example.org", in the
  /// order in which they are to be tried. Empty if there are none. By default, returns none.
  [[nodiscard]] virtual Task<Result<std::vector<ServiceTarget>>> find_srv(std::string service);
  /// The servers of https://HOST:PORT by the HTTPS records of the host, in the order in which they
  /// are to be tried. Empty if there are none. By default, returns none.
  [[nodiscard]] virtual Task<Result<std::vector<ServiceTarget>>> find_https(std::string host,
                                                                            std::uint16_t port);

  /// The system's resolver: getaddrinfo(3), which sorts addresses as in RFC 6724, on a thread of
  /// WorkerPool::names(). May be used by any task of any loop. Fails with EAGAIN if
  /// WorkerPool::queued_max() lookups are queued. A task that is asked to stop resumes at once and
  /// its result is dropped, but the thread stays busy until the lookup ends. In a simulation, it
  /// resolves the names of the hosts and "localhost".
  static Resolver& system();
};

}  // namespace tambour

#pragma GCC visibility pop
