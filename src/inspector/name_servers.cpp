// NameServers: the metrics of each server of a resolver.
#include "inspector/name_servers.h"

#include <chrono>
#include <iterator>

namespace tambour::inspector {

void NameServers::sample() noexcept {
  try {
    update();
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the values stay as they are.
  }
}

void NameServers::remove() noexcept {
  std::vector<Entry> removed;
  const std::lock_guard lock(mutex_);
  resolver_ = nullptr;
  removed.swap(entries_);
}

void NameServers::update() {
  const std::lock_guard lock(mutex_);
  if (resolver_ == nullptr) return;
  const std::vector<dns::NameServerStats> servers = resolver_->name_server_stats();
  std::erase_if(entries_, [&](const Entry& entry) {
    return std::ranges::find(servers, entry.endpoint, &dns::NameServerStats::endpoint) ==
           servers.end();
  });
  for (const dns::NameServerStats& server : servers) {
    auto entry = std::ranges::find(entries_, server.endpoint, &Entry::endpoint);
    if (entry == entries_.end()) {
      entries_.push_back(make_entry(server.endpoint));
      entry = std::prev(entries_.end());
    }
    Values& values = *entry->values;
    values.responses = server.responses;
    values.timeouts = server.timeouts;
    values.latency_s = std::chrono::duration<double>(server.latency).count();
    values.is_responding = server.is_responding;
  }
}

NameServers::Entry NameServers::make_entry(const Endpoint& endpoint) {
  const metrics::Labels labels = {{"resolver", resolver_name_}, {"server", endpoint.to_string()}};
  Entry entry{.endpoint = endpoint, .values = std::make_shared<Values>(), .registrations = {}};
  const std::shared_ptr<Values>& values = entry.values;
  const auto keep = [&](metrics::Registration registration) {
    entry.registrations.push_back(std::move(registration));
  };
  keep(registry_.counter_function(
      "tambour_dns_name_server_responses_total", "Responses of a name server.", labels,
      [values] { return static_cast<double>(values->responses.load()); }));
  keep(registry_.counter_function(
      "tambour_dns_name_server_timeouts_total", "Times that passed without a response.", labels,
      [values] { return static_cast<double>(values->timeouts.load()); }));
  keep(registry_.gauge_function("tambour_dns_name_server_latency_seconds",
                                "The smoothed time until a response; 0 before the first one.",
                                labels, [values] { return values->latency_s.load(); }));
  keep(registry_.gauge_function("tambour_dns_name_server_up",
                                "0 after two timeouts in a row, or if its port is closed.", labels,
                                [values] { return values->is_responding ? 1.0 : 0.0; }));
  return entry;
}

}  // namespace tambour::inspector
