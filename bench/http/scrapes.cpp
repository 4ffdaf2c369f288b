#include "http/scrapes.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/network.h"
#include "common/processor.h"

namespace bench {
namespace {

/// One connection, which the process of the clients uses between its requests: another process
/// would take the processor from them.
class MetricsClient {
 public:
  explicit MetricsClient(std::uint16_t port) : fd_(connect_to(port)) {}
  MetricsClient(const MetricsClient&) = delete;
  MetricsClient& operator=(const MetricsClient&) = delete;
  ~MetricsClient() { close(fd_); }

  bool is_in_flight() const { return sent_ns_ != 0; }
  void request(std::int64_t now) {
    constexpr std::string_view text = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    if (send(fd_, text.data(), text.size(), MSG_NOSIGNAL) != ssize_t(text.size()))
      fail_errno("metrics: send");
    sent_ns_ = now;
    response_.clear();
  }
  /// What has arrived, without waiting.
  void receive() {
    if (sent_ns_ == 0) return;
    const ssize_t got = recv(fd_, bytes_.data(), bytes_.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) fail_errno("metrics: recv");
    response_.append(bytes_.data(), std::size_t(got));
    // The text has lines, but no empty one, so that this is the last chunk.
    if (!response_.ends_with("\r\n0\r\n\r\n") && !has_whole_length()) return;
    if (!response_.starts_with("HTTP/1.1 200 ")) fail("metrics: unexpected response: " + response_);
    durations_.push_back(now_ns() - std::exchange(sent_ns_, 0));
  }
  /// Of each request.
  const std::vector<std::int64_t>& durations() const { return durations_; }

 private:
  bool has_whole_length() const {
    const std::size_t head = response_.find("\r\n\r\n");
    constexpr std::string_view name = "\r\nContent-Length: ";
    const std::size_t length = response_.find(name);
    if (head == std::string::npos || length == std::string::npos || length > head) return false;
    return response_.size() == head + 4 + std::stoul(response_.substr(length + name.size(), 20));
  }

  int fd_;
  std::int64_t sent_ns_ = 0;  ///< 0: no request is in flight.
  std::string response_;
  std::array<char, 65536> bytes_{};
  std::vector<std::int64_t> durations_;
};

struct Slot {
  bool is_scraped = false;
  std::int64_t begin_ns = 0;
  std::int64_t responses = 0;  ///< Until it began.
  std::int64_t cpu_ns = 0;     ///< Of the server, until it began.
};

/// Slots with even numbers begin with a scrape, unless the former one has not been answered.
class Slots {
 public:
  Slots(const ServerProcess& server, HttpClients& clients, const ScrapeWork& work)
      : server_(server),
        clients_(clients),
        metrics_(work.metrics_port),
        slot_ns_(500'000'000 / work.per_second) {
    clients_.set_between([this] { pass(); });
  }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  ~Slots() { clients_.set_between(nullptr); }

  std::int64_t length_ns() const { return slot_ns_; }
  const std::vector<Slot>& slots() const { return slots_; }
  const MetricsClient& metrics() const { return metrics_; }

 private:
  void pass() {
    metrics_.receive();
    const std::int64_t now = now_ns();
    if (now < due_ns_) return;
    due_ns_ = std::max(due_ns_, now - slot_ns_ / 2) + slot_ns_;
    feed_watchdog();
    const bool is_scraped = slots_.size() % 2 == 0 && !metrics_.is_in_flight();
    slots_.push_back({.is_scraped = is_scraped,
                      .begin_ns = now,
                      .responses = clients_.responses(),
                      .cpu_ns = cpu_ns(server_.process())});
    if (is_scraped) metrics_.request(now);
  }

