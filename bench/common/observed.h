// Tambour's inspector in a benchmark: with TAMBOUR_BENCH_OBSERVED=on, the loop is observed; with
// TAMBOUR_BENCH_OBSERVED=scraped, another process also requests its metrics,
// TAMBOUR_BENCH_SCRAPES times a second (default 100). Without it, nothing of this runs.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include <tambour/tambour.h>

#include "common/network.h"
#include "common/scraper.h"

namespace bench {

/// Exists while the loop runs. The inspector has a thread of its own, as in a service with several
/// loops; its cost is counted with that of the process.
class Observed {
 public:
  /// `metrics_port`: the port of the metrics, see ServerOptions. If it is 0, this object chooses
  /// one and starts a scraper if TAMBOUR_BENCH_OBSERVED is "scraped".
  explicit Observed(tambour::EventLoop& loop, std::uint16_t metrics_port = 0) {
    if (std::getenv("TAMBOUR_BENCH_OBSERVED") == nullptr && metrics_port == 0) return;
    if (metrics_port == 0 && wanted_scrapes() != 0) {
      metrics_port = free_port();
      scraper_.emplace(metrics_port, wanted_scrapes());
      scraper_->resume();
    }
    collector_ = std::make_unique<tambour::inspector::Collector>(registry_);
    collector_->add(loop, "bench");
    tambour::inspector::InspectorOptions options;
    options.collector = collector_.get();
    inspector_ = std::make_unique<tambour::inspector::Inspector>(loop, std::move(options));
    if (metrics_port != 0)
      thread_ = std::jthread(
          [this, metrics_port](const std::stop_token& token) { serve(metrics_port, token); });
  }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;
  ~Observed() = default;

 private:
  void serve(std::uint16_t port, const std::stop_token& token) const {
    tambour::EventLoop loop;
    const auto server =
        tambour::or_throw(inspector_->listen(loop, tambour::Endpoint::loopback_v4(port)), "listen");
    const std::stop_callback stop(token, [&loop] { loop.stop(); });
    loop.run();
  }

  tambour::metrics::Registry registry_;
  std::unique_ptr<tambour::inspector::Collector> collector_;
  std::unique_ptr<tambour::inspector::Inspector> inspector_;
  std::jthread thread_;
  std::optional<Scraper> scraper_;  ///< Ends before the server of its metrics.
};

}  // namespace bench
