// Metrics of the servers of a resolver, which change with its configuration.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <tambour/dns/resolver.h>
#include <tambour/metrics/registry.h>

#include "inspector/observed_loops.h"
#include "inspector/sampled.h"

namespace tambour::inspector {

/// Registers the metrics of a server when it is first seen, and removes them when it is no longer
/// configured.
class NameServers final : public Sample {
 public:
  /// On the thread of the loop.
  NameServers(std::shared_ptr<ObservedLoop> loop, metrics::Registry& registry,
              const dns::Resolver& resolver, std::string resolver_name)
      : Sample(std::move(loop)),
        registry_(registry),
        resolver_(&resolver),
        resolver_name_(std::move(resolver_name)) {
    update();
  }

  void sample() noexcept override;
  void remove() noexcept override;

 private:
  /// Read while metrics are formatted, on any thread.
  struct Values {
    std::atomic<std::uint64_t> responses = 0;
    std::atomic<std::uint64_t> timeouts = 0;
    std::atomic<double> latency_s = 0;
    std::atomic<bool> is_responding = true;
  };
  struct Entry {
    Endpoint endpoint;
    std::shared_ptr<Values> values;
    std::vector<metrics::Registration> registrations;
  };

  void update();
  Entry make_entry(const Endpoint& endpoint);

  metrics::Registry& registry_;
  std::mutex mutex_;               ///< Of the following.
  const dns::Resolver* resolver_;  ///< Null: removed.
  const std::string resolver_name_;
  std::vector<Entry> entries_;
};

}  // namespace tambour::inspector
