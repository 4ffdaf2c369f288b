// A process that requests the metrics of a server, as Prometheus does, on the processors of the
// clients: its processor time is not that of the server.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace bench {

/// Paused at first. Its requests share one connection, and do not overlap.
class Scraper {
 public:
  /// Forks. Requests /metrics from 127.0.0.1:`port`, `per_second` times a second; it connects with
  /// the first request. The calling process must have one thread.
  Scraper(std::uint16_t port, int per_second);
  /// Ends the process.
  ~Scraper();
  Scraper(const Scraper&) = delete;
  Scraper& operator=(const Scraper&) = delete;

  void resume() const { shared_->enabled = true; }
  /// A request may be in flight.
  void pause() const { shared_->enabled = false; }
  /// Responses that have arrived.
  std::int64_t count() const { return shared_->count; }

 private:
  struct Shared {
    std::atomic<bool> enabled = false;
    std::atomic<std::int64_t> count = 0;
  };
  [[noreturn]] void scrape(std::uint16_t port, int per_second);

  Shared* shared_;
  pid_t process_;
};

/// The scrapes a second of TAMBOUR_BENCH_OBSERVED=scraped, which TAMBOUR_BENCH_SCRAPES sets;
/// 0 without it.
int wanted_scrapes();

}  // namespace bench
