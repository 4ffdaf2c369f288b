// State: the servers of the upstreams, which names may change, and the budget of retries.
#include "http/proxy/state.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include <tambour/dns/resolver.h>
#include <tambour/task/sleep.h>

#include "http/proxy/forwarding.h"
#include "http_message/characters.h"

namespace tambour::http::detail::proxy {
namespace {

/// Each has the memory of a head: a few KiB.
constexpr std::size_t unused_max = 64;

}  // namespace

State::State(EventLoop& place, ReverseProxyOptions chosen)
    : loop(place),
      options(std::move(chosen)),
      retries_left(options.retry.budget_max),
      is_resolved(loop) {
  unused.reserve(unused_max);
  // A name that is no field value is not sent.
  const std::string name(trim(options.via));
  if (!name.empty() && is_field_value(name)) via_ = {"1.0 " + name, "1.1 " + name, "2 " + name};
}

State::~State() = default;

void State::remove_servers(auto is_removed) {
  std::erase_if(servers, [&](const std::shared_ptr<Server>& server) {
    if (!is_removed(*server)) return false;
    server->stop();
    return true;
  });
}

void State::set_servers(const Target& target, std::span<const std::string> hosts) {
  remove_servers([&](const Server& server) {
    return server.target().url == target.url &&
           std::ranges::count(hosts, server.origin().host) == 0;
  });
  for (const std::string& host : hosts) {
    const auto found = std::ranges::find_if(servers, [&](const auto& server) {
      return server->target().url == target.url && server->origin().host == host;
    });
    if (found != servers.end()) {
      (*found)->set_target(target);
      continue;
    }
    const auto server = std::make_shared<Server>(loop, options, target, host);
    servers.push_back(server);
    server->start_checks();
  }
}

void State::set_addresses(const Target& target, const std::vector<Endpoint>& addresses) {
  std::vector<std::string> hosts;
  for (const Endpoint& endpoint : addresses) {
    if (hosts.size() < options.addresses_max) hosts.push_back(endpoint.address());
  }
  set_servers(target, hosts);
}

void State::set_targets(std::vector<Target> parsed) {
  names = std::make_unique<TaskScope>(loop);
  targets = std::move(parsed);
  remove_servers([&](const Server& server) {
    return std::ranges::none_of(
        targets, [&](const Target& target) { return target.url == server.target().url; });
  });
  unresolved = static_cast<std::size_t>(std::ranges::count_if(targets, &Target::is_name));
  is_resolved.reset();
  if (unresolved == 0) is_resolved.set();
  for (const Target& target : targets) {
    if (!target.is_name) {
      set_servers(target, std::span(&target.host, 1));
      continue;
    }
    // Servers that are known already have another index or weight now.
    for (const auto& server : servers) {
      if (server->target().url == target.url) server->set_target(target);
    }
    names->spawn(resolve(target));
  }
}

void State::shut_down() {
  is_shut_down = true;
  names.reset();
  is_resolved.set();
  for (const auto& server : servers) server->stop();
}

Task<> State::resolve(Target target) {
  constexpr Duration retry_delay = std::chrono::seconds(1);
  Resolver* const resolver =
      options.connect.resolver != nullptr ? options.connect.resolver : &dns::Resolver::of(loop);
  for (bool is_first = true;; is_first = false) {
    bool is_found = false;
    try {
      auto lookup = resolver->resolve(target.host, target.port, options.connect.family);
      const auto found = co_await std::move(lookup);
      if (found) set_addresses(target, *found);
      is_found = found.has_value();
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): tried again soon.
    }
    if (is_first && --unresolved == 0) is_resolved.set();
    if (is_found && options.resolve_interval <= Duration::zero()) co_return;
    const Duration delay = is_found ? options.resolve_interval : retry_delay;
    const auto slept = co_await sleep_for(delay);
    if (!slept) co_return;
  }
}

bool State::take_retry() noexcept {
  if (retries_left < 1) {
    ++stats.retries_refused;
    return false;
  }
  retries_left -= 1;
  ++stats.retries;
  return true;
}

void State::earn_retry() noexcept {
  retries_left =
      std::min(retries_left + options.retry.budget, static_cast<double>(options.retry.budget_max));
}

}  // namespace tambour::http::detail::proxy
