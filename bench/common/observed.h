// Tambour's inspector in a benchmark: with TAMBOUR_BENCH_OBSERVED=on, the loop is observed; with
// TAMBOUR_BENCH_OBSERVED=scraped, its metrics are also requested, TAMBOUR_BENCH_SCRAPES times a
// second (default 100). Without it, nothing of this runs.
#pragma once

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <tambour/tambour.h>

namespace bench {

/// Exists while the loop runs. The inspector has a thread of its own, as in a service with several
/// loops, and requests come from it too: their cost is counted with that of the process.
class Observed {
 public:
  explicit Observed(tambour::EventLoop& loop) {
    const char* const text = std::getenv("TAMBOUR_BENCH_OBSERVED");
    if (text == nullptr) return;
    collector_ = std::make_unique<tambour::inspector::Collector>(registry_);
    collector_->add(loop, "bench");
    tambour::inspector::InspectorOptions options;
    options.collector = collector_.get();
    inspector_ = std::make_unique<tambour::inspector::Inspector>(loop, std::move(options));
    if (std::string_view(text) == "scraped")
      thread_ = std::jthread([this](const std::stop_token& token) { scrape(token); });
  }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;
  ~Observed() = default;

 private:
  void scrape(const std::stop_token& token) const {
    tambour::EventLoop loop;
    auto server =
        tambour::or_throw(inspector_->listen(loop, tambour::Endpoint::loopback_v4(0)), "listen");
    const char* const text = std::getenv("TAMBOUR_BENCH_SCRAPES");
    const auto pause = std::chrono::microseconds(1'000'000 / (text ? std::atoi(text) : 100));
    auto repeat = [](tambour::EventLoop& on, std::string url, tambour::Duration wait,
                     std::stop_token until) -> tambour::Task<> {
      tambour::http::Client client(on);
      while (!until.stop_requested()) {
        auto response = co_await client.get(url);
        if (response) static_cast<void>(co_await response->read_text());
        static_cast<void>(co_await tambour::sleep_for(wait));
      }
    };
    tambour::block_on(
        loop, repeat(loop, "http://" + server.endpoint().to_string() + "/metrics", pause, token));
  }

  tambour::metrics::Registry registry_;
  std::unique_ptr<tambour::inspector::Collector> collector_;
  std::unique_ptr<tambour::inspector::Inspector> inspector_;
  std::jthread thread_;
};

}  // namespace bench
