// The clients: connections that repeat requests, one or several at a time, on one epoll.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/channel.h"

namespace bench {

/// A request. `target` and `method` choose a service of the server.
struct HttpWork {
  std::string method = "GET";
  std::string target = "/file";
  std::string fields{};    ///< Further lines of the head, each with its CRLF.
  std::string body{};      ///< With its framing, if `fields` has Transfer-Encoding.
  int response_bytes = 0;  ///< Of the response's body; 0: the server chooses.
};

struct HttpClientOptions {
  int connections = 1;
  int pipelined = 1;                ///< Requests that are sent at once.
  int requests_per_connection = 0;  ///< Then the client opens another one; 0: no limit.
  bool tls = false;
  /// At a rate: spins until the next request is due, so that none is late. Otherwise waits, so that
  /// the process can run with a real-time priority, which the kernel throttles if it spins.
  bool spins = true;
};

/// Of one request; times of now_ns().
struct HttpLatency {
  std::int64_t due_ns = 0;
  std::int64_t took_ns = 0;  ///< Since it was due.
};

class HttpClients {
 public:
  /// Makes each request once, whose response shows the size of all, and opens the connections.
  /// Each of them makes the requests of `works` one after the other, again and again; they begin
  /// with different ones. `port` is that of the server on 127.0.0.1.
  HttpClients(std::uint16_t port, const HttpClientOptions& options,
              const std::vector<HttpWork>& works);
  ~HttpClients();
  HttpClients(const HttpClients&) = delete;
  HttpClients& operator=(const HttpClients&) = delete;

  /// Each connection sends its next requests as soon as it has received the responses. Returns the
  /// number of responses that were received until the time ended.
  std::int64_t run(double seconds);
  /// The same, until so many responses were received.
  void run_count(std::int64_t responses);
  /// Each connection makes one request, so many of them at the same time. Returns when all
  /// responses were received.
  void request_each(int in_flight_max);

  /// Sends requests at a fixed rate, one at a time on a connection, and on the connections in turn.
  /// Returns the latency of each response. If all connections are in use, the next request waits,
  /// which counts. A connection that the server has closed because it was not used for too long is
  /// opened again.
  std::vector<HttpLatency> run_at_rate(double per_second, double seconds);

  /// Invoked while run() and run_at_rate() run, after each check for events.
  void set_between(std::function<void()> between) { between_ = std::move(between); }
  /// Responses that were received, in all.
  std::int64_t responses() const { return responses_; }

 private:
  /// What is sent at once, and how much comes back.
  struct Batch {
    std::string requests;
    std::size_t response_bytes = 0;
  };
  struct Connection {
    std::unique_ptr<Channel> channel;
    std::size_t batch = 0;    ///< The current one.
    std::size_t unsent = 0;   ///< Bytes at the end of the requests.
    std::size_t missing = 0;  ///< Bytes of the responses that are outstanding.
    std::int64_t due_ns = 0;  ///< Of the request.
    int requests_left = 0;    ///< With requests_per_connection.
    bool waits_to_send = false;
    bool at_start = false;  ///< None of the responses has been received.
  };

  Batch learn(const Channel& channel, const HttpWork& work);
  void open(Connection& connection);
  void request(Connection& connection);
  void send(Connection& connection);
  void watch(Connection& connection, bool waits_to_send);
  void receive(Connection& connection);
  void complete(Connection& connection);
  void begin();
  void run_once(int timeout_ms);
  /// Or until a response has arrived.
  void wait_until(std::int64_t ns) const;

  int epoll_;
  std::uint16_t port_;
  HttpClientOptions options_;
  int host_ = 0;  ///< Of the connection that was opened last, with requests_per_connection.
  std::vector<Batch> batches_;
  std::int64_t responses_ = 0;
  bool at_once_ = false;  ///< The next requests are sent at once.
  std::vector<Connection> connections_;
  std::deque<Connection*> unused_;  ///< The one that was used last is at the end.
  std::vector<HttpLatency> latencies_;
  std::function<void()> between_;
  std::vector<char> buffer_;
};

}  // namespace bench
