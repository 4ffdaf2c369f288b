// Datagrams over UDP: udp(7), ip(7), ipv6(7).
//
// A datagram arrives whole, or not at all; twice, or after one that was sent later. One task may
// receive from a socket and one may send at a time. The trap: what a peer's machine says about a
// datagram that was sent (ICMP) comes back as the error of whatever the socket does next, and says
// nothing about that; the socket goes on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include <tambour/datagrams.h>
#include <tambour/endpoint.h>
#include <tambour/result.h>
#include <tambour/stream.h>

namespace tambour {

class EventLoop;
class UdpSocket;

struct UdpOptions {
  bool reuse_address = false;  ///< SO_REUSEADDR: several sockets hear what goes to a group.
  bool reuse_port = false;     ///< SO_REUSEPORT: several sockets share what comes, by its source.
  bool v6_only = false;        ///< IPV6_V6ONLY.
  bool broadcast = false;      ///< May send to broadcast addresses: SO_BROADCAST.
  /// SO_RCVBUF and SO_SNDBUF, socket(7), which the system's rmem_max and wmem_max cut; 0: its own.
  std::size_t receive_buffer_bytes = 0;
  std::size_t send_buffer_bytes = 0;
  /// Takes several datagrams of one source from the kernel as one, where it can put them together:
  /// UDP_GRO. Batches to receive into must have DatagramBatch::bytes_each_max.
  bool gro = false;
  bool ecn = false;      ///< Datagram::ecn(): IP_RECVTOS, IPV6_RECVTCLASS.
  bool pktinfo = false;  ///< Datagram::to() and interface(): IP_PKTINFO, IPV6_RECVPKTINFO.
};

/// Whoever is not interested leaves a function empty. They run on the socket's loop, and may close,
/// move or destroy the socket.
struct UdpCallbacks {
  /// At least one has come. The batch is the loop's again afterwards; sending it sends each back.
  std::function<void(UdpSocket&, DatagramBatch&)> on_datagrams{};
  /// Receiving failed, mostly about what was sent: ECONNREFUSED. It goes on, unless the socket
  /// cannot be watched (EBADF, or what FdWatcher names).
  std::function<void(UdpSocket&, Error)> on_error{};
};

/// Moves freely, also while it is used, but stays a UdpSocket. Belongs to the thread of its loop.
class UdpSocket final : public Socket {
 public:
  UdpSocket() = default;
  /// Owns `fd`, a socket of UDP, from now on.
  UdpSocket(EventLoop& loop, int fd) noexcept;

  /// To send without being known by a port, bind Endpoint::any_v4(0) or any_v6(0). EADDRINUSE,
  /// EACCES, EADDRNOTAVAIL; EAFNOSUPPORT: not an IP address.
  static Result<UdpSocket> bind(EventLoop& loop, const Endpoint& at,
                                const UdpOptions& options = {}) noexcept;

  /// From now on it hears `to` alone, what names no destination goes there, and ICMP is told.
  /// ENETUNREACH, EINVAL and the like; never waits. Again for another peer.
  Result<> connect(const Endpoint& to) noexcept;
  /// Hears everybody again, on the port that it had. EADDRINUSE where the system had chosen that,
  /// and gives it to somebody else meanwhile.
  Result<> disconnect() noexcept;

  class Receive final : public SocketWait {
   public:
    Receive(UdpSocket& socket, DatagramBatch& into) noexcept;
    [[nodiscard]] bool await_ready() noexcept;
    [[nodiscard]] Result<std::size_t> await_resume() noexcept;

   private:
    static bool prepare(IoOperation& operation) noexcept;
    DatagramBatch& into_;
    bool has_room_;
    bool merges_;  ///< UDP_GRO
  };

  /// Waits for datagrams, and takes as many as there are and the batch holds; how many, at least
  /// one. ECANCELED; ECONNREFUSED, EHOSTUNREACH and the like about what was sent: receive again.
  /// EINVAL where the batch is too small for UdpOptions::gro.
  [[nodiscard]] Receive receive(DatagramBatch& into) noexcept { return {*this, into}; }

  class Send final : public SocketWait {
   public:
    Send(UdpSocket& socket, DatagramBatch& from) noexcept;
    [[nodiscard]] bool await_ready() const noexcept { return from_.empty(); }
    [[nodiscard]] Result<> await_resume() const noexcept;

   private:
    friend class UdpSocket;
    void prepare() noexcept;
    [[nodiscard]] bool go_on() noexcept override;
    [[nodiscard]] bool recover() noexcept override;

    UdpSocket& udp() noexcept { return static_cast<UdpSocket&>(*socket()); }
    DatagramBatch& from_;
    bool may_cut_;  ///< The kernel has not refused to cut what goes together.
    bool with_segments_ = false;
  };

  /// Waits until the kernel has taken all of the batch, which is empty then. Where a datagram
  /// fails, those before it are gone, and it is the batch's first: drop_front(), or send again.
  /// EMSGSIZE: it is too long for UDP, or for the path where that may not be cut; EPERM: filtered;
  /// ENOBUFS; ECONNREFUSED and the like about an earlier one: send again. ECANCELED.
  [[nodiscard]] Send send(DatagramBatch& from) noexcept { return {*this, from}; }

