// The clients: WebSockets on one epoll, which send a prepared message again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct WebSocketWork {
  int size = 0;          ///< Bytes of a message.
  int in_flight = 1;     ///< Messages that a connection sends at once.
  bool deflate = false;  ///< Compressed messages, without context takeover.
};

class WebSocketClients {
 public:
  /// Opens the connections. `port` is that of the server on 127.0.0.1.
  WebSocketClients(std::uint16_t port, int connections, const WebSocketWork& work);
  ~WebSocketClients();
  WebSocketClients(const WebSocketClients&) = delete;
  WebSocketClients& operator=(const WebSocketClients&) = delete;

  /// Each connection sends its next messages as soon as it has received the answers to all. Returns
  /// the number of messages that were received until the time ended.
  std::int64_t run(double seconds);

  /// Sends one message on the first connection, and returns when all connections have received it.
  void broadcast();

 private:
  struct Connection {
    int fd = -1;
    std::size_t unsent = 0;  ///< Bytes at the end of the requests.
    int missing = 0;         ///< Messages that are outstanding.
    bool waits_to_send = false;
    std::size_t header_bytes = 0;
    unsigned char header[10];
    std::uint64_t payload = 0;  ///< Bytes of the current frame that are outstanding.
  };

  void open(Connection& connection, std::uint16_t port, bool deflate);
  void request(Connection& connection);
  void send(Connection& connection);
  void watch(Connection& connection, bool waits_to_send);
  void receive(Connection& connection);
  /// Counts the messages that end in the bytes.
  void parse(Connection& connection, const unsigned char* bytes, std::size_t size);
  void end_frame(Connection& connection);
  void run_once();

  int epoll_;
  int in_flight_;
  bool at_once_ = false;  ///< The next messages are sent at once.
  std::size_t frame_bytes_ = 0;
  std::string requests_;  ///< `in_flight_` frames.
  std::int64_t received_ = 0;
  std::vector<Connection> connections_;
  std::vector<unsigned char> buffer_;
};

}  // namespace bench
