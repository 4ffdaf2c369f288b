// What scrapes of a server's metrics cost its clients.
//
// Processes, and minutes of one process, differ by more than a scrape costs. So one run consists of
// short slots, of which every second one begins with a scrape, and each is compared with its
// neighbours; and two sets of latencies are compared, which have most requests in common: one lacks
// the requests that were due after a scrape, the other as many at the same times without one.
#pragma once

#include <cstdint>
#include <vector>

#include "common/program.h"
#include "http/client.h"
#include "server/process.h"

namespace bench {

struct ScrapeWork {
  std::uint16_t metrics_port = 0;
  int scrapes = 1000;   ///< In all.
  int per_second = 10;  ///< Scrapes.
  int rate = 0;         ///< Requests per second; 0: as fast as the server answers.
};

/// The server has an inspector at `metrics_port`. Each figure of the following is a median with its
/// 95 % confidence interval; those whose names begin with "control" compare slots without scrapes
/// with each other, in the same way. Ratios are in per mille.
///
/// - scrape_cpu_ns: the processor time of the server for a scrape: by how much that of a slot with
///   one exceeds that of as many requests in its neighbours;
/// - throughput_less: the share of a second of processor time that the scrapes of a second take;
/// - with a rate, of blocks of 50 slots: p99_ns, without scrapes; p50_more and p99_more, by how
///   much the latency of the requests that were not due in the first quarter of a slot without a
///   scrape exceeds that of those that were not due in the first quarter of a slot with one;
///   during_p99_more, by how much the latency in the quarter of a slot after a scrape exceeds that
///   in the first quarter of slots without one.
///
/// Another figure is the median of the time until the metrics have arrived, scrape_ns. With a rate,
/// these are counted, and not compared: delayed_requests, how many requests a scrape can have
/// delayed on average; p99_growth_max, by how much the 99th percentile has grown at most, which is
/// left out if more than 1 % of the requests can have been delayed; and p99_growth_max_prometheus,
/// the same with one scrape in 15 s.
std::vector<Figure> measure_scrapes(const ServerProcess& server, HttpClients& clients,
                                    const ScrapeWork& work);

}  // namespace bench
