// Runs h2load, and reads what it prints.
#include "http/h2load.h"

#include <array>
#include <cstdio>
#include <string_view>

namespace bench {
namespace {

/// What h2load prints about the main part of its run.
struct Outcome {
  std::int64_t cpu_ns = -1;  ///< Of the server.
  double requests = -1;
  double failed = 0;
  double data_bytes = 0;
};

std::string command_of(const ServerProcess& server, const Http2Load& load) {
  const std::string number = std::to_string(load.milliseconds);
  // A client that a server leaves without a response would not end.
  std::string command = "timeout -s KILL " + std::to_string(load.milliseconds / 1000 + 20) +
                        " h2load --warm-up-time " + std::to_string(load.milliseconds / 5 + 1) +
                        "ms -D " + number + "ms -c " + std::to_string(load.connections) + " -m " +
                        std::to_string(load.streams) + " --tls13-ciphers TLS_AES_128_GCM_SHA256";
  if (!load.upload_file.empty()) command += " -d " + load.upload_file;
  command += (load.tls ? " 'https://127.0.0.1:" : " 'http://127.0.0.1:") +
             std::to_string(server.port()) + load.target + "'";
  return command + " 2>&1";
}

/// The number before `unit`.
double number_before(std::string_view line, std::string_view unit) {
  std::size_t end = line.find(unit);
  if (end == std::string_view::npos) fail("h2load printed no number of" + std::string(unit));
  if (line[end - 1] == ')') --end;
  const std::size_t begin = line.find_last_not_of("0123456789", end - 1) + 1;
  return std::stod(std::string(line.substr(begin, end - begin)));
}

void read_line(std::string_view line, const ServerProcess& server, Outcome& outcome) {
  if (line.starts_with("Warm-up phase is over")) {
    outcome.cpu_ns = server.cpu_ns();
  } else if (line.starts_with("Main benchmark duration is over")) {
    outcome.cpu_ns = server.cpu_ns() - outcome.cpu_ns;
  } else if (line.starts_with("requests:")) {
    outcome.requests = number_before(line, " succeeded");
    outcome.failed = number_before(line, " failed") + number_before(line, " errored");
  } else if (line.starts_with("status codes:")) {
    outcome.failed += number_before(line, " 4xx") + number_before(line, " 5xx");
  } else if (line.starts_with("traffic:")) {
    outcome.data_bytes = number_before(line, " data");
  }
}

}  // namespace

std::vector<Figure> run_h2load(const ServerProcess& server, const Http2Load& load) {
  Outcome outcome;
  std::FILE* const output = popen(command_of(server, load).c_str(), "r");
  if (output == nullptr) fail_errno("h2load");
  std::string printed;
  for (std::array<char, 512> line; fgets(line.data(), int(line.size()), output) != nullptr;) {
    printed += line.data();
    read_line(line.data(), server, outcome);
  }
  if (pclose(output) != 0 || outcome.requests < 0) fail("h2load failed: " + printed);
  if (outcome.failed > 0) fail("requests failed: " + printed);
  const double count =
      load.response_bytes > 0 ? outcome.data_bytes / load.response_bytes : outcome.requests;
  if (count <= 0 || outcome.cpu_ns <= 0) fail("nothing was completed during the measurement");
  const double cpu_ns = double(outcome.cpu_ns) / count;
  return {{"server_cpu_ns", cpu_ns},
          {"requests_per_core_s", 1e9 / cpu_ns},
          {"requests_per_s", count / load.milliseconds * 1e3}};
}

}  // namespace bench
