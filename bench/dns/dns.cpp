#include "dns/dns.h"

#include <cstdio>

#include "common/options.h"
#include "common/processor.h"
#include "dns/network.h"
#include "dns/responder.h"

namespace bench {

Lookups::Lookups(int count, int in_flight, bool cached, int first)
    : count_(count), in_flight_(in_flight), cached_(cached), number_(first) {}

const char* Lookups::next() {
  if (started_ == count_) return nullptr;
  char text[32];
  std::snprintf(text, sizeof text, "h%08d.bench.example", cached_ ? 0 : number_++);
  ++started_;
  name_ = text;
  return name_.c_str();
}

void Lookups::found(std::size_t addresses) {
  if (addresses != 2) fail("a lookup has found " + std::to_string(addresses) + " addresses, not 2");
  ++ended_;
}

int run_dns(int argc, char** argv, const std::function<DnsRun()>& make) {
  pinned_processor();
  int iterations = 1, cached = 0, in_flight = 0, lookups = 0;
  CommandLine line("Looks up host names.", iterations);
  line.add("--names", cached, "which names", {{"different", 0}, {"same", 1}});
  line.add("--in-flight", in_flight, "concurrent lookups", 1, 10'000);
  line.add("--lookups", lookups, "lookups of a run", 1, 10'000'000);
  line.parse_or_exit(argc, argv);

  enter_own_network();
  const Responder responder;
  const DnsRun subject = make();
  Report report;
  int first = 0;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    feed_watchdog();
    const auto run = [&](int count) {
      Lookups all(count, in_flight, cached != 0, first);
      first += count;
      subject.run(all);
      if (!all.finished()) fail("the loop has ended before all lookups have");
    };
    run(lookups / 5 + 1);
    const auto begin = own_cpu_ns();
    run(lookups);
    const double used = double(own_cpu_ns() - begin);
    report.add({{{"lookup_ns", used / lookups}, {"lookups_per_cpu_s", lookups / (used / 1e9)}}});
  }
  report.print(subject.info());
  return 0;
}

}  // namespace bench
