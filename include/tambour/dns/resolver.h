// Name resolution on an event loop: hosts file, DNS and a cache.
//
// The default resolver of connect(). Reads /etc/resolv.conf, /etc/hosts and the hosts line of
// /etc/nsswitch.conf as getaddrinfo(3) does, and reloads them when they change. Uses no threads,
// unless nsswitch.conf names a source other than files and dns: for those, it calls
// Resolver::system().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/dns/message.h>
#include <tambour/dns/name.h>
#include <tambour/dns/record.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/resolver.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>

namespace tambour::dns::detail {
class Engine;
}  // namespace tambour::dns::detail

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

}  // namespace tambour

namespace tambour::dns {

/// How a resolver connects to its servers, if not over UDP and plain TCP: for example with
/// dns::over_tls() of <tambour/dns/over_tls.h>. Used by the loops of the resolvers that have it.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// Connects to a server, on the loop of the task. Messages on the stream have a length of two
  /// bytes, as over TCP. The queries for the server wait until the task ends. It is asked to stop
  /// after the `timeout` of resolv.conf(5), and must end then.
  [[nodiscard]] virtual Task<Result<SocketStream>> connect(Endpoint server) = 0;
  /// The port of the servers in resolv.conf(5).
  [[nodiscard]] virtual std::uint16_t port() const noexcept = 0;
};

/// Which servers a Resolver asks, for how long, and what it keeps.
struct ResolverOptions {
  /// A file with an empty name is not read.
  std::string resolv_conf = "/etc/resolv.conf";
  std::string hosts = "/etc/hosts";
  std::string nsswitch_conf = "/etc/nsswitch.conf";
  /// A lookup checks the files for changes if the last check was at least this long ago.
  Duration reload_interval = std::chrono::milliseconds(50);
  /// The environment variables LOCALDOMAIN and RES_OPTIONS: resolv.conf(5).
  bool environment = true;

  /// If not empty, these replace all of resolv.conf(5).
  std::vector<Endpoint> servers{};
  /// If not empty, replaces the search list.
  std::vector<std::string> search{};
  /// Options in the syntax of resolv.conf(5), for example "ndots:2", which are applied after those
  /// of the file.
  std::vector<std::string> settings{};

  /// If not null, all queries are sent over its streams, none over UDP or plain TCP, and sources of
  /// nsswitch.conf(5) besides files and dns are ignored unless `fallback` is set. Queries are
  /// padded: RFC 8467.
  std::shared_ptr<Transport> transport{};

  /// The memory limit of the cache. 0: no cache.
  std::size_t cache_bytes_max = std::size_t{4} << 20;
  Duration ttl_max = std::chrono::hours(24);          ///< The limit of the TTL.
  Duration negative_ttl_max = std::chrono::hours(3);  ///< RFC 2308.
  Duration failure_ttl = std::chrono::seconds(1);     ///< RFC 9520.

  /// The number of tasks that may wait for this resolver; further lookups fail with
  /// dns::ErrorCode::too_many_lookups.
  std::size_t lookups_max = std::size_t{1} << 16;
  /// The number of queries in flight, from 1 to 32,768; further ones wait.
  std::size_t queries_max = 4096;

  /// EDNS with 1232 bytes, which avoids TCP for larger responses. Servers that do not support it
  /// are queried without it.
  bool edns = true;
  bool cookies = true;  ///< RFC 7873. Requires `edns`.
  /// Randomizes the case of letters in queries (DNS 0x20); responses must repeat it. Adds one bit
  /// of entropy per letter. Some servers do not preserve the case.
  bool random_case = false;

  /// Sources besides files and dns. Null: Resolver::system(). Must outlive the resolver.
  tambour::Resolver* fallback = nullptr;
};

/// Counters since the resolver was created.
struct ResolverStats {
  std::uint64_t lookups = 0;  ///< Host names count once for each family.
  std::uint64_t cache_hits = 0;
  std::uint64_t coalesced = 0;  ///< Lookups that joined a query in flight.
  std::uint64_t udp_sent = 0;   ///< Datagrams.
  std::uint64_t tcp_sent = 0;   ///< Queries over TCP.
  std::uint64_t retries = 0;    ///< Of the above: repeated queries.
  std::uint64_t rejected = 0;   ///< Datagrams that matched no query, or were malformed.
  std::uint64_t reloads = 0;    ///< Changes of the files.
  std::uint64_t fallbacks = 0;  ///< Lookups passed to another resolver.
  std::size_t cache_bytes = 0;  ///< Now.
  std::size_t in_flight = 0;    ///< Queries now.
};

/// What a resolver knows about one of its servers.
struct NameServerStats {
  Endpoint endpoint{};
  std::uint64_t responses = 0;  ///< Also those with an error, such as NXDOMAIN.
  /// Queries that got no response in time.
  std::uint64_t timeouts = 0;
  /// The mean time of the last responses, smoothed as RFC 6298 defines; zero before the first one.
  Duration latency{};
  /// False after two timeouts in a row, or if nothing listens on its port: it is queried after all
  /// others, until it responds.
  bool is_responding = true;
};

