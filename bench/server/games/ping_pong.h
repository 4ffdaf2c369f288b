// Connections that send a message, and the next when all of it has come back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/process.h"

namespace bench {

/// What was seen in a stretch of a game.
struct Rate {
  double per_second;     ///< Messages there and back; parts of one count, too.
  double server_cpu_ns;  ///< For each.
};

class PingPong {
 public:
  PingPong(const ServerProcess& server, int connections, int size);
  ~PingPong();
  PingPong(const PingPong&) = delete;
  PingPong& operator=(const PingPong&) = delete;

  /// Plays a fifth of the time first that is not counted.
  Rate measure(int milliseconds);

 private:
  struct Connection {
    int fd;
    std::size_t sent, received;
  };

  void run(double seconds);
  void exchange(Connection& connection);
  bool send_more(Connection& connection);
  bool receive_more(Connection& connection);

  const ServerProcess& server_;
  int epoll_;
  std::vector<char> message_;
  std::vector<char> place_;
  std::vector<Connection> connections_;
  std::int64_t bytes_back_ = 0;
};

}  // namespace bench
