// An evhttp server or client, and the socket of its peer, for tests.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <gtest/gtest.h>

namespace evhttp_tests {

inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline int port_of(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

/// Runs the loop until the condition holds; returns false after two minutes.
inline bool run_until(event_base* base, const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    event_base_loop(base, EVLOOP_NONBLOCK);
    ::poll(nullptr, 0, 1);
  }
  return true;
}

/// The end of a connection that is no evhttp.
class Peer {
 public:
  explicit Peer(int fd) : fd_(fd) {}
  Peer(Peer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  Peer& operator=(Peer&&) = delete;
  ~Peer() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int fd() const { return fd_; }
  /// Sends what the socket accepts; returns the number of bytes, or -1.
  ssize_t send(std::string_view bytes) const {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  /// Reads what is there to `received`; returns false at the end, and after an error.
  bool read() {
    char bytes[65536];
    const ssize_t n = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) received.append(bytes, static_cast<std::size_t>(n));
    if (n < 0 && errno != EAGAIN) error = errno;
    return n > 0 || (n < 0 && errno == EAGAIN);
  }
  [[nodiscard]] bool contains(std::string_view text) {
    return received.find(text) != std::string::npos;
  }

  std::string received;
  int error = 0;

 private:
  int fd_;
};

class EvhttpServer : public testing::Test {
 protected:
  using Handler = std::function<void(evhttp_request*)>;

  EvhttpServer() {
    evhttp_bound_socket* const bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
    port = port_of(evhttp_bound_socket_get_fd(bound));
    evhttp_set_gencb(
        http,
        [](evhttp_request* request, void* self) {
          auto& server = *static_cast<EvhttpServer*>(self);
          ++server.requests;
          server.target = evhttp_request_get_uri(request);
          server.handler(request);
        },
        this);
  }
  ~EvhttpServer() override {
    if (http != nullptr) evhttp_free(http);
    event_base_free(base);
  }

  [[nodiscard]] Peer connect() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in to = loopback(port);
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return Peer(fd);
  }
  bool run(const std::function<bool()>& condition) { return run_until(base, condition); }
  bool read_until(Peer& peer, std::string_view text) {
    return run([&] { return peer.contains(text) || !peer.read(); }) && peer.contains(text);
  }
  bool read_to_end(Peer& peer) {
    return run([&] { return !peer.read(); });
  }
  /// Sends a request, and returns everything until the end of the connection.
  std::string ask(std::string_view request) {
    Peer peer = connect();
    peer.send(request);
    EXPECT_TRUE(read_to_end(peer)) << peer.received;
    return peer.received;
  }

  static void reply(evhttp_request* request, std::string_view body) {
    evbuffer* const buffer = evbuffer_new();
    evbuffer_add(buffer, body.data(), body.size());
    evhttp_send_reply(request, HTTP_OK, "OK", buffer);
    evbuffer_free(buffer);
  }

  event_base* base = event_base_new();
  evhttp* http = evhttp_new(base);
  int port = 0;
  int requests = 0;
  std::string target;
  Handler handler = [](evhttp_request* request) { reply(request, "the answer"); };
};

}  // namespace evhttp_tests