  class SendTo final : public SocketWait {
   public:
    SendTo(UdpSocket& socket, std::span<const std::byte> bytes, const Endpoint* to,
           const DatagramOptions& how, std::size_t segment_bytes) noexcept;
    [[nodiscard]] bool await_ready() const noexcept { return is_done_ || outcome < 0; }
    [[nodiscard]] Result<> await_resume() const noexcept;

   private:
    friend class UdpSocket;
    static constexpr std::size_t whole = SIZE_MAX;  ///< One datagram, however long.
    void prepare() noexcept;
    [[nodiscard]] bool go_on() noexcept override;
    [[nodiscard]] bool recover() noexcept override;

    UdpSocket& udp() noexcept { return static_cast<UdpSocket&>(*socket()); }
    sockaddr_in6 name_{};  ///< Or a sockaddr_in.
    socklen_t name_size_ = 0;
    std::size_t segment_bytes_;
    bool may_cut_;
    bool is_done_ = false;
    iovec left_;  ///< What is to be sent.
    iovec now_{};
    msghdr message_{};
    DatagramControl control_;
  };

  /// Waits until the kernel has taken the datagram. The bytes are the caller's, and stay. Errors as
  /// with a batch; the datagram is not sent then.
  [[nodiscard]] SendTo send_to(std::span<const std::byte> bytes, const Endpoint& to,
                               const DatagramOptions& how = {}) noexcept {
    return {*this, bytes, &to, how, SendTo::whole};
  }
  /// The same to the peer of a socket that is connected.
  [[nodiscard]] SendTo send(std::span<const std::byte> bytes,
                            const DatagramOptions& how = {}) noexcept {
    return {*this, bytes, nullptr, how, SendTo::whole};
  }
  /// Cut into datagrams of `segment_bytes`, but for the last, which may be shorter, by the kernel
  /// where it can (UDP_SEGMENT); none where there are no bytes. Where it fails, how much was sent
  /// by then is not known. EINVAL where `segment_bytes` is 0.
  [[nodiscard]] SendTo send_segments(std::span<const std::byte> bytes, std::size_t segment_bytes,
                                     const Endpoint& to, const DatagramOptions& how = {}) noexcept {
    return {*this, bytes, &to, how, segment_bytes};
  }

  // The same without waiting, for callbacks: EAGAIN where the kernel has no room now. UDP gives no
  // promise, and most programs let such a datagram go; who cannot awaits send() in a task.
  Result<> try_send(DatagramBatch& from) noexcept;
  Result<> try_send_to(std::span<const std::byte> bytes, const Endpoint& to,
                       const DatagramOptions& how = {}) noexcept;
  Result<> try_send(std::span<const std::byte> bytes, const DatagramOptions& how = {}) noexcept;

  /// Calls back from now on with what comes, in a batch of this size, until the socket is closed,
  /// destroyed, or told to stop: the callback style, beside which nobody may await receive().
  /// EBADF; EINVAL as with receive(). Throws as DatagramBatch and std::bad_alloc.
  Result<> serve(UdpCallbacks callbacks, std::size_t datagrams = 64, std::size_t bytes_each = 2048);
  /// Ends that, in silence; a task that receives is told ECANCELED.
  void stop_receiving() noexcept { stop_waiting(false); }

  /// Hears what is sent to a group, on the interface of this index (if_nametoindex(3)), or the one
  /// that the system chooses. ENODEV, EADDRINUSE where it does so already, EINVAL: not a group.
  /// Bind to the group's port first, with reuse_address where others on the machine do the same.
  Result<> join(const Endpoint& group, unsigned interface = 0) noexcept;
  Result<> leave(const Endpoint& group, unsigned interface = 0) noexcept;
  /// The same for what one source sends there: RFC 4607.
  Result<> join_source(const Endpoint& group, const Endpoint& source,
                       unsigned interface = 0) noexcept;
  Result<> leave_source(const Endpoint& group, const Endpoint& source,
                        unsigned interface = 0) noexcept;

  /// Of what is sent to groups: whether this machine hears it too, as at first; how many routers
  /// it may pass, 0 to 255, at first 1: this network; and by which interface it leaves.
  Result<> set_multicast_loop(bool loop) noexcept;
  Result<> set_multicast_hops(int hops) noexcept;
  Result<> set_multicast_interface(unsigned interface) noexcept;

 private:
  class Serving;
  explicit UdpSocket(Socket&& socket) noexcept;
  template <class Sending>
  static Result<> at_once(Sending&& sending) noexcept;
  [[nodiscard]] bool is_v4() const noexcept { return family_ == AF_INET; }
  Result<> set_options(const UdpOptions& options) noexcept;
  Result<> set_ip_option(int v4_option, int v6_option, int value) noexcept;
  Result<> change_group(int option, const Endpoint& group, unsigned interface) noexcept;
  Result<> change_source(int option, const Endpoint& group, const Endpoint& source,
                         unsigned interface) noexcept;
  [[nodiscard]] bool fits(const DatagramBatch& batch) const noexcept {
    return !gro_ || batch.bytes_each() == DatagramBatch::bytes_each_max;
  }

  int family_ = AF_UNSPEC;
  bool peer_is_v4_ = false;  ///< What names no destination goes over IPv4.
  bool gro_ = false;
  bool can_cut_ = false;  ///< UDP_SEGMENT is known, and no device has refused it.
};

}  // namespace tambour
