// Connections that send a message, wait until all of it is echoed, and send the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "server/process.h"

namespace bench {

/// The result of a measurement.
struct Rate {
  double per_second;     ///< Echoed messages; partial messages count as fractions.
  double server_cpu_ns;  ///< Per message.
};

class PingPong {
 public:
  PingPong(const ServerProcess& server, int connections, int size);
  ~PingPong();
  PingPong(const PingPong&) = delete;
  PingPong& operator=(const PingPong&) = delete;

  /// Warms up for a fifth of `milliseconds`, then measures.
  Rate measure(int milliseconds);
  /// Returns after so many messages at least, all of which the server has processed.
  void exchange_count(std::int64_t messages);

 private:
  struct Connection {
    int fd;
    std::size_t sent, received;
  };

  void exchange_for(double seconds);
  void exchange_ready();
  void exchange(Connection& connection);
  bool send_more(Connection& connection);
  bool receive_more(Connection& connection);

  const ServerProcess& server_;
  int epoll_;
  std::vector<char> message_;
  std::vector<char> buffer_;
  std::vector<Connection> connections_;
  std::int64_t bytes_received_ = 0;
  std::int64_t bytes_wanted_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace bench
