// The DNS servers of event2/dns.h: a port on a UDP socket, and its requests.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include <event2/dns.h>
#include <event2/dns_struct.h>
#include <event2/event_struct.h>

#include "dns_message/reader.h"

namespace tambour::libevent {

/// A record of a response; its data follow it.
struct ServerRecord {
  ServerRecord* next;
  dns::detail::WireName name;
  dns::Type type;
  dns::Class record_class;
  std::uint32_t ttl;
  bool has_name;  ///< The data are a name in wire form, which may be compressed.
  std::size_t size;
  [[nodiscard]] std::string_view data() const noexcept {
    return {reinterpret_cast<const char*>(this + 1), size};
  }
};

/// A request, from its arrival until it is answered or dropped. The program sees the base class.
/// Refers to its port.
class ServerRequest : public evdns_server_request {
 public:
  ServerRequest(const ServerRequest&) = delete;
  ServerRequest& operator=(const ServerRequest&) = delete;

  /// Null if the packet is not a query, or if there is no memory.
  static ServerRequest* parse(evdns_server_port& port, dns::detail::Bytes packet,
                              const sockaddr* from, socklen_t from_size) noexcept;
  /// The lock of the port must be held, and is released.
  void free() noexcept;

  /// Returns false if there is no memory.
  bool add(int section, const dns::detail::WireName& name, dns::Type type, dns::Class record_class,
           std::uint32_t ttl, bool has_name, std::string_view data) noexcept;
  /// Builds the response. Returns false if there is no memory.
  bool build(unsigned rcode) noexcept;
  /// Sends the response. Returns false if the socket is full.
  bool send() noexcept;

  [[nodiscard]] bool is_built() const noexcept { return response_ != nullptr; }
  [[nodiscard]] unsigned opcode() const noexcept { return opcode_; }
  [[nodiscard]] const sockaddr* peer() const noexcept {
    return reinterpret_cast<const sockaddr*>(&peer_);
  }
  [[nodiscard]] socklen_t peer_size() const noexcept { return peer_size_; }

  evdns_server_port& port;
  ServerRequest* next = nullptr;  ///< Of those whose response waits for the socket.

 private:
  explicit ServerRequest(evdns_server_port& owner) noexcept;
  bool read_questions(dns::detail::Reader& reader, unsigned count) noexcept;
  [[nodiscard]] std::string write(unsigned rcode) const;
  void free_memory() noexcept;
  void free_records() noexcept;

  std::uint16_t id_ = 0;
  unsigned opcode_ = 0;
  sockaddr_storage peer_{};
  socklen_t peer_size_ = 0;
  ServerRecord* sections_[3]{};
  char* response_ = nullptr;
  std::size_t response_size_ = 0;
};

}  // namespace tambour::libevent

/// Referred to by the program, until it closes the port, and by each request.
// NOLINTNEXTLINE(readability-identifier-naming): the name is libevent's.
struct evdns_server_port {
  using ServerRequest = tambour::libevent::ServerRequest;

  evdns_server_port(int socket, evdns_request_callback_fn_type function, void* user) noexcept
      : fd(socket), callback(function), argument(user) {}
  evdns_server_port(const evdns_server_port&) = delete;
  evdns_server_port& operator=(const evdns_server_port&) = delete;

  bool start(event_base* base) noexcept;
  void close() noexcept;
  /// The lock must be held, and is released.
  void release() noexcept;
  /// Takes the request: sends its response, now or when the socket is writable. Returns false in
  /// the second case. The lock must be held, and is released.
  bool respond(ServerRequest& request) noexcept;

  int references = 1;
  void* lock = nullptr;
  const int fd;

 private:
  static void on_readable(evutil_socket_t fd, short kind, void* argument);
  static void on_writable(evutil_socket_t fd, short kind, void* argument);
  static void on_finalize(event_callback* function, void* argument);
  bool receive() noexcept;
  void flush() noexcept;

  evdns_request_callback_fn_type callback;
  void* argument;
  bool is_closed_ = false;
  event readable_{};
  event writable_{};
  ServerRequest* first_pending_ = nullptr;
  ServerRequest** last_pending_ = &first_pending_;
  int pending_count_ = 0;
};
