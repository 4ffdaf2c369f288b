// The clients: connections of OpenSSL on non-blocking sockets, on one epoll.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <openssl/ssl.h>

namespace bench {

class TlsClients {
 public:
  /// `port` is that of the server on 127.0.0.1, `name` the one that is sent to it (SNI).
  explicit TlsClients(std::uint16_t port, std::string name = "localhost");
  ~TlsClients();
  TlsClients(const TlsClients&) = delete;
  TlsClients& operator=(const TlsClients&) = delete;

  /// Opens connections, completes the handshake of each, receives a ticket, and resets it,
  /// `at_once` at a time, until the time ends. Returns how many were completed. With `resume`, all
  /// continue one session, which the first handshake makes.
  std::int64_t shake_hands(int at_once, bool resume, double seconds);

  /// Opens connections that then repeat a request, until the time of download() ends.
  void open_downloads(int connections, int bytes);
  /// Returns the bytes of the bodies.
  std::int64_t download(double seconds);

  /// Opens connections, makes one request on each, and frees what OpenSSL needs for them, so that
  /// only the sockets stay open.
  void open_idle(int connections, int bytes);
  void close_all();

 private:
  struct Connection;

  enum class Goal : std::uint8_t { handshakes, downloads, idle };

  void open();
  void set_bytes(int bytes);
  void restart(Connection& connection);
  void resume(Connection& connection);
  void step(Connection& connection);
  void run_once();
  void shake(Connection& connection);
  void await_ticket(Connection& connection);
  void receive(Connection& connection);
  void request(Connection& connection);
  bool note_head(Connection& connection, std::size_t received);
  static void check_wait(Connection& connection, int answer, const char* text);

  static int keep_session(SSL* ssl, SSL_SESSION* session);

  std::uint16_t port_;
  std::string name_;
  int epoll_;
  SSL_CTX* context_;
  SSL_SESSION* session_ = nullptr;
  Goal goal_ = Goal::handshakes;
  bool resumes_ = false;
  int bytes_ = 0;  ///< Of a body.
  std::string request_;
  std::int64_t handshakes_ = 0;  ///< Of connections that are reset.
  std::int64_t downloads_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<char> buffer_;
};

}  // namespace bench
