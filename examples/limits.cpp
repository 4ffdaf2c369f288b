// A line server with limits for every way in which a client can hold its memory: one that does not
// read, one that sends a line byte by byte, and one that does not close its side.
//
//   build/examples/limits 127.0.0.1:7000
//
// Without an address it serves one client of each kind on a free port, prints how each connection
// ended, and exits.
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

/// Answers each line with itself, and ends with "bye".
void answer(Connection& client, Buffer& bytes) {
  Result<std::optional<Buffer>> line;
  while ((line = take_line(bytes, {.bytes_max = 1024})) && *line) {
    if (**line == "bye") return client.close_after_write();
    (*line)->append("\n");
    if (!client.send(std::move(**line))) return;
  }
  if (!line) client.close();
}

ConnectionCallbacks line_server(int& closed_by_limit) {
  return {
      .on_message = answer,
      .high_water_bytes = 64 * 1024,  // With so many unsent bytes, the server stops reading.
      .on_close =
          [&closed_by_limit](Connection&, Error error) {
            if (error == system_error(ETIMEDOUT)) ++closed_by_limit;
            std::printf("closed: %s\n", error ? error.message().c_str() : "by the client");
          },
      .limits =
          {
              .low_water_bytes = 16 * 1024,  // It continues here.
              .unsent_bytes_max = 1024 * 1024,
              .unread_bytes_max = 4 * 1024,
              .idle_timeout = 10s,
              .write_timeout = 300ms,
              .message_timeout = 300ms,
              .linger = 300ms,
          },
  };
}

/// Sends lines and never reads the answers.
Task<> never_reads(Endpoint server) {
  auto stream = co_await TcpStream::connect(server);
  if (!stream) co_return;
  const std::string line = std::string(1000, 'x') + '\n';
  while (co_await stream->write(line)) {
  }
}

/// Sends a line byte by byte, so that it is never idle and never completes the line.
Task<> slow_loris(Endpoint server) {
  auto stream = co_await TcpStream::connect(server);
  if (!stream) co_return;
  while (co_await stream->write("x")) co_await sleep_for(20ms);
}

/// Gets its answer, and keeps the connection open until the server has closed all three, for at
/// most 20 s.
Task<> never_closes(Endpoint server, const int& closed_by_limit) {
  auto stream = co_await TcpStream::connect(server);
  if (!stream || !co_await stream->write("bye\n")) co_return;
  for (int i = 0; i < 1000 && closed_by_limit < 3; ++i) co_await sleep_for(20ms);
}

Task<> play(TcpServer& server, const int& closed_by_limit) {
  const Endpoint at = server.endpoint();
  co_await when_all(never_reads(at), slow_loris(at), never_closes(at, closed_by_limit));
  server.stop();
}

int main(int argc, char** argv) {
  const auto at = Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0");
  if (!at) return std::fprintf(stderr, "%s: %s\n", argv[1], at.error().message().c_str()), 2;
  EventLoop loop;
  int closed_by_limit = 0;
  // The kernel probes a client that disappeared without closing its connection after 30 seconds,
  // five times.
  auto server = TcpServer::listen(
      loop, *at, {.connections_max = 1000, .tcp = {.keepalive_idle = 30s, .keepalive_count = 5}});
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 1;
  server->serve(line_server(closed_by_limit));
  if (argc < 2) spawn(loop, play(*server, closed_by_limit));
  loop.run();
  return argc > 1 || closed_by_limit == 3 ? 0 : 1;
}
