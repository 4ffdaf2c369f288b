// What a collector has registered, and the samples that it refreshes.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <tambour/inspector/collector.h>
#include <tambour/metrics/registry.h>

#include "inspector/observed_loops.h"
#include "inspector/sampled.h"

namespace tambour::inspector {

/// A member of a structure of statistics, as a metric. Counters end in "_total".
template <class Stats>
struct Row {
  const char* name;
  const char* help;
  double (*value)(const Stats& stats);
};

/// For Row::value.
template <auto member, class Stats>
double value_of(const Stats& stats) {
  return static_cast<double>(stats.*member);
}

/// Ownership: shared by the collector, its handlers and what it has posted to loops.
class Collector::State : public std::enable_shared_from_this<State> {
 public:
  explicit State(metrics::Registry& registry) : registry_(registry) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() = default;

  [[nodiscard]] metrics::Registry& registry() const noexcept { return registry_; }

  void add(const char* name, const char* help, const metrics::Labels& labels,
           std::function<double()> value) {
    const bool is_counter = std::string_view(name).ends_with("_total");
    keep(is_counter ? registry_.counter_function(name, help, labels, std::move(value))
                    : registry_.gauge_function(name, help, labels, std::move(value)));
  }
  /// `read` returns the statistics.
  template <class Rows, class Read>
  void add_rows(const Rows& rows, const metrics::Labels& labels, const Read& read) {
    for (const auto& row : rows)
      add(row.name, row.help, labels, [read, value = row.value] { return value(read()); });
  }
  /// `read` is called on the thread of `loop`, which is the calling one.
  template <class Rows, class Read>
  void add_sampled(EventLoop& loop, const Rows& rows, const metrics::Labels& labels, Read read) {
    using Stats = std::decay_t<std::invoke_result_t<Read&>>;
    auto sample = std::make_shared<SampleOf<Stats>>(observed(loop), std::move(read));
    add_rows(rows, labels, [sample] { return sample->get(); });
    const std::lock_guard lock(mutex_);
    samples_.push_back(std::move(sample));
  }
  /// The servers of a resolver. On the thread of `loop`.
  void add_name_servers(EventLoop& loop, const dns::Resolver& resolver, const std::string& name);
  void add_loop(const std::shared_ptr<ObservedLoop>& loop);
  void keep(metrics::Registration registration);
  /// False if refresh() has nothing to do: all values are read when they are formatted.
  [[nodiscard]] bool has_samples() {
    const std::lock_guard lock(mutex_);
    return !samples_.empty();
  }

  /// The collector is destroyed.
  void clear() noexcept;
  static Task<> refresh(std::shared_ptr<State> self, Duration patience);

 private:
  [[nodiscard]] std::shared_ptr<ObservedLoop> observed(EventLoop& loop);

  metrics::Registry& registry_;
  std::mutex mutex_;
  std::vector<metrics::Registration> registrations_;
  std::vector<std::shared_ptr<Sample>> samples_;
};

}  // namespace tambour::inspector
