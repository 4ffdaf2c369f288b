// A server of an upstream: its connections, its health, and its counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <tambour/base/clock.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/reverse_proxy.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "http/client/pool.h"
#include "http/client/shared.h"
#include "http/proxy/target.h"

namespace tambour::http::detail::proxy {

/// Shared by the proxy and the requests that are being passed on to it.
class Server {
 public:
  /// `host`: the address, or what the target has. `options` must outlive the server.
  Server(EventLoop& loop, const ReverseProxyOptions& options, const Target& target,
         std::string host);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Closes the connections that are not in use.
  ~Server();

  /// The upstreams have been replaced: it has another place among them, and another weight.
  void set_target(const Target& target) { target_ = target; }
  [[nodiscard]] const Target& target() const noexcept { return target_; }
  [[nodiscard]] const client::Origin& origin() const noexcept { return origin_; }
  [[nodiscard]] client::Shared& client() noexcept { return *client_; }
  /// Identifies the server for Balancing::consistent_hash.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }

  /// Begins the health checks, if there are any.
  void start_checks();
  /// Ends them, and closes the connections that are not in use.
  void stop();

  [[nodiscard]] bool is_ejected(TimePoint now) const noexcept { return now < ejected_until_; }
  [[nodiscard]] bool is_healthy() const noexcept { return is_healthy_; }
  [[nodiscard]] bool is_full() const noexcept { return active >= options_.connections_max; }
  void succeeded() noexcept {
    failures_ = 0;
    ejections_ = 0;
    ejected_until_ = TimePoint::min();
  }
  void failed() noexcept;

  [[nodiscard]] UpstreamStatus status() const;

  bool is_draining = false;
  std::size_t active = 0;
  std::uint64_t requests = 0;
  std::uint64_t retries = 0;
  std::int64_t turn = 0;  ///< For round robin.

 private:
  [[nodiscard]] Task<> check();
  [[nodiscard]] Task<Result<>> probe();
  void count_check(bool is_success) noexcept;

  EventLoop& loop_;
  const ReverseProxyOptions& options_;
  Target target_;
  client::Origin origin_;
  std::shared_ptr<client::Shared> client_;
  std::shared_ptr<client::Shared> check_client_;  ///< Null without checks.
  std::uint64_t hash_ = 0;
  bool is_healthy_ = true;
  unsigned checks_in_row_ = 0;  ///< With another result than `is_healthy_` says.
  unsigned failures_ = 0;       ///< In a row.
  unsigned ejections_ = 0;      ///< Since the last success.
  TimePoint ejected_until_ = TimePoint::min();
  std::uint64_t errors_ = 0;
  std::uint64_t all_ejections_ = 0;
  std::uint64_t failed_checks_ = 0;
  std::unique_ptr<TaskScope> checks_;  ///< Destroyed first.
};

}  // namespace tambour::http::detail::proxy
