// A node of a chat on many machines: clients connect to any node, behind HAProxy (haproxy.cfg), and
// the nodes are joined by a stream of Redis. docs/many-machines.md describes the whole.
//
//   build/examples/many_machines_node LISTEN REDIS
//   build/examples/many_machines_node 10.0.0.1:8080 10.0.0.9:6379
//
// Each message to a client is "ID SENDER TEXT". A client that connects again names the id of its
// last message, "/chat?after=ID", and ignores messages with ids that it has got already.
// SIGTERM drains the node: HAProxy sends it no further clients, and then it closes its WebSockets
// with 1012, after which clients connect to another node.
#include <csignal>
#include <cstdio>
#include <deque>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tambour/tambour.h>

#include "redis.h"

namespace chat {

const std::string stream_name = "chat";

/// Ids are two numbers: "1764230400123-0".
std::pair<std::uint64_t, std::uint64_t> numbers_of(std::string_view id) {
  std::pair<std::uint64_t, std::uint64_t> numbers;
  const char* const end = id.data() + id.size();
  const auto first = std::from_chars(id.data(), end, numbers.first);
  if (first.ptr != end) std::from_chars(first.ptr + 1, end, numbers.second);
  return numbers;
}

/// The last messages, which a client that was away gets, and the WebSockets of this node.
class Room {
 public:
  static constexpr int messages_max = 5000;

  explicit Room(EventLoop& loop) : topic_(loop, options()) {}

  void add(const Entry& entry) {
    messages_.push_back(entry);
    if (std::ssize(messages_) > messages_max) messages_.pop_front();
    // No subscriber loses a message: one that reads too slowly is closed, and connects again.
    static_cast<void>(topic_.try_publish(http::WebSocketMessage(entry.id + " " + entry.text)));
  }
  std::string last_id() const { return messages_.empty() ? "0-0" : messages_.back().id; }

  /// Sends what the client has missed, and subscribes it. Returns whether that was possible.
  Task<bool> join(http::WebSocket& socket, std::string after) {
    for (;;) {
      const std::vector<Entry> missed = messages_after(after);
      // Nothing is added between the last of them and the subscription.
      const bool is_rest = missed.size() <= 100;
      for (const Entry& entry : missed) {
        http::WebSocketMessage message(entry.id + " " + entry.text);
        if (is_rest) {
          if (!socket.try_send(std::move(message))) co_return false;
          continue;
        }
        const Result<> sent = co_await socket.send(std::move(message));
        if (!sent) co_return false;
        after = entry.id;
      }
      if (is_rest) break;
    }
    topic_.subscribe(socket);
    co_return true;
  }

 private:
  static http::WebSocketTopicOptions options() {
    http::WebSocketTopicOptions options;
    options.when_slow = http::WhenSubscriberSlow::close;
    return options;
  }
  std::vector<Entry> messages_after(const std::string& id) const {
    const auto begin = std::ranges::upper_bound(
        messages_, numbers_of(id), {}, [](const Entry& entry) { return numbers_of(entry.id); });
    return {begin, messages_.end()};
  }

  std::deque<Entry> messages_;
  http::WebSocketTopic topic_;
};

class Node {
 public:
  Node(EventLoop& loop, const std::string& redis)
      : loop_(loop), room_(loop), reader_(redis), writer_(redis), writing_(loop) {}

  http::Handler handler() {
    http::WebSocketOptions options;
    options.message_bytes_max = 4096;
    options.shutdown_code = http::CloseCode::service_restart;
    http::Router router;
    router.get("/health", [this](http::Request&, http::Response& response) {
      // HAProxy drains a server that answers 404, and stops using one that answers 503.
      if (is_draining_)
        response.set_status(http::Status::not_found);
      else if (!is_ready_)
        response.set_status(http::Status::service_unavailable);
      response.send(is_draining_ ? "draining" : is_ready_ ? "ok" : "not connected to Redis");
    });
    router.get("/chat", http::serve_websocket(
                            [this](http::WebSocket& socket, http::Request& request) {
                              return serve(socket, request);
                            },
                            options));
    return std::move(router).handler();
  }

