// A client's connection to the server on 127.0.0.1: TCP, or TLS on it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

struct ssl_st;

namespace bench {

/// What clients do. `target` and `method` choose a service of the server.
struct HttpWork {
  const char* method = "GET";
  const char* target = "/file";
  int body_bytes = 0;      ///< Of the request.
  int response_bytes = 0;  ///< Of the response's body; 0: the server chooses.
  bool tls = false;
};

class Channel {
 public:
  /// Connects, and completes the handshake of TLS, which offers `protocol` if there is one. Blocks.
  Channel(std::uint16_t port, bool tls, const char* protocol = nullptr);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  /// Resets the connection.
  ~Channel();

  void set_non_blocking() const;
  int fd() const { return fd_; }

  /// Like send(2) and recv(2).
  ssize_t send(const char* bytes, std::size_t size) const;
  ssize_t receive(char* bytes, std::size_t size) const;

 private:
  ssize_t result_of(int answer) const;

  int fd_;
  ssl_st* ssl_ = nullptr;
};

}  // namespace bench
