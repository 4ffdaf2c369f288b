// An urgent request of HTTP/2 while downloads occupy its connection: how long its response takes,
// and how many bytes of the downloads arrive before it.
#pragma once

#include <cstdint>
#include <vector>

#include "common/program.h"

namespace bench {

struct UrgentWork {
  bool tls = false;
  int downloads = 1;  ///< That are in progress at any time.
  int probes = 1;     ///< Urgent requests, one after the other.
};

/// `port` is that of the server on 127.0.0.1. The client reads 100 MB/s, with a receive buffer of
/// 256 KiB.
std::vector<Figure> measure_urgent(std::uint16_t port, const UrgentWork& work);

}  // namespace bench
