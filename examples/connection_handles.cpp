// Threads that publish messages to all connections of a server. Each thread uses connection
// handles, which stay valid when a client disconnects, and never touches the connections
// themselves.
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

/// The connections that receive messages. Thread: callable from any thread.
class Subscribers {
 public:
  void add(ConnectionHandle subscriber) {
    const std::lock_guard lock(mutex_);
    handles_.insert(std::move(subscriber));
  }
  void remove(const ConnectionHandle& subscriber) {
    const std::lock_guard lock(mutex_);
    handles_.erase(subscriber);
  }
  void publish(std::string_view message) {
    const std::lock_guard lock(mutex_);
    for (const ConnectionHandle& handle : handles_) handle.send(message);
  }

 private:
  std::mutex mutex_;
  std::unordered_set<ConnectionHandle> handles_;
};

/// Reads `lines` lines, prints the last one, and disconnects.
Task<> subscribe(Endpoint to, int lines) {
  auto stream = co_await TcpStream::connect(to);
  if (!stream) co_return;
  Buffer received;
  for (int i = 1; i <= lines; ++i) {
    auto line = co_await read_line(*stream, received);
    if (!line) co_return;
    if (i == lines) std::printf("line %d: %s\n", i, line->to_string().c_str());
  }
}

int main() {
  EventLoop loop;
  Subscribers subscribers;
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0));
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 1;
  server->serve(
      {.on_connection = [&](Connection& client) { subscribers.add(client.handle()); },
       .on_close = [&](Connection& client, Error) { subscribers.remove(client.handle()); }});

  std::vector<std::jthread> publishers;
  for (int number = 1; number <= 2; ++number) {
    publishers.emplace_back([&, number](const std::stop_token& stop) {
      for (int i = 1; !stop.stop_requested(); ++i) {
        subscribers.publish("publisher " + std::to_string(number) + ", message " +
                            std::to_string(i) + "\n");
        std::this_thread::sleep_for(1ms);
      }
    });
  }
  spawn(loop, [](TcpServer& local) -> Task<> {
    co_await when_all(subscribe(local.endpoint(), 10), subscribe(local.endpoint(), 20));
    co_await local.shut_down(1s);
  }(*server));
  loop.run();
}