  const ServerProcess& server_;
  HttpClients& clients_;
  MetricsClient metrics_;
  const std::int64_t slot_ns_;
  std::int64_t due_ns_ = now_ns();
  std::vector<Slot> slots_;
};

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

using Names = std::array<std::string_view, 3>;  ///< Of the median, and of its interval.

void append_median(std::vector<Figure>& figures, std::vector<double> values, const Names& names) {
  if (values.empty()) fail("nothing was completed during the measurement");
  std::ranges::sort(values);
  const std::size_t low = lower_rank(values.size());
  figures.push_back({names[0], values[values.size() / 2]});
  figures.push_back({names[1], values[low]});
  figures.push_back({names[2], values[values.size() - 1 - low]});
}

/// By how much the processor time of the server in a slot exceeds that of as many requests in the
/// slots `distance` before and after it. 1: of slots with scrapes, whose neighbours have none; 2:
/// of slots without, which are compared with slots without.
std::vector<double> excesses(const std::vector<Slot>& slots, std::size_t distance) {
  const auto cpu = [&](std::size_t i) { return double(slots[i + 1].cpu_ns - slots[i].cpu_ns); };
  const auto requests = [&](std::size_t i) {
    return double(slots[i + 1].responses - slots[i].responses);
  };
  std::vector<double> result;
  // The last slot has no end.
  for (std::size_t i = distance == 1 ? 2 : 3; i + distance + 1 < slots.size(); i += 2) {
    if (distance == 1 && !slots[i].is_scraped) continue;
    const double others = requests(i - distance) + requests(i + distance);
    if (others > 0)
      result.push_back(cpu(i) - (cpu(i - distance) + cpu(i + distance)) * requests(i) / others);
  }
  return result;
}

void append_cpu(std::vector<Figure>& figures, const Slots& run, const ScrapeWork& work) {
  const Slot& first = run.slots().front();
  const Slot& last = run.slots().back();
  const double requests = double(last.responses - first.responses);
  figures.push_back({"requests_per_s", requests * 1e9 / double(last.begin_ns - first.begin_ns)});
  figures.push_back({"request_cpu_ns", double(last.cpu_ns - first.cpu_ns) / requests});
  std::vector<double> excess = excesses(run.slots(), 1);
  append_median(figures, excess, {"scrape_cpu_ns", "scrape_cpu_ns_low", "scrape_cpu_ns_high"});
  append_median(figures, excesses(run.slots(), 2),
                {"control_cpu_ns", "control_cpu_ns_low", "control_cpu_ns_high"});
  // In per mille of a second of processor time.
  for (double& value : excess) value *= work.per_second / 1e6;
  append_median(figures, std::move(excess),
                {"throughput_less", "throughput_less_low", "throughput_less_high"});
}

/// The latencies of some seconds.
struct Block {
  enum Part : std::size_t { no_scrape, no_control, scrape, control, parts };

  void add(std::int64_t took_ns, bool is_scrape, bool is_control) {
    if (!is_scrape) took[no_scrape].push_back(took_ns);
    if (!is_control) took[no_control].push_back(took_ns);
    if (is_scrape) took[scrape].push_back(took_ns);
    if (is_control) took[control].push_back(took_ns);
  }
  double quantile(Part of, double share) {
    auto& values = took[of];
    const auto nth = values.begin() + std::ptrdiff_t(share * double(values.size() - 1));
    std::ranges::nth_element(values, nth);
    return double(*nth);
  }
  /// In per mille above 1.
  double ratio(Part a, Part b, double share) {
    return (quantile(a, share) / quantile(b, share) - 1) * 1e3;
  }

  bool has_all_parts() const {
    return std::ranges::none_of(took, [](const auto& values) { return values.empty(); });
  }

  std::array<std::vector<std::int64_t>, parts> took;
};

std::vector<Block> blocks_of(const Slots& run, std::vector<HttpLatency> latencies) {
  constexpr std::size_t slots_of_block = 50;
  const auto& slots = run.slots();
  std::vector<Block> blocks(slots.size() / slots_of_block);
  std::ranges::sort(latencies, {}, &HttpLatency::due_ns);
  std::size_t i = 0;
  for (const HttpLatency& latency : latencies) {
    while (i + 1 < slots.size() && slots[i + 1].begin_ns <= latency.due_ns) ++i;
    if (latency.due_ns < slots[i].begin_ns || i / slots_of_block >= blocks.size()) continue;
    const bool is_first = latency.due_ns - slots[i].begin_ns < run.length_ns() / 4;
    blocks[i / slots_of_block].add(latency.took_ns, is_first && slots[i].is_scraped,
                                   is_first && i % 2 == 1);
  }
  return blocks;
}

void append_latencies(std::vector<Figure>& figures, const Slots& run,
                      std::vector<HttpLatency> latencies) {
  std::vector<Block> blocks = blocks_of(run, std::move(latencies));
  // While the machine ran other programs, the server may have answered nothing for seconds.
  std::erase_if(blocks, [](const Block& block) { return !block.has_all_parts(); });
  figures.push_back({"blocks", double(blocks.size())});
  if (blocks.empty()) return;
  std::vector<double> p99_ns;
  p99_ns.reserve(blocks.size());
  for (Block& block : blocks) p99_ns.push_back(block.quantile(Block::no_scrape, 0.99));
  append_median(figures, std::move(p99_ns), {"p99_ns", "p99_ns_low", "p99_ns_high"});
  const auto append = [&](Block::Part a, Block::Part b, double share, const Names& names) {
    std::vector<double> ratios;
    ratios.reserve(blocks.size());
    for (Block& block : blocks) ratios.push_back(block.ratio(a, b, share));
    append_median(figures, std::move(ratios), names);
  };
  // Both lack as many requests, of as many slots: what else the choice of them changes cancels out.
  append(Block::no_control, Block::no_scrape, 0.5, {"p50_more", "p50_more_low", "p50_more_high"});
  append(Block::no_control, Block::no_scrape, 0.99, {"p99_more", "p99_more_low", "p99_more_high"});
  append(Block::scrape, Block::control, 0.99,
         {"during_p99_more", "during_p99_more_low", "during_p99_more_high"});
}

/// Which requests scrapes can have delayed: those that were in flight while one was answered, and
/// those that were due while such requests were in flight, because they may have waited for them.
class Delays {
 public:
  Delays(const Slots& run, std::vector<HttpLatency> latencies) {
    std::ranges::sort(latencies, {}, &HttpLatency::due_ns);
    std::vector<HttpLatency> windows = windows_of(run);
    scrapes_ = windows.size();
    extend_backwards(windows, latencies);
    std::size_t next = 0;
    std::int64_t end_ns = 0;  // Of the window that has begun.
    for (const HttpLatency& latency : latencies) {
      while (next < windows.size() && windows[next].due_ns <= latency.due_ns) {
        end_ns = std::max(end_ns, windows[next].due_ns + windows[next].took_ns);
        ++next;
      }
      if (latency.due_ns <= end_ns) {
        ++delayed_;
        end_ns = std::max(end_ns, latency.due_ns + latency.took_ns);
      } else {
        others_.push_back(latency.took_ns);
      }
    }
    if (others_.empty()) fail("all requests were in flight during scrapes");
    std::ranges::sort(others_);
  }

