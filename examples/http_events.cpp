// Server-sent events: a page shows what its visitors write, as they write it. A visitor that reads
// slowly delays no other.
//
//   build/examples/http_events 127.0.0.1:8080     then open http://127.0.0.1:8080 in two windows
//
// Without an address, it serves a client of its own and ends.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

const char* const page = R"(<!DOCTYPE html><title>Messages</title>
<form onsubmit="fetch('/messages', {method: 'POST', body: text.value}); text.value = '';
                return false"><input id="text" autofocus></form><ul id="list"></ul>
<script>
  new EventSource('/messages').onmessage = (event) => {
    list.appendChild(document.createElement('li')).textContent = event.data;
  };
</script>
)";

/// The last hundred messages.
class Board {
 public:
  explicit Board(EventLoop& loop) : news_(loop) {}

  void write(std::string text) {
    messages_.push_back(std::move(text));
    if (messages_.size() > 100) messages_.pop_front(), ++first_;
    news_.set();  // Resumes those who wait.
    news_.reset();
  }

  /// A visitor that has connected again gets what it has missed.
  Task<> show(http::EventStream& events) {
    std::uint64_t next = std::strtoull(std::string(events.last_event_id()).c_str(), nullptr, 10);
    if (next > first_ + messages_.size()) next = first_;  // The server was restarted.
    while (true) {
      for (next = std::max(next, first_); next < first_ + messages_.size(); ++next) {
        const std::string text = messages_[next - first_];
        const std::string id = std::to_string(next + 1);
        const auto sent = co_await events.send({.data = text, .id = id});
        if (!sent) co_return;
      }
      if (!co_await news_.wait()) co_return;  // The visitor has gone, or the server shuts down.
    }
  }

 private:
  std::deque<std::string> messages_;
  std::uint64_t first_ = 0;  ///< The number of the oldest message.
  TaskEvent news_;
};

Task<> demonstrate(http::Server& server, EventLoop& loop, bool& shown) {
  auto stream = or_throw(co_await TcpStream::connect(server.endpoint()), "connect");
  or_throw(
      co_await stream.write("POST /messages HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
                            "GET /messages HTTP/1.1\r\nHost: a\r\n\r\n"));
  Buffer received;
  while (!received.find("id: 1\ndata: hello\n\n")) {
    const auto got = co_await stream.read(received);
    if (!got || *got == 0) break;
  }
  co_await server.shut_down(5s);  // Ends the streams of events.
  shown = received.find("data: hello").has_value();
  loop.stop();
}

int main(int argc, char** argv) try {
  EventLoop loop;
  Board board(loop);
  http::Router router;
  router.get("/", [](http::Request&, http::Response& response) {
    response.headers().set("Content-Type", "text/html; charset=utf-8");
    response.send(page);
  });
  router.get("/messages",
             http::serve_events([&](http::EventStream& events) { return board.show(events); }));
  router.post("/messages", [&](http::Request& request, http::Response& response) -> Task<> {
    auto text = co_await request.body().read_all(1000);
    if (text) board.write(text->to_string());
    if (text) response.send(http::Status::no_content);
  });
  const Endpoint at = or_throw(Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0"));
  auto server = or_throw(http::Server::listen(loop, at, std::move(router).handler()));
  bool shown = argc > 1;
  if (argc == 1) spawn(loop, demonstrate(server, loop, shown));
  loop.run();
  return shown ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
