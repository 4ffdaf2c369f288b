// What a reverse proxy and its handlers share.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>
#include <tambour/http/reverse_proxy.h>
#include <tambour/loop/event_loop.h>
#include <tambour/net/endpoint.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "http/proxy/server.h"
#include "http/proxy/target.h"

namespace tambour::http::detail::proxy {

class Forwarding;

struct State {
  State(EventLoop& place, ReverseProxyOptions chosen);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  /// Makes the servers of addresses, and begins to resolve names.
  void set_targets(std::vector<Target> parsed);
  /// Ends what runs without requests.
  void shut_down();

  /// A server that works, or null. Those in `tried` are not chosen again.
  [[nodiscard]] std::shared_ptr<Server> choose(const Request& request,
                                               std::span<const std::shared_ptr<Server>> tried);
  /// Whether a request may be sent once more.
  [[nodiscard]] bool take_retry() noexcept;
  void earn_retry() noexcept;
  /// The value of the field Via for a request that was received in this version. Empty: none.
  [[nodiscard]] const std::string& via(Version received) const noexcept {
    return received == Version::http_1_1   ? via_[1]
           : received == Version::http_1_0 ? via_[0]
                                           : via_[2];
  }

  EventLoop& loop;
  ReverseProxyOptions options;
  std::vector<Target> targets;
  std::vector<std::shared_ptr<Server>> servers;
  ReverseProxyStats stats;
  double retries_left;
  bool is_shut_down = false;
  std::size_t unresolved = 0;  ///< Names whose first lookup has not ended.
  TaskEvent is_resolved;       ///< Set while `unresolved` is 0.
  /// Of requests that have ended; at most its capacity.
  std::vector<std::unique_ptr<Forwarding>> unused;
  std::unique_ptr<TaskScope> names;  ///< Destroyed first.

 private:
  [[nodiscard]] Task<> resolve(Target target);
  void set_addresses(const Target& target, const std::vector<Endpoint>& addresses);
  void set_servers(const Target& target, std::span<const std::string> hosts);
  void remove_servers(auto is_removed);
  [[nodiscard]] std::shared_ptr<Server> pick(std::span<const std::shared_ptr<Server>> among,
                                             const Request& request);

  std::array<std::string, 3> via_;                   ///< For HTTP/1.0, HTTP/1.1 and HTTP/2.
  std::vector<std::shared_ptr<Server>> candidates_;  ///< For choose(), which keeps its memory.
};

/// Passes a request on. The body of a handler.
[[nodiscard]] Task<> forward(std::shared_ptr<State> state, Request& request, Response& response);

}  // namespace tambour::http::detail::proxy
