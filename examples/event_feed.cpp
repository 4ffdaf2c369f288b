// Server-sent events on all loops of a group. A client that was disconnected, or reads slowly, gets
// the events that it has missed.
//
//   build/examples/event_feed 127.0.0.1:8080     then: curl -N http://127.0.0.1:8080/
//
// Without an address, it serves a client of its own and ends.
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

/// The last thousand events. publish() may be called from any thread.
class Feed {
 public:
  void publish(std::string text) {
    const std::scoped_lock lock(mutex_);
    events_.push_back(std::make_shared<const std::string>(std::move(text)));
    if (events_.size() > 1000) events_.pop_front(), ++before_;
    newest_.set(before_ + events_.size());
  }

  /// Sends the events after the client's last one, and then each new one.
  Task<> send_to(http::EventStream& stream) {
    auto newest = newest_.subscribe();  // Before the events are read, so that none is missed.
    const std::string_view id = stream.last_event_id();
    std::uint64_t last = 0;
    std::from_chars(id.data(), id.data() + id.size(), last);
    for (;;) {
      for (const auto& text : events_after(last)) {
        const std::string number = std::to_string(++last);
        const http::ServerEvent event{.data = *text, .id = number};
        const auto sent = co_await stream.send(event);
        if (!sent) co_return;
      }
      const auto changed = co_await newest.changed();
      if (!changed) co_return;  // The client has gone, or the server shuts down.
    }
  }

 private:
  using Text = std::shared_ptr<const std::string>;

  /// Sets `last` to the number of the event before those that it returns.
  std::vector<Text> events_after(std::uint64_t& last) {
    const std::scoped_lock lock(mutex_);
    // The client is new, was away for too long, or has an id that this program has not sent.
    if (last < before_ || last > before_ + events_.size()) last = before_;
    return {events_.begin() + static_cast<std::ptrdiff_t>(last - before_), events_.end()};
  }

  std::mutex mutex_;
  std::deque<Text> events_;
  /// The number of the event before `events_`. Begins with the time: no restart repeats one.
  std::uint64_t before_ = std::uint64_t(std::chrono::system_clock::now().time_since_epoch() / 1us);
  Watch<std::uint64_t> newest_{before_};
};

/// Receives three events, and three more on another connection.
Task<> demonstrate(EventLoop& loop, Endpoint server, Feed& feed, std::string& received) {
  http::Client client(loop);
  http::EventSourceOptions options;
  for (const std::string texts : {"abc", "def"}) {
    for (const char text : texts) feed.publish(std::string(1, text));
    http::EventSource source(client, "http://" + server.to_string(), options);
    for (int i = 0; i < 3; ++i) {
      const auto event = or_throw(co_await source.next());
      if (event) received += event->data;
    }
    options.last_event_id = source.last_event_id();
  }
  Signal::feed(loop, SIGTERM);
}

int main(int argc, char** argv) try {
  Feed feed;
  LoopGroup group;
  const Endpoint at = or_throw(Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0"));
  auto handler = http::serve_events([&](http::EventStream& to) { return feed.send_to(to); });
  auto server = or_throw(http::ServerGroup::listen(group, at, std::move(handler)));
  EventLoop loop;
  std::string received;
  Timer seconds(loop, [&] { feed.publish("a second has passed"); });
  if (argc > 1) seconds.start(1s, 1s);
  if (argc < 2) spawn(loop, demonstrate(loop, server.endpoint(), feed, received));
  or_throw(run_until_signal(loop, 10s, server));
  return argc > 1 || received == "abcdef" ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
