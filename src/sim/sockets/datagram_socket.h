// Datagram sockets: UDP between hosts and within a host; Unix sockets and socket pairs within a
// host.
//
// Only datagrams between hosts are lost, duplicated or delayed. Within a host, as on Linux, a UDP
// datagram arrives unless the receiver's buffer is full, and sending a Unix datagram fails with
// EAGAIN until the receiver's buffer has space.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include <tambour/detail/namespaces.h>

#include "sim/file.h"
#include "sim/machine.h"

namespace tambour::sim::detail {

class DatagramSocket final : public Socket, public std::enable_shared_from_this<DatagramSocket> {
 public:
  DatagramSocket(Machine& machine, int family) noexcept
      : Socket(family, SOCK_DGRAM), machine_(machine) {}

  static void pair(DatagramSocket& one, DatagramSocket& other) noexcept;

  [[nodiscard]] Events readiness() const noexcept override;
  ssize_t receive(Message& message) override;
  ssize_t send(Message& message) override;
  void close() override;

  int bind(const Address& address) override;
  int connect(const Address& address) override;
  int shutdown(int mode) override;
  const Address* peer() const noexcept override { return connected_ ? &peer_ : nullptr; }
  [[nodiscard]] std::size_t buffer_bytes(bool sending) const noexcept override;
  void set_buffer_bytes(bool sending, std::size_t bytes) noexcept override;

 private:
  struct Datagram {
    Address from;
    std::string bytes;
  };

  [[nodiscard]] bool is_unix() const noexcept { return family_ == AF_UNIX; }
  /// unix(7): max_dgram_qlen, and the buffer size.
  [[nodiscard]] bool has_room(std::size_t bytes) const noexcept;
  [[nodiscard]] std::shared_ptr<DatagramSocket> unix_target(const Address* to) const noexcept;
  ssize_t send_unix(const Address* to, std::string bytes);
  ssize_t send_udp(const Address& to, std::string bytes);
  int ensure_bound(const Address& to);
  void transmit(Machine& target, const Address& to, std::string bytes, std::int64_t delay_ns);
  void arrive(Machine& target, const Address& to, std::string bytes);
  void accept_datagram(Datagram datagram);

  Machine& machine_;
  bool bound_ = false;
  bool connected_ = false;
  bool shut_read_ = false;
  bool shut_write_ = false;
  Address peer_;
  std::weak_ptr<DatagramSocket> unix_peer_;  ///< The other socket of a pair, or of connect(2).
  std::deque<Datagram> queue_;
  std::size_t queued_bytes_ = 0;
  std::size_t receive_buffer_bytes_ = 0;  ///< The value of SO_RCVBUF; 0: the simulation's default.
};

}  // namespace tambour::sim::detail
