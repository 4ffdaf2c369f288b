// The clients: connections that repeat a number of pipelined requests, on one epoll.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "http/channel.h"

namespace bench {

class HttpClients {
 public:
  /// Opens the connections, and makes one request on the first, whose response shows the size of
  /// all. `port` is that of the server on 127.0.0.1.
  HttpClients(std::uint16_t port, int connections, int pipelined, const HttpWork& work);
  ~HttpClients();
  HttpClients(const HttpClients&) = delete;
  HttpClients& operator=(const HttpClients&) = delete;

  /// Each connection sends its next requests as soon as it has received the responses. Returns the
  /// number of responses that were received until the time ended.
  std::int64_t run(double seconds);
  /// The same, until so many responses were received.
  void run_count(std::int64_t responses);

  /// Sends requests at a fixed rate, one at a time on a connection. Returns for each response the
  /// nanoseconds since its request was due: if all connections are in use, the request waits.
  std::vector<std::int64_t> run_at_rate(double per_second, double seconds);

 private:
  struct Connection {
    std::unique_ptr<Channel> channel;
    std::size_t unsent = 0;   ///< Bytes at the end of the requests.
    std::size_t missing = 0;  ///< Bytes of the responses that are outstanding.
    std::int64_t due_ns = 0;  ///< Of the request.
    bool waits_to_send = false;
    bool at_start = false;  ///< None of the responses has been received.
  };

  void learn_size(int body_bytes);
  void request(Connection& connection);
  void send(Connection& connection);
  void watch(Connection& connection, bool waits_to_send);
  void receive(Connection& connection);
  void complete(Connection& connection);
  void begin();
  void run_once(int timeout_ms);

  int epoll_;
  int pipelined_;
  std::string request_;
  std::string requests_;
  std::size_t response_bytes_ = 0;
  std::int64_t responses_ = 0;
  bool at_once_ = false;  ///< The next requests are sent at once.
  std::vector<Connection> connections_;
  std::vector<Connection*> unused_;
  std::vector<std::int64_t> latencies_;
  std::vector<char> buffer_;
};

}  // namespace bench
