// The servers of resolv.conf(5), and what is known about them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/dns/resolver.h>
#include <tambour/net/endpoint.h>

#include "dns/transport/tcp_channel.h"
#include "dns/transport/udp_port.h"
#include "dns_message/resolv_conf.h"

namespace tambour::dns::detail {

/// Owns the connections to a server.
class Server {
 public:
  /// `is_tcp_only`: it is never queried over UDP.
  Server(Engine& engine, Endpoint endpoint, std::size_t number, bool is_tcp_only);

  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] std::size_t number() const noexcept { return number_; }
  [[nodiscard]] TcpChannel& tcp() noexcept { return tcp_; }
  [[nodiscard]] bool is_tcp_only() const noexcept { return is_tcp_only_; }

  /// A random one of a few open ports, the same one for all queries of an iteration; opens one more
  /// if there are few. Null, with `error`, if none can be opened.
  [[nodiscard]] UdpPort* port(Error& error);

  // Selection. An answer, a time that passed without one, and a port on which nothing listens or a
  // connection that cannot be made.
  void answered(std::int64_t round_trip_ns) noexcept;
  void timed_out() noexcept {
    ++timeouts_;
    if (++failures_ == failures_max) log_death();
  }
  void refused(std::int64_t now_ns) noexcept;
  /// True if it has not answered lately: it is queried only if all others fail, and now and then in
  /// addition to another.
  [[nodiscard]] bool is_dead() const noexcept { return failures_ >= failures_max; }
  /// Servers are queried in the order of this value: of their latency, but each one in the list
  /// needs a lead of 10 ms over the one before it.
  [[nodiscard]] std::int64_t cost_ns() const noexcept;
  /// How long to wait for an answer before another server is queried.
  [[nodiscard]] std::int64_t timeout_ns() const noexcept;
  /// True if a dead server should be probed in parallel: at most with each 32nd query and once in a
  /// second.
  [[nodiscard]] bool wants_probe(std::int64_t now_ns) noexcept;

  [[nodiscard]] dns::NameServerStats stats() const noexcept {
    return {.endpoint = endpoint_,
            .responses = responses_,
            .timeouts = timeouts_,
            .latency = Duration(smoothed_ns_),
            .is_responding = !is_dead()};
  }

  // EDNS.
  [[nodiscard]] bool has_edns() const noexcept;
  /// For some minutes: it has answered only without EDNS, perhaps because of a middlebox.
  void disable_edns() noexcept;
  /// The client's cookie, and the server's if it is known: RFC 7873, section 5.
  [[nodiscard]] std::string_view cookie() const noexcept { return cookie_; }
  /// Checks the cookie of a response, and remembers the server's. Returns false if the response is
  /// to be ignored.
  [[nodiscard]] bool accept_cookie(std::string_view received, std::int64_t now_ns);

  /// True if the kernel can cut a message into packets to this server: UDP_SEGMENT of udp(7).
  [[nodiscard]] bool can_segment() const noexcept { return can_segment_.value_or(false); }
  /// Finds out with a socket that is connected to the server.
  void examine_socket(int fd) noexcept;
  /// The device on the route to the server cannot.
  void disable_segments() noexcept { can_segment_ = false; }

  /// Closes ports that are spent or were not used since `since_ns`. Returns the time at which the
  /// next one was last used.
  std::int64_t close_idle(std::int64_t since_ns);
  /// In a forked child.
  void disown() noexcept;
  void close_all() noexcept;

 private:
  static constexpr unsigned failures_max = 2;

  void log_death() const noexcept;
  static constexpr std::size_t ports_open = 4;
  static constexpr std::size_t client_cookie_bytes = 8;

  Engine& engine_;
  Endpoint endpoint_;
  std::size_t number_;
  bool is_tcp_only_;
  std::vector<std::unique_ptr<UdpPort>> ports_;
  std::optional<bool> can_segment_;
  std::int64_t smoothed_ns_ = 0;  ///< 0: unknown.
  std::int64_t deviation_ns_ = 0;
  std::uint64_t responses_ = 0;
  std::uint64_t timeouts_ = 0;
  unsigned failures_ = 0;  ///< In a row.
  unsigned queries_since_probe_ = 0;
  std::int64_t probed_ns_ = 0;
  std::int64_t without_edns_until_ns_ = 0;
  std::string cookie_;
  std::int64_t without_cookie_ns_ = 0;  ///< Since when responses lack the cookie.
  TcpChannel tcp_;
};

/// The servers of one configuration. Queries in flight keep theirs when the configuration changes.
struct ServerSet {
  /// In a forked child that has lost the descriptors.
  void disown() const noexcept {
    for (const auto& server : servers) server->disown();
  }

  std::shared_ptr<const ResolvConf> conf;
  std::vector<std::unique_ptr<Server>> servers{};
  std::size_t rotation = 0;
  // Of Engine::retire().
  std::shared_ptr<ServerSet> next_retired{};
  bool is_retired = false;
};

}  // namespace tambour::dns::detail
