// A query of evdns over TCP (RFC 7766): for responses that do not fit into a datagram, and for
// those whose sender is in doubt.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>

#include <event2/event_struct.h>

#include "libevent/evdns/request.h"

namespace tambour::libevent {

/// One connection with one query. Reports its end to the request, which removes it. The timeout is
/// the request's.
class TcpQuery {
 public:
  TcpQuery(const TcpQuery&) = delete;
  TcpQuery& operator=(const TcpQuery&) = delete;

  /// Null if there is no memory or the connection fails at once.
  static TcpQuery* make(evdns_request& request, const sockaddr* address, socklen_t size) noexcept;
  /// Closes the connection. The memory is freed once the callback does not run.
  void remove() noexcept;

 private:
  explicit TcpQuery(evdns_request& request) noexcept : base_(request.base), request_(&request) {}

  bool open(const sockaddr* address, socklen_t size) noexcept;
  bool watch(short events) noexcept;
  static void on_event(evutil_socket_t fd, short kind, void* argument);
  static void on_finalize(event* ev, void* argument);
  void write() noexcept;
  void read() noexcept;
  /// Reads into memory; returns false unless it is full.
  bool read_into(std::uint8_t* bytes, std::size_t size) noexcept;
  void end(dns::detail::Bytes packet) noexcept;
  void destroy() noexcept;

  evdns_base& base_;
  evdns_request* request_;  ///< Null once it is removed.
  int fd_ = -1;
  event event_{};
  bool is_assigned_ = false;
  std::size_t done_ = 0;  ///< Of the bytes that are written or read now.
  std::size_t query_size_ = 0;
  std::array<std::uint8_t, 2 + evdns_request::query_bytes_max> query_;
  std::array<std::uint8_t, 2> length_;
  std::size_t reply_size_ = 0;
  std::uint8_t* reply_ = nullptr;
};

}  // namespace tambour::libevent
