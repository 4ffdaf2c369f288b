// The clients: connections that repeat a number of pipelined requests, on one epoll.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bench {

class HttpClients {
 public:
  /// Opens the connections, and makes one request on the first, whose response shows the size of
  /// all. `port` is that of the server on 127.0.0.1.
  HttpClients(std::uint16_t port, int connections, int pipelined, int body_bytes);
  ~HttpClients();
  HttpClients(const HttpClients&) = delete;
  HttpClients& operator=(const HttpClients&) = delete;

  /// Returns the number of responses that were received until the time ended.
  std::int64_t run(double seconds);

 private:
  struct Connection {
    int fd = -1;
    std::size_t missing = 0;  ///< Bytes of the responses that are outstanding.
    bool at_start = false;    ///< None of them has been received.
  };

  void learn_size(int body_bytes);
  void request(Connection& connection);
  void receive(Connection& connection);

  int epoll_;
  int pipelined_;
  std::string request_;
  std::string requests_;
  std::size_t response_bytes_ = 0;
  std::int64_t responses_ = 0;
  std::vector<Connection> connections_;
  std::vector<char> buffer_;
};

}  // namespace bench
