// Receives server-sent events, and connects again when the connection ends: the server of this
// example closes the stream after each third event, and continues after the last id.
//
//   build/examples/event_source https://example.org/events
//
// Without a URL, it serves itself and ends.
#include <chrono>
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

/// Sends the numbers after the last one that the client has received.
Task<> count(http::EventStream& events) {
  const std::string last(events.last_event_id());
  const int first = last.empty() ? 1 : std::stoi(last) + 1;
  for (int number = first; number < first + 3; ++number) {
    const std::string text = std::to_string(number);
    http::ServerEvent event;
    event.data = text;
    event.id = text;
    event.retry = 10ms;
    const auto sent = co_await events.send(event);
    if (!sent) co_return;
  }
}

Task<> receive(EventLoop& loop, std::string url, int wanted) {
  http::Client client(loop);
  http::EventSource source(client, url);
  for (int received = 0; received < wanted; ++received) {
    const auto event = co_await source.next();
    if (!event) {
      std::fprintf(stderr, "%s: %s\n", url.c_str(), event.error().message().c_str());
      break;
    }
    if (!*event) break;
    std::printf("%s %s: %s\n", (*event)->id.c_str(), (*event)->type.c_str(),
                (*event)->data.c_str());
  }
  std::printf("%d connections\n", static_cast<int>(source.connections()));
  loop.stop();
}

int main(int argc, char** argv) {
  EventLoop loop;
  if (argc > 1) {
    spawn(loop, receive(loop, argv[1], 1'000'000));
    loop.run();
    return 0;
  }
  const auto server =
      http::Server::listen(loop, Endpoint::loopback_v4(0), http::serve_events(count));
  if (!server) return 1;
  spawn(loop, receive(loop, "http://" + server->endpoint().to_string(), 9));
  loop.run();
}