/// A stub resolver on one loop.
///
/// Tasks of its loop may use it concurrently. Concurrent lookups of the same name and type share
/// one query. Responses are cached for their TTL, the absence of a name or type as RFC 2308
/// defines, failures for `failure_ttl`. If a task is destroyed or a stop is requested, its lookup
/// ends; a query that no task waits for is abandoned.
///
/// Security: each query has a random id and a random source port from a small pool whose sockets
/// are replaced after 128 queries; a response must come from the queried server and have the same
/// id and question. Records that do not belong to the queried name or to its chain of CNAME records
/// are ignored. Ownership: owns its sockets. Destroying it makes waiting tasks fail with ECANCELED.
/// Lifetime: cannot be moved. Must be destroyed before its loop.
/// Thread: must be used on the loop's thread, by tasks of that loop.
/// Loop: an idle resolver does not keep run() from returning.
class Resolver final : public tambour::Resolver {
 public:
  /// Throws std::bad_alloc. The files are read by the first lookup.
  explicit Resolver(EventLoop& loop, ResolverOptions options = {},
                    std::source_location created_at = std::source_location::current());
  ~Resolver() override;

  /// The resolver of a loop, with the default options; created by the first call and destroyed with
  /// the loop. Throws std::bad_alloc.
  [[nodiscard]] static Resolver& of(EventLoop& loop);

  /// See Resolver. The order of the addresses is that of RFC 6724. Besides the errors of
  /// resolver_category() that getaddrinfo(3) returns, fails with dns::ErrorCode::non_ascii_name and
  /// dns::ErrorCode::too_many_lookups.
  [[nodiscard]] Task<Result<std::vector<Endpoint>>> resolve(
      std::string host, std::uint16_t port, AddressFamily family = AddressFamily::any) override;
  [[nodiscard]] Task<Result<>> resolve_each(std::string host, std::uint16_t port,
                                            AddressFamily family, Found found) override;

  /// Queries the servers for records of one type, without hosts file and search list. Returns the
  /// response, with the remaining TTLs; it has at least one record of the type, or a CNAME. Its
  /// `authentic_data` is false unless the options have trust-ad: resolv.conf(5). Fails with
  /// dns::ErrorCode: no_such_name, no_data, server_failure, timeout and others; with ECANCELED.
  ///
  ///   auto mail = co_await resolver.query(name, dns::Type::mx);
  ///   if (!mail) co_return;
  ///   for (const dns::Mx* mx : mail->answers_of<dns::Mx>()) ...
  [[nodiscard]] Task<Result<Message>> query(Name name, Type type);
  /// Parses `name`, which is absolute with or without a trailing dot.
  [[nodiscard]] Task<Result<Message>> query(std::string name, Type type);

  /// The names of an address: from the hosts file, otherwise from PTR records. The first one is the
  /// preferred one. Fails with the errors of query(), and with EAFNOSUPPORT for a Unix name.
  [[nodiscard]] Task<Result<std::vector<std::string>>> reverse(Endpoint address);

  /// The addresses of a service by its SRV records, in the order in which they are to be tried:
  /// RFC 2782. `service` is, for example, "_ldap._tcp.example.org". Fails with
  /// dns::ErrorCode::no_data if there are no records, and with the errors of find_srv() and
  /// resolve().
  [[nodiscard]] Task<Result<std::vector<Endpoint>>> resolve_service(
      std::string service, AddressFamily family = AddressFamily::any);

  /// See Resolver; connect() follows the records with these. Besides the errors of query(),
  /// find_srv() fails with dns::ErrorCode::no_service if the domain declares that it does not offer
  /// the service. find_https() follows aliases (AliasMode), and omits records with mandatory
  /// parameters that it does not know.
  [[nodiscard]] Task<Result<std::vector<ServiceTarget>>> find_srv(std::string service) override;
  [[nodiscard]] Task<Result<std::vector<ServiceTarget>>> find_https(std::string host,
                                                                    std::uint16_t port) override;

  /// Forgets all answers, also negative ones. Lookups in progress are not affected.
  void clear_cache() noexcept;
  /// Counts since the resolver was made.
  [[nodiscard]] ResolverStats stats() const noexcept;
  /// Of the current servers, in the order of the configuration; empty before the first lookup.
  /// Counts begin again when the configuration changes. Throws std::bad_alloc.
  [[nodiscard]] std::vector<NameServerStats> name_server_stats() const;
  /// The current servers, in the order of the configuration.
  [[nodiscard]] std::vector<Endpoint> servers();

 private:
  tambour::detail::OwnedPointer<detail::Engine> engine_;
};

}  // namespace tambour::dns

#pragma GCC visibility pop
