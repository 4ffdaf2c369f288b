// Stream sockets: TCP between hosts and within a host; Unix sockets and socket pairs within a host.
//
// The result of each call in each state is that of Linux, which differs between tcp(7) and unix(7):
// the close of a peer is reported to a TCP socket by a reset, and to a Unix socket immediately.
// tests/sim makes the same calls on kernel sockets and on these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include <tambour/detail/namespaces.h>

#include "sim/file.h"
#include "sim/machine.h"
#include "sim/sockets/channel.h"

namespace tambour::sim::detail {

class StreamSocket final : public Socket, public std::enable_shared_from_this<StreamSocket> {
 public:
  StreamSocket(Machine& machine, int family) noexcept
      : Socket(family, SOCK_STREAM), machine_(machine) {}

  /// Connects two Unix sockets, as socketpair(2) does.
  static void pair(StreamSocket& one, StreamSocket& other);

  [[nodiscard]] Events readiness() const noexcept override;
  ssize_t receive(Message& message) override;
  ssize_t send(Message& message) override;
  void close() override;

  int bind(const Address& address) override;
  int connect(const Address& address) override;
  int listen(int backlog) override;
  int acceptable() const noexcept override;
  std::shared_ptr<Socket> accept() override;
  int shutdown(int mode) override;
  const Address* peer() const noexcept override;
  bool listening() const noexcept override { return state_ == State::listening; }
  void set_linger_reset(bool enabled) noexcept override { linger_reset_ = enabled; }
  void reset() override;
  [[nodiscard]] std::size_t unacknowledged() const noexcept override {
    return has_channels() ? out_->charged() : 0;
  }
  [[nodiscard]] std::size_t buffer_bytes(bool sending) const noexcept override;
  void set_buffer_bytes(bool sending, std::size_t bytes) noexcept override;

  // Called by the network.
  void on_segment(SegmentKind kind);
  void on_room(std::size_t freed) noexcept;
  /// Ends the connection with an errno value.
  void break_off(int error) noexcept;

 private:
  enum class State : std::uint8_t { fresh, listening, connecting, connected, broken };
  struct Request;

  [[nodiscard]] bool is_unix() const noexcept { return family_ == AF_UNIX; }
  [[nodiscard]] bool has_channels() const noexcept { return in_ != nullptr; }
  [[nodiscard]] bool is_writable(std::size_t charged) const noexcept;
  [[nodiscard]] int not_connected(bool sending) const noexcept;
  ssize_t take(Message& message);
  ssize_t nothing_to_read();
  [[nodiscard]] int cannot_send();
  void use(std::shared_ptr<Channel> in, std::shared_ptr<Channel> out) noexcept;
  void drop_channels() noexcept;
  void close_listener();
  void close_unix();
  void close_tcp();
  void shutdown_unix(bool reading, bool writing) noexcept;
  int progress() noexcept;
  int connect_unix(const Address& address);
  void knock(const std::shared_ptr<Request>& request);
  void answer(const std::shared_ptr<Request>& request);
  void refuse();
  [[nodiscard]] bool queue_is_full() const noexcept {
    return accept_queue_.size() > static_cast<std::size_t>(backlog_);
  }
  std::shared_ptr<StreamSocket> admit(const Address& local, const Address& peer);

  Machine& machine_;
  State state_ = State::fresh;
  bool bound_ = false;
  bool shut_read_ = false;   ///< RCV_SHUTDOWN: by shutdown(2), or by EOF from the peer.
  bool shut_write_ = false;  ///< SEND_SHUTDOWN.
  bool end_arrived_ = false;
  bool told_connected_ = false;  ///< connect(2) has returned success.
  bool linger_reset_ = false;
  std::size_t send_buffer_bytes_ = 0;  ///< The value of SO_SNDBUF; 0: the simulation's default.
  Address peer_;
  std::shared_ptr<Channel> in_;
  std::shared_ptr<Channel> out_;
  int backlog_ = 0;
  std::deque<std::shared_ptr<StreamSocket>> accept_queue_;
};

}  // namespace tambour::sim::detail
