#include "http/scrapes.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "common/scraper.h"

namespace bench {
namespace {

/// One measurement; the unit is nanoseconds.
struct Sample {
  double cpu = 0;       ///< Of the server for a request.
  double interval = 0;  ///< Between responses.
  double p50 = 0;
  double p99 = 0;
};

Sample measure(const ServerProcess& server, HttpClients& clients, const ScrapeWork& work) {
  const double seconds = work.milliseconds / 1e3;
  const auto before = server.cpu_ns();
  const auto began = now_ns();
  if (work.rate == 0) {
    const auto count = double(std::max<std::int64_t>(clients.run(seconds), 1));
    return {.cpu = double(server.cpu_ns() - before) / count,
            .interval = double(now_ns() - began) / count};
  }
  auto took = clients.run_at_rate(work.rate, seconds);
  if (took.empty()) fail("nothing was completed during the measurement");
  std::ranges::sort(took);
  const auto at = [&](double part) {
    return double(took[std::size_t(part * double(took.size() - 1))]);
  };
  return {.cpu = double(server.cpu_ns() - before) / double(took.size()),
          .p50 = at(0.5),
          .p99 = at(0.99)};
}

/// Processor time of the server for a scrape while it has nothing else to do. Less than the time
/// after which servers close connections without requests.
double scrape_cpu_ns(const ServerProcess& server, const Scraper& scraper) {
  constexpr unsigned measured_us = 5'000'000;
  server.wait_until_idle();
  const std::int64_t before = scraper.count();
  const std::int64_t cpu_before = server.cpu_ns();
  scraper.resume();
  usleep(measured_us);
  scraper.pause();
  server.wait_until_idle();
  const auto count = double(std::max<std::int64_t>(scraper.count() - before, 1));
  return double(server.cpu_ns() - cpu_before) / count;
}

/// The rank, from 0, of the lower end of the interval that contains the median of `count` values
/// with at least 95 %.
std::size_t lower_rank(std::size_t count) {
  double logarithm = -double(count) * std::log(2.0);  // The probability itself would become 0.
  double below = std::exp(logarithm);
  std::size_t rank = 0;
  while (rank + 1 < count / 2) {
    logarithm += std::log(double(count - rank) / double(rank + 1));
    if (below + std::exp(logarithm) > 0.025) break;
    below += std::exp(logarithm);
    ++rank;
  }
  return rank;
}

using Pair = std::pair<Sample, Sample>;  ///< With and without scrapes.

void append_ratio(std::vector<Figure>& figures, const std::vector<Pair>& pairs,
                  double Sample::* value, const std::array<std::string_view, 3>& names) {
  std::vector<double> ratios;
  for (const auto& [with, without] : pairs) {
    if (without.*value > 0) ratios.push_back(with.*value / (without.*value));
  }
  if (ratios.empty()) return;
  std::ranges::sort(ratios);
  const std::size_t low = lower_rank(ratios.size());
  // In per mille of the value without scrapes: figures have two decimals.
  const auto per_mille = [&](std::size_t i) { return (ratios[i] - 1) * 1e3; };
  figures.push_back({names[0], per_mille(ratios.size() / 2)});
  figures.push_back({names[1], per_mille(low)});
  figures.push_back({names[2], per_mille(ratios.size() - 1 - low)});
}

}  // namespace

std::vector<Figure> measure_scrapes(const ServerProcess& server, HttpClients& clients,
                                    const ScrapeWork& work) {
  const Scraper scraper(work.metrics_port, work.per_second);
  const auto sample = [&](bool is_scraped) {
    feed_watchdog();
    if (is_scraped) scraper.resume();
    const Sample result = measure(server, clients, work);
    scraper.pause();
    return result;
  };
  static_cast<void>(sample(true));  // Connects.
  if (scraper.count() == 0) fail("no metrics were received");
  const double scrape_ns = scrape_cpu_ns(server, scraper);
  const std::int64_t before = scraper.count();
  std::vector<Pair> pairs;
  std::int64_t last = 0;
  while (scraper.count() - before < work.scrapes) {
    if (pairs.size() % 100 == 99 && std::exchange(last, scraper.count()) == scraper.count())
      fail("the scraper has ended");
    Pair pair;
    // In both orders, so that a trend cancels out.
    const bool is_first = pairs.size() % 2 == 0;
    (is_first ? pair.first : pair.second) = sample(is_first);
    (is_first ? pair.second : pair.first) = sample(!is_first);
    pairs.push_back(pair);
  }
  std::vector<Figure> figures;
  figures.push_back({"pairs", double(pairs.size())});
  figures.push_back({"scrapes", double(scraper.count() - before)});
  figures.push_back({"scrape_cpu_ns", scrape_ns});
  append_ratio(figures, pairs, &Sample::cpu, {"cpu_more", "cpu_more_low", "cpu_more_high"});
  append_ratio(figures, pairs, &Sample::interval,
               {"interval_more", "interval_more_low", "interval_more_high"});
  append_ratio(figures, pairs, &Sample::p50, {"p50_more", "p50_more_low", "p50_more_high"});
  append_ratio(figures, pairs, &Sample::p99, {"p99_more", "p99_more_low", "p99_more_high"});
  return figures;
}

}  // namespace bench
