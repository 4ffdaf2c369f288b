// State: which server gets a request.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include <tambour/net/endpoint.h>

#include "http/proxy/state.h"

namespace tambour::http::detail::proxy {
namespace {

using Servers = std::span<const std::shared_ptr<Server>>;

/// Smooth weighted round robin, as in nginx: the turns of a server are spread among those of
/// others.
std::shared_ptr<Server> next_in_turn(Servers among) {
  std::int64_t total = 0;
  const std::shared_ptr<Server>* chosen = nullptr;
  for (const auto& server : among) {
    server->turn += server->target().weight;
    total += server->target().weight;
    if (chosen == nullptr || server->turn > (*chosen)->turn) chosen = &server;
  }
  (*chosen)->turn -= total;
  return *chosen;
}

std::shared_ptr<Server> least_used(Servers among) {
  const auto is_used_less = [](const Server& a, const Server& b) {
    return static_cast<double>(a.active + 1) / a.target().weight <
           static_cast<double>(b.active + 1) / b.target().weight;
  };
  std::vector<std::shared_ptr<Server>> best;
  for (const auto& server : among) {
    if (!best.empty() && is_used_less(*server, *best.front())) best.clear();
    if (best.empty() || !is_used_less(*best.front(), *server)) best.push_back(server);
  }
  return next_in_turn(best);
}

std::uint64_t mixed(std::uint64_t value) noexcept {
  // The finalizer of splitmix64.
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

/// Rendezvous hashing with weights: if a server leaves, only its keys move.
std::shared_ptr<Server> best_for(std::string_view key, Servers among) {
  const std::uint64_t key_hash = std::hash<std::string_view>()(key);
  const std::shared_ptr<Server>* chosen = nullptr;
  double best = -std::numeric_limits<double>::infinity();
  for (const auto& server : among) {
    const std::uint64_t hash = mixed(key_hash ^ mixed(server->hash()));
    const double uniform = (static_cast<double>(hash >> 11U) + 0.5) * 0x1p-53;
    const double score = -static_cast<double>(server->target().weight) / std::log(uniform);
    if (chosen != nullptr && score <= best) continue;
    best = score;
    chosen = &server;
  }
  return *chosen;
}

std::string client_address(const Request& request) {
  const auto peer = request.connection().peer_endpoint();
  const auto address = peer ? peer->ip_address() : std::nullopt;
  return address ? address->unmapped().to_string() : std::string();
}

}  // namespace

std::shared_ptr<Server> State::pick(Servers among, const Request& request) {
  if (among.size() == 1) return among.front();
  switch (options.balancing) {
    case Balancing::least_requests:
      return least_used(among);
    case Balancing::consistent_hash:
      return best_for(options.hash_key ? options.hash_key(request) : client_address(request),
                      among);
    case Balancing::round_robin:
      break;
  }
  return next_in_turn(among);
}

std::shared_ptr<Server> State::choose(const Request& request, Servers tried) {
  const TimePoint now = loop.now();
  if (servers.size() == 1 && tried.empty()) {
    const auto& only = servers.front();
    return only->is_draining || !only->is_healthy() ? nullptr : only;
  }
  const auto collect = [&](auto is_candidate) {
    candidates_.clear();
    for (const auto& server : servers) {
      if (server->is_draining || !server->is_healthy()) continue;
      if (std::ranges::count(tried, server) == 0 && is_candidate(*server))
        candidates_.push_back(server);
    }
    return !candidates_.empty();
  };
  if (options.choose_upstream && tried.empty()) {
    const auto index = options.choose_upstream(request);
    if (index && collect([&](const Server& server) {
          return server.target().index == *index && !server.is_ejected(now);
        }))
      return pick(candidates_, request);
  }
  if (collect([now](const Server& server) { return !server.is_ejected(now) && !server.is_full(); }))
    return pick(candidates_, request);
  // A full server may have room soon. If all are ejected, one of them may work after all.
  if (collect([now](const Server& server) { return !server.is_ejected(now); }) ||
      (tried.empty() && collect([](const Server&) { return true; })))
    return pick(candidates_, request);
  return nullptr;
}

}  // namespace tambour::http::detail::proxy