  /// The mean number of requests that a scrape can have delayed.
  double of_scrape() const { return double(delayed_) / double(scrapes_); }
  /// By how much the 99th percentile can have grown, at most, in per mille, if `rate` times as many
  /// scrapes were made: as if all requests that a scrape can delay had been among the fastest ones
  /// without it, and were among the slowest ones with it. Nothing if these are more than 1 % of all
  /// requests: the percentile would then be one of theirs, which has no bound.
  std::optional<double> p99_growth_max(double rate) const {
    const double delayed = double(delayed_) * rate;
    const double rank = 0.99 * (double(others_.size()) + delayed);
    if (rank >= double(others_.size())) return std::nullopt;
    return (at(rank) / at(rank - delayed) - 1) * 1e3;
  }

 private:
  /// From the request for metrics to their arrival, in the form of a latency.
  static std::vector<HttpLatency> windows_of(const Slots& run) {
    std::vector<HttpLatency> windows;
    const auto& durations = run.metrics().durations();
    for (const Slot& slot : run.slots()) {
      if (!slot.is_scraped) continue;
      if (windows.size() == durations.size()) break;  // The last one was not answered.
      windows.push_back({.due_ns = slot.begin_ns, .took_ns = durations[windows.size()]});
    }
    return windows;
  }
  /// Makes each window begin with the first request that was in flight at its beginning.
  static void extend_backwards(std::vector<HttpLatency>& windows,
                               const std::vector<HttpLatency>& latencies) {
    for (HttpLatency& window : windows) {
      const std::int64_t begin_ns = window.due_ns;
      // Requests that are in flight for longer than this are not considered.
      constexpr std::int64_t longest_ns = 1'000'000'000;
      auto latency =
          std::ranges::lower_bound(latencies, begin_ns - longest_ns, {}, &HttpLatency::due_ns);
      while (latency != latencies.end() && latency->due_ns + latency->took_ns < begin_ns) ++latency;
      if (latency == latencies.end() || latency->due_ns >= begin_ns) continue;
      window.took_ns += begin_ns - latency->due_ns;
      window.due_ns = latency->due_ns;
    }
    std::ranges::sort(windows, {}, &HttpLatency::due_ns);
  }
  double at(double rank) const { return double(others_[std::size_t(std::max(rank, 0.0))]); }

  std::size_t scrapes_ = 0;
  std::size_t delayed_ = 0;
  std::vector<std::int64_t> others_;  ///< Latencies.
};

void append_delays(std::vector<Figure>& figures, const Slots& run,
                   std::vector<HttpLatency> latencies, int per_second) {
  const Delays delays(run, std::move(latencies));
  figures.push_back({"delayed_requests", delays.of_scrape()});
  constexpr double prometheus_per_second = 1 / 15.0;
  if (const auto growth = delays.p99_growth_max(1)) figures.push_back({"p99_growth_max", *growth});
  if (const auto growth = delays.p99_growth_max(prometheus_per_second / per_second))
    figures.push_back({"p99_growth_max_prometheus", *growth});
}

}  // namespace

std::vector<Figure> measure_scrapes(const ServerProcess& server, HttpClients& clients,
                                    const ScrapeWork& work) {
  const double seconds = double(work.scrapes) / work.per_second;
  constexpr double warm_up = 0.5;
  std::vector<Figure> figures;
  if (work.rate == 0) {
    static_cast<void>(clients.run(warm_up));
  } else {
    static_cast<void>(clients.run_at_rate(work.rate, warm_up));
  }
  const Slots run(server, clients, work);
  std::vector<HttpLatency> latencies;
  if (work.rate == 0) {
    static_cast<void>(clients.run(seconds));
  } else {
    latencies = clients.run_at_rate(work.rate, seconds);
  }
  std::vector<std::int64_t> durations = run.metrics().durations();
  if (durations.empty()) fail("no metrics were received");
  std::ranges::sort(durations);
  figures.push_back({"scrapes", double(durations.size())});
  figures.push_back({"scrape_ns", double(durations[durations.size() / 2])});
  append_cpu(figures, run, work);
  if (work.rate != 0) {
    append_delays(figures, run, latencies, work.per_second);
    append_latencies(figures, run, std::move(latencies));
  }
  return figures;
}

}  // namespace bench
