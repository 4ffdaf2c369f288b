// What scrapes of a server's metrics cost its clients.
//
// A run consists of pairs of short measurements, one with scrapes and one without, which follow one
// another in one process: processes differ more than what scrapes cost.
#pragma once

#include <cstdint>
#include <vector>

#include "common/program.h"
#include "http/client.h"
#include "server/process.h"

namespace bench {

struct ScrapeWork {
  std::uint16_t metrics_port = 0;
  int scrapes = 1000;    ///< In all.
  int per_second = 10;   ///< Scrapes, during half of the time.
  int rate = 0;          ///< Requests per second; 0: as fast as the server answers.
  int milliseconds = 0;  ///< Of one measurement.
};

/// The server has an inspector at `metrics_port`. Without a rate, the figures are processor time of
/// the server for a request and time between responses; with a rate, they are latencies. Each is
/// the median, over the pairs, of the ratio with to without scrapes, with its 95 % confidence
/// interval. Processor time for scrapes counts, that of the scraper does not. Another figure is the
/// processor time of one scrape while there are no requests.
std::vector<Figure> measure_scrapes(const ServerProcess& server, HttpClients& clients,
                                    const ScrapeWork& work);

}  // namespace bench
