#include "dns_server/dns_server.h"

#include <cstdio>
#include <fstream>

#include "common/options.h"
#include "common/processor.h"
#include "common/temporary_folder.h"
#include "server/process.h"

namespace bench {
namespace {

constexpr int names = 10'000;

std::string output_of(const std::string& command) {
  FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) fail_errno(command);
  std::string text;
  char bytes[4096];
  while (const std::size_t size = fread(bytes, 1, sizeof bytes, output)) text.append(bytes, size);
  pclose(output);
  return text;
}

/// The number that follows `label` in dnsperf's report.
double number_after(const std::string& text, const std::string& label) {
  const std::size_t at = text.find(label);
  if (at == std::string::npos) fail("dnsperf has printed no \"" + label + "\": " + text);
  return std::atof(text.c_str() + at + label.size());
}

/// Questions for all names, in an order that defeats the processor's caches.
std::string questions() {
  std::string text;
  for (int i = 0; i < names; ++i) text += name_of_host(i * 7919 % names) + " A\n";
  return text;
}

struct Load {
  int over_tcp = 0;
  int milliseconds = 0;
};

/// Runs dnsperf on the other processor, and returns the number of answers.
double ask(const ServerProcess& server, const std::string& folder, const Load& load) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3f", load.milliseconds / 1e3);
  const std::string report =
      output_of("dnsperf -s 127.0.0.1 -p " + std::to_string(server.port()) + " -d " + folder +
                "/questions -m " + (load.over_tcp != 0 ? "tcp" : "udp") + " -c 16 -q 200 -T 1 -l " +
                seconds + " 2>&1");
  const double completed = number_after(report, "Queries completed:");
  if (completed == 0 || number_after(report, "NOERROR") != completed)
    fail("not every answer is NOERROR: " + report);
  return completed;
}

}  // namespace

int names_in_zone() { return names; }

std::string name_of_host(int number) {
  char text[32];
  std::snprintf(text, sizeof text, "h%08d.bench.example.", number);
  return text;
}

std::string address_of_host(int number) {
  return "10.0." + std::to_string(number / 256) + "." + std::to_string(number % 256);
}

void write_file(const std::string& path, const std::string& text) {
  if (!(std::ofstream(path) << text).flush()) fail("cannot write " + path);
}

std::string version_in_output(const std::string& command, const std::string& word) {
  const std::string text = output_of(command + " 2>&1");
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return "unknown";
  const std::size_t begin = at + word.size();
  return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

int run_dns_server(int argc, char** argv, Serve serve) {
  pinned_processor();
  int iterations = 1;
  Load load;
  CommandLine line("Runs a DNS server and dnsperf.", iterations);
  line.add("--transport", load.over_tcp, "how queries are sent", {{"udp", 0}, {"tcp", 1}});
  line.add("--milliseconds", load.milliseconds, "length of a measurement", 10, 20'000);
  line.parse_or_exit(argc, argv);

  const TemporaryFolder folder;
  write_file(folder.path() + "/questions", questions());
  Report report;
  SubjectInfo info;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    feed_watchdog();
    ServerOptions options;
    options.folder = folder.path();
    const ServerProcess server(serve, options);
    server.wait_until_it_listens();
    ask(server, folder.path(), {load.over_tcp, load.milliseconds / 5 + 10});
    const auto before = server.cpu_ns();
    const double count = ask(server, folder.path(), load);
    const double used = double(server.cpu_ns() - before);
    report.add({{{"query_ns", used / count}, {"queries_per_cpu_s", count / (used / 1e9)}}});
    info = server.info();
  }
  report.print(info);
  return 0;
}

}  // namespace bench
