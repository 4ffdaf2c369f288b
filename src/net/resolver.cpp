// resolve(): getaddrinfo(3) on a worker thread, or the hosts of a simulation.
#include <tambour/net/resolver.h>

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/threads/worker_pool.h>

#include "backend/system.h"
#include "loop/core.h"

namespace tambour {
namespace {

/// Its texts are those of the C library.
class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "tambour.resolver"; }
  [[nodiscard]] std::string message(int value) const override { return ::gai_strerror(value); }
};

int family_of(AddressFamily family) noexcept {
  switch (family) {
    case AddressFamily::v4:
      return AF_INET;
    case AddressFamily::v6:
      return AF_INET6;
    case AddressFamily::any:
      break;
  }
  return AF_UNSPEC;
}

using Answer = Result<std::vector<Endpoint>>;

/// Runs on a worker thread and uses only its arguments.
Answer look_up(detail::backend::System& system, const std::string& host, std::uint16_t port,
               int family) {
  std::vector<sockaddr_storage> found;
  if (const int value = system.look_up(host.c_str(), family, found))
    return std::unexpected(resolver_error(value));
  std::vector<Endpoint> endpoints;
  for (const sockaddr_storage& address : found) {
    const auto* const any = reinterpret_cast<const sockaddr*>(&address);
    const bool is_v6 = address.ss_family == AF_INET6;
    const auto endpoint = Endpoint::from(any, is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    if (endpoint) endpoints.push_back(endpoint->with_port(port));
  }
  if (endpoints.empty()) return std::unexpected(resolver_error(EAI_NONAME));
  return endpoints;
}

class SystemResolver final : public Resolver {
 public:
  Task<Answer> resolve(std::string host, std::uint16_t port, AddressFamily family) override {
    const int wanted = family_of(family);
    // For getaddrinfo(3), a name ends at its first null byte.
    if (host.empty() || host.contains('\0')) co_return std::unexpected(resolver_error(EAI_NONAME));
    if (const auto literal = Endpoint::parse(host, port)) {
      if (wanted != AF_UNSPEC && wanted != literal->family())
        co_return std::unexpected(resolver_error(EAI_ADDRFAMILY));
      co_return std::vector<Endpoint>{*literal};
    }
    const TaskContext& context = co_await this_task;
    detail::backend::System& system = detail::loop::core_of(*context.loop).backend().system();
    // A named variable: GCC 12 destroys the captures of a temporary twice.
    auto question = [&system, host = std::move(host), port, wanted] {
      return look_up(system, host, port, wanted);
    };
    co_return co_await WorkerPool::names().run(std::move(question), WhenStopped::abandon);
  }
};

}  // namespace

const std::error_category& resolver_category() noexcept {
  static const Category category;
  return category;
}

Error resolver_error(int value) noexcept {
  if (value == EAI_SYSTEM) return system_error(errno);
  return {value, resolver_category()};
}

Task<Result<std::vector<ServiceTarget>>> Resolver::find_srv(std::string /*service*/) {
  co_return std::vector<ServiceTarget>();
}

Task<Result<std::vector<ServiceTarget>>> Resolver::find_https(std::string /*host*/,
                                                              std::uint16_t /*port*/) {
  co_return std::vector<ServiceTarget>();
}

Task<Result<>> Resolver::resolve_each(std::string host, std::uint16_t port, AddressFamily family,
                                      Found found) {
  const auto addresses = co_await resolve(std::move(host), port, family);
  if (!addresses) co_return std::unexpected(addresses.error());
  found(*addresses, true);
  co_return {};
}

Resolver& Resolver::system() {
  // Never destroyed: worker threads may still use it when the program exits.
  static auto* const resolver = new SystemResolver;
  return *resolver;
}

}  // namespace tambour
