// The harness: a server and its clients.
#include "websocket/websocket.h"

#include <unistd.h>

#include <cstdio>

#include "common/options.h"
#include "common/processor.h"
#include "server/process.h"
#include "websocket/client.h"

namespace bench {
namespace {

struct Parameters {
  int connections = 0;
  int size = 0;
  int in_flight = 1;
  int deflate = 0;
  int messages = 0;
  int milliseconds = 0;
};

std::vector<Figure> echo(const ServerProcess& server, const Parameters& parameters) {
  WebSocketClients clients(server.port(), parameters.connections,
                           {parameters.size, parameters.in_flight, parameters.deflate != 0});
  clients.run(parameters.milliseconds / 5e3);
  const auto before = server.cpu_ns();
  const double count = double(clients.run(parameters.milliseconds / 1e3));
  if (count == 0) fail("nothing was completed during the measurement");
  const double cpu_ns = double(server.cpu_ns() - before);
  return {{"server_cpu_ns", cpu_ns / count},
          {"messages_per_s", count / parameters.milliseconds * 1e3}};
}

std::vector<Figure> broadcast(const ServerProcess& server, const Parameters& parameters) {
  WebSocketClients clients(server.port(), parameters.connections,
                           {.size = parameters.size, .deflate = parameters.deflate != 0});
  server.wait_until_idle();
  clients.broadcast();  // Warms up caches and memory allocation.
  server.wait_until_idle();
  const auto begin = now_ns();
  const auto cpu = server.cpu_ns();
  for (int i = 0; i < parameters.messages; ++i) clients.broadcast();
  const double used = double(server.cpu_ns() - cpu);
  const double took = double(now_ns() - begin);
  return {{"server_cpu_ns", used / parameters.messages / parameters.connections},
          {"all_us", took / parameters.messages / 1e3}};
}

std::vector<Figure> idle(const ServerProcess& server, const Parameters& parameters) {
  server.wait_until_idle();
  const double before = double(server.anonymous_bytes());
  const WebSocketClients clients(server.port(), parameters.connections,
                                 {.size = 1, .deflate = parameters.deflate != 0});
  server.wait_until_idle();
  return {
      {"connection_bytes", (double(server.anonymous_bytes()) - before) / parameters.connections}};
}

/// Until the process is killed.
[[noreturn]] void wait_for_clients(const ServerProcess& server) {
  std::printf("ws://127.0.0.1:%d/\n", server.port());
  std::fflush(stdout);
  while (true) {
    feed_watchdog();
    sleep(1);
  }
}

std::vector<Figure> measure(const CommandLine& line, const ServerProcess& server,
                            const Parameters& parameters) {
  if (line.has_command("broadcast")) return broadcast(server, parameters);
  if (line.has_command("idle")) return idle(server, parameters);
  return echo(server, parameters);
}

}  // namespace

void execute_server(const ServerOptions& options, const char* program, const char* script) {
  const std::string port = std::to_string(options.port);
  const char* const service = options.service == Service::echo ? "echo" : "broadcast";
  const char* const extension = options.deflate ? "deflate" : "plain";
  if (script != nullptr)
    execl(program, program, script, port.c_str(), service, extension, nullptr);
  else
    execl(program, program, port.c_str(), service, extension, nullptr);
  fail_errno(program);
}

int run_websocket(int argc, char** argv, Serve serve) {
  pinned_processor();
  int iterations = 1;
  Parameters parameters;
  CommandLine line("Runs a WebSocket server and clients.", iterations);
  const auto add_common = [&] {
    line.add("--connections", parameters.connections, "connections", 1, 20'000);
    line.add("--deflate", parameters.deflate, "whether messages are compressed",
             {{"no", 0}, {"yes", 1}});
  };
  const auto add_size = [&] {
    line.add("--size", parameters.size, "bytes of a message", 1, websocket_message_bytes_max);
  };
  line.add_command("echo", "each message comes back");
  add_common();
  add_size();
  line.add("--in-flight", parameters.in_flight, "messages that are sent at once", 1, 100);
  line.add("--milliseconds", parameters.milliseconds, "length of a measurement", 10, 20'000);
  line.add_command("broadcast", "each message is sent to all connections");
  add_common();
  add_size();
  line.add("--messages", parameters.messages, "messages, one after another", 1, 1'000'000);
  line.add_command("idle", "the memory of open connections");
  add_common();
  line.add_command("serve", "only the server, for other clients");
  line.parse_or_exit(argc, argv);

  Report report;
  SubjectInfo info;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    feed_watchdog();
    ServerOptions options;
    options.service = line.has_command("broadcast") ? Service::broadcast : Service::echo;
    options.deflate = parameters.deflate != 0;
    const ServerProcess server(serve, options);
    server.wait_until_it_listens();
    if (line.has_command("serve")) wait_for_clients(server);
    report.add(measure(line, server, parameters));
    info = server.info();
  }
  report.print(info);
  return 0;
}

}  // namespace bench
