// nsd with one server process.
#include <unistd.h>

#include <string>

#include "dns_server/dns_server.h"

namespace {

std::string configuration(const bench::ServerOptions& options) {
  return "server:\n"
         "  server-count: 1\n"
         "  ip-address: 127.0.0.1@" +
         std::to_string(options.port) +
         "\n"
         "  username: \"\"\n"
         "  chroot: \"\"\n"
         "  database: \"\"\n"
         "  zonesdir: \"" +
         options.folder +
         "\"\n"
         "  pidfile: \"" +
         options.folder +
         "/nsd.pid\"\n"
         "  xfrdfile: \"" +
         options.folder +
         "/xfrd.state\"\n"
         "  xfrdir: \"" +
         options.folder +
         "\"\n"
         "  zonelistfile: \"" +
         options.folder +
         "/zone.list\"\n"
         "  tcp-count: 100\n"
         "  rrl-ratelimit: 0\n"
         "  verbosity: 0\n"
         "remote-control:\n"
         "  control-enable: no\n"
         "zone:\n"
         "  name: bench.example\n"
         "  zonefile: zone\n";
}

class Nsd {
 public:
  explicit Nsd(const bench::ServerOptions& options) : folder_(options.folder) {
    std::string zone =
        "$TTL 3600\n"
        "bench.example. SOA ns.bench.example. root.bench.example. 1 3600 600 86400 300\n"
        "bench.example. NS ns.bench.example.\n"
        "ns.bench.example. A 10.1.1.1\n";
    for (int i = 0; i < bench::names_in_zone(); ++i)
      zone += bench::name_of_host(i) + " A " + bench::address_of_host(i) + "\n";
    bench::write_file(folder_ + "/zone", zone);
    bench::write_file(folder_ + "/nsd.conf", configuration(options));
  }

  void run() const {
    execl(NSD, "nsd", "-d", "-c", (folder_ + "/nsd.conf").c_str(), nullptr);
    bench::fail_errno("nsd");
  }
  static bench::SubjectInfo info() {
    return {"nsd", bench::version_in_output(NSD " -v", "NSD version "), ""};
  }

 private:
  std::string folder_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_dns_server<Nsd>(argc, argv); }
