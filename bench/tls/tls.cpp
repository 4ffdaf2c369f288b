#include "tls/tls.h"

#include <charconv>
#include <map>
#include <vector>

#include "common/options.h"
#include "common/processor.h"
#include "common/temporary_folder.h"
#include "server/process.h"
#include "tls/certificate.h"
#include "tls/client.h"

namespace bench {
namespace {

struct Parameters {
  int resumed = 0;
  int names = 1;
  int loops = 1;
  int connections = 0;
  int size = 0;
  int milliseconds = 0;
};

struct Measured {
  double count;
  double cpu_ns;
};

/// Calls `work` for a fifth of the time, and again for the time that is measured.
template <class Work>
Measured measure(const ServerProcess& server, int milliseconds, const Work& work) {
  work(milliseconds / 5e3);
  const auto before = server.cpu_ns();
  const double count = double(work(milliseconds / 1e3));
  if (count == 0) fail("nothing was completed during the measurement");
  return {count, double(server.cpu_ns() - before)};
}

std::vector<Figure> shake_hands(const ServerProcess& server, const Parameters& parameters) {
  std::string name = name_of(parameters.names - 1);
  if (name.starts_with('*')) name.replace(0, 1, "host");
  TlsClients clients(server.port(), name);
  const Measured got = measure(server, parameters.milliseconds, [&](double seconds) {
    return clients.shake_hands(parameters.connections, parameters.resumed != 0, seconds);
  });
  return {{"handshake_us", got.cpu_ns / got.count / 1e3},
          {"per_cpu_s", got.count / (got.cpu_ns / 1e9)}};
}

std::vector<Figure> download(const ServerProcess& server, const Parameters& parameters) {
  TlsClients clients(server.port());
  clients.open_downloads(parameters.connections, parameters.size);
  const Measured got = measure(server, parameters.milliseconds,
                               [&](double seconds) { return clients.download(seconds); });
  return {{"byte_ns", got.cpu_ns / got.count},
          {"bytes_per_s", got.count / parameters.milliseconds * 1e3}};
}

std::vector<Figure> stay_idle(const ServerProcess& server, const Parameters& parameters) {
  constexpr int request_bytes = 1024;
  TlsClients clients(server.port());
  // Excludes memory that a library allocates once, for its first connections.
  clients.open_idle(16, request_bytes);
  clients.close_all();
  server.wait_until_idle();
  const auto before = server.anonymous_bytes();
  clients.open_idle(parameters.connections, request_bytes);
  server.wait_until_idle();
  return {{"connection_bytes", double(server.anonymous_bytes() - before) / parameters.connections}};
}

}  // namespace

std::optional<int> requested_bytes(std::string_view received) {
  if (!received.ends_with("\r\n\r\n")) return std::nullopt;
  constexpr std::string_view method = "GET /";
  int bytes = 0;
  const char* const number = received.data() + method.size();
  if (!received.starts_with(method) ||
      std::from_chars(number, received.data() + received.size(), bytes).ec != std::errc())
    fail("the server received an unexpected request: " + std::string(received));
  return bytes;
}

const std::string& answer_of(int bytes) {
  static std::map<int, std::string> answers;
  std::string& answer = answers[bytes];
  if (answer.empty()) {
    answer =
        "HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: application/octet-stream\r\n"
        "Content-Length: " +
        std::to_string(bytes) + "\r\nConnection: keep-alive\r\n\r\n";
    answer.append(std::size_t(bytes), 'b');
  }
  return answer;
}

std::string name_of(int certificate) {
  return (certificate % 2 != 0 ? "*.zone" : "host") + std::to_string(certificate) + ".test";
}

int run_tls(int argc, char** argv, Serve serve) {
  pinned_processor();
  int iterations = 1;
  Parameters parameters;
  CommandLine line("Runs a TLS server and clients.", iterations);
  const auto add_time = [&] {
    line.add("--milliseconds", parameters.milliseconds, "length of a measurement", 10, 20'000);
  };
  line.add_command("handshakes", "connections that are reset after the handshake");
  line.add("--kind", parameters.resumed, "whether sessions are resumed",
           {{"full", 0}, {"resumed", 1}});
  line.add("--connections", parameters.connections, "concurrent handshakes", 1, 10'000);
  line.add_optional("--names", parameters.names, "certificates by name", 1, 100'000);
  line.add_optional("--loops", parameters.loops, "loops, each on a thread of the one processor", 1,
                    8);
  add_time();
  line.add_command("bulk", "downloads");
  line.add("--connections", parameters.connections, "connections", 1, 10'000);
  line.add("--size", parameters.size, "bytes of a download", 1, 1 << 28);
  add_time();
  line.add_command("idle", "connections that have made one request");
  line.add("--connections", parameters.connections, "connections", 1, 1'000'000);
  line.parse_or_exit(argc, argv);

  const TemporaryFolder folder;
  write_certificate(folder.path() + "/server.pem");
  Report report;
  SubjectInfo info;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    feed_watchdog();
    ServerOptions options;
    options.folder = folder.path();
    options.names = parameters.names;
    options.loops = parameters.loops;
    options.answer_bytes = line.has_command("bulk") ? parameters.size : 1024;
    const ServerProcess server(serve, options);
    server.wait_until_it_listens();
    if (line.has_command("handshakes")) {
      report.add(shake_hands(server, parameters));
    } else if (line.has_command("bulk")) {
      report.add(download(server, parameters));
    } else {
      report.add(stay_idle(server, parameters));
    }
    info = server.info();
  }
  report.print(info);
  return 0;
}

}  // namespace bench
