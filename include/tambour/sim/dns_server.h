// A DNS server with injected faults for simulations: it loses, delays, reorders, truncates and
// refuses answers, and an attacker forges some. docs/dns.md shows how to use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tambour/base/clock.h>
#include <tambour/detail/namespaces.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/dns/message.h>
#include <tambour/dns/record.h>
#include <tambour/net/endpoint.h>
#include <tambour/sim/simulation.h>

#pragma GCC visibility push(default)

namespace tambour::sim {

/// Faults of a simulated DNS server, besides those of the network (sim::Options).
/// Probabilities range from 0 (never) to 1 (always). By default there are none.
struct DnsFaults {
  double loss = 0;        ///< That a query over UDP is not answered.
  double truncation = 0;  ///< That an answer over UDP is truncated, so that TCP must be used.
  double failure = 0;     ///< That the answer is SERVFAIL.
  /// How long answers are delayed, uniformly distributed; answers overtake each other.
  Duration delay_min{0};
  Duration delay_max{0};
  /// Answers that an off-path attacker sends before each genuine one over UDP. The attacker forges
  /// the address and port of the server, and knows the question and the address of the client; the
  /// attacker guesses the id, and never that of a query that the server has received, or knows the
  /// id and errs in the question.
  unsigned forged = 0;
  bool over_tcp = true;  ///< False: nothing listens on the TCP port.
};

/// Counters since the server was created.
struct DnsStats {
  std::uint64_t udp_queries = 0;
  std::uint64_t tcp_queries = 0;
  std::uint64_t lost = 0;
  std::uint64_t truncated = 0;
  std::uint64_t failed = 0;
  std::uint64_t forged = 0;  ///< Datagrams of the attacker.
};

/// A DNS server on a simulated host, at port 53, with a list of records.
///
///   sim::Simulation simulation(seed);
///   sim::DnsServer dns(simulation, simulation.add_host("dns"), {.loss = 0.2, .forged = 8});
///   dns.add("www.example.org", "192.0.2.1");
///   dns.configure(client);  // Its resolv.conf names this server.
///
/// Names without records do not exist; their absence may be cached for 30 s. CNAME records are
/// followed. All decisions are derived from the seed of the simulation.
///
/// Ownership: owns a loop on the host, which the simulation runs. Must be destroyed before the
/// simulation. Lifetime: cannot be moved.
/// Thread: that of the simulation.
class DnsServer {
 public:
  /// Throws std::system_error if the port is in use, and std::bad_alloc.
  DnsServer(Simulation& simulation, Host& host, const DnsFaults& faults = {});
  DnsServer(const DnsServer&) = delete;
  DnsServer& operator=(const DnsServer&) = delete;
  ~DnsServer();

  /// Adds a record to the zone. Throws std::bad_alloc.
  void add(dns::Record record);
  /// An IPv4 or IPv6 address of a name. Throws std::system_error if either is malformed.
  void add(std::string_view name, std::string_view address, std::uint32_t ttl = 60);
  /// The addresses of a simulated host, under its name and under "NAME.DOMAIN" if `domain` is not
  /// empty.
  void add(const Host& host, std::string_view domain = {});
  /// Removes all records.
  void clear() noexcept;

  /// Writes /etc/resolv.conf of a host with this server and further lines, for example
  /// "search example.org\n".
  void configure(Host& client, std::string_view more = {}) const;

  /// Changes affect later queries, except `over_tcp`.
  [[nodiscard]] DnsFaults& faults() noexcept;
  [[nodiscard]] const DnsStats& stats() const noexcept;

  /// Returns true if the address is from a forged response, which no record may contain.
  [[nodiscard]] static bool is_forged(const Endpoint& address);

 private:
  class [[gnu::visibility("hidden")]] State;
  tambour::detail::OwnedPointer<State> state_;
};

}  // namespace tambour::sim

#pragma GCC visibility pop