  /// Reads the stream of Redis until the program ends.
  Task<> follow() {
    RetryPolicy policy;
    policy.attempts_max = RetryPolicy::unlimited;
    policy.delay_max = 1s;
    Backoff backoff(loop_, policy);
    for (bool has_history = false;;) {
      Task<Result<Reply>> asking = has_history ? reader_.next(stream_name, room_.last_id())
                                               : reader_.last(stream_name, Room::messages_max);
      const Result<Reply> reply = co_await std::move(asking);
      is_ready_ = reply.has_value();
      if (reply) {
        add(has_history ? Redis::entries_of_next(*reply) : Redis::entries_of_last(*reply));
        has_history = true;
        backoff.reset();
        continue;
      }
      std::fprintf(stderr, "Redis: %s\n", reply.error().message().c_str());
      const std::optional<Duration> delay = backoff.next();
      const Result<> waited = co_await sleep_for(delay.value_or(1s));
      if (!waited) co_return;
    }
  }

  /// Waits for SIGTERM, and drains the node.
  Task<> drain(http::Server& server) {
    SignalSet signals = or_throw(SignalSet::open(loop_, {SIGTERM, SIGINT}));
    const Result<int> signal = co_await signals.next();
    if (!signal) co_return;
    is_draining_ = true;
    // HAProxy notices that at its next health checks; until then, it may send further clients.
    static_cast<void>(co_await sleep_for(1s));
    co_await server.shut_down(10s);
    loop_.stop();
  }

 private:
  Task<> serve(http::WebSocket& socket, http::Request& request) {
    const Result<IpAddress> address = request.client_address();  // Of the PROXY header.
    const std::string sender = address ? address->to_string() : "unknown";
    const std::string after = request.query_parameter("after").value_or("");
    Task<bool> joining = room_.join(socket, after.empty() ? room_.last_id() : after);
    const bool joined = co_await std::move(joining);
    if (!joined) co_return;
    while (true) {
      const Result<http::WebSocketMessage> message = co_await socket.receive();
      if (!message) co_return;
      Task<Result<Reply>> appending = append(sender + " " + message->to_string());
      const Result<Reply> appended = co_await std::move(appending);
      if (appended) continue;
      // The client sends the message again, if it has not come back.
      static_cast<void>(co_await socket.close(http::CloseCode::try_again_later));
      co_return;
    }
  }

  Task<Result<Reply>> append(std::string text) {
    const auto lock = co_await writing_.lock();
    if (!lock) co_return std::unexpected(lock.error());
    co_return co_await writer_.append(stream_name, text);
  }
  void add(const std::vector<Entry>& entries) {
    for (const Entry& entry : entries) room_.add(entry);
  }

  EventLoop& loop_;
  Room room_;
  Redis reader_;  ///< Its commands wait, so that others need a second connection.
  Redis writer_;
  TaskMutex writing_;
  bool is_ready_ = false;
  bool is_draining_ = false;
};

}  // namespace chat

int main(int argc, char** argv) try {
  using namespace chat;
  if (argc != 3) return std::fprintf(stderr, "usage: many_machines_node LISTEN REDIS\n"), 2;
  EventLoop loop;
  Node node(loop, argv[2]);
  http::ServerOptions options;
  options.listen.proxy_protocol = ProxyProtocol::required;
  const Endpoint at = or_throw(Endpoint::parse(argv[1]));
  auto server = or_throw(http::Server::listen(loop, at, node.handler(), std::move(options)));
  TaskScope tasks(loop);
  tasks.spawn(node.follow());
  tasks.spawn(node.drain(server));
  loop.run();
  tasks.request_stop();
  return 0;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
