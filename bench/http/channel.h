// A client's connection to the server on 127.0.0.1: TCP, or TLS on it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

struct ssl_st;

namespace bench {

class Channel {
 public:
  /// Connects, and completes the handshake of TLS, which offers `protocol` if there is one. Blocks.
  /// `host`: connects from 127.0.0.`host`, see connect_from(); 0: from any address.
  Channel(std::uint16_t port, bool tls, const char* protocol = nullptr, int host = 0);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  /// Resets the connection, unless close_in_order() was called.
  ~Channel();
  /// Makes the destructor close the connection as clients do, which puts it into TIME_WAIT.
  void close_in_order() { resets_ = false; }

  void set_non_blocking() const;
  int fd() const { return fd_; }

  /// Like send(2) and recv(2).
  ssize_t send(const char* bytes, std::size_t size) const;
  ssize_t receive(char* bytes, std::size_t size) const;

 private:
  ssize_t result_of(int answer) const;

  void close_socket() const;

  int fd_;
  bool resets_ = true;
  ssl_st* ssl_ = nullptr;
};

}  // namespace bench
