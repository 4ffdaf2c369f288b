// UDP sockets: udp(7), ip(7), ipv6(7).
//
// Datagrams arrive whole or not at all, and may be duplicated or reordered. At most one task may
// receive from a socket and one may send at a time. An ICMP error caused by an earlier datagram is
// reported by the next operation on the socket, whatever that is; the socket stays usable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <string_view>

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/net/bind_options.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/io_handle.h>
#include <tambour/udp/datagrams.h>

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;
class UdpSocket;

/// The options of a UdpSocket: ip(7), udp(7), socket(7).
struct UdpOptions {
  /// SO_REUSEADDR: several sockets receive the datagrams of a multicast group.
  bool reuse_address = false;
  /// SO_REUSEPORT: several sockets share the incoming datagrams, by source address.
  bool reuse_port = false;
  bool v6_only = false;    ///< IPV6_V6ONLY.
  bool broadcast = false;  ///< SO_BROADCAST: permits sending to broadcast addresses.
  BindOptions bind{};      ///< The interface, transparent and foreign addresses.
  /// SO_RCVBUF and SO_SNDBUF, socket(7), capped by the system's rmem_max and wmem_max. 0: the
  /// system's default.
  std::size_t receive_buffer_bytes = 0;
  std::size_t send_buffer_bytes = 0;
  /// UDP_GRO: the kernel merges datagrams of one source if it can. Batches to receive into must
  /// have DatagramBatch::bytes_each_max.
  bool gro = false;
  bool ecn = false;      ///< Enables Datagram::ecn(): IP_RECVTOS, IPV6_RECVTCLASS.
  bool pktinfo = false;  ///< Enables Datagram::to() and interface(): IP_PKTINFO, IPV6_RECVPKTINFO.
};

/// The callbacks of a UdpSocket. All are optional; leave the ones you do not need empty. They run
/// on the socket's loop, and may close, move or destroy the socket.
struct UdpCallbacks {
  /// At least one datagram was received. After the callback returns, the batch is reused. Sending
  /// the batch sends each datagram back to its sender.
  Callback<void(UdpSocket&, DatagramBatch&)> on_datagrams{};
  /// Receiving failed, usually because of an earlier send: ECONNREFUSED. Receiving continues unless
  /// the socket cannot be watched (EBADF, or an error listed at FdWatcher).
  Callback<void(UdpSocket&, Error)> on_error{};
  /// Where the callbacks were given: the stall detector names it.
  std::source_location created_at = std::source_location::current();
};

/// A UDP socket.
///
/// Ownership: owns the file descriptor and closes it on destruction.
/// Lifetime: may be moved at any time, including while a task waits on it.
/// Thread: must be used on the loop's thread; see move_to().
class UdpSocket final : public IoHandle {
 public:
  UdpSocket() = default;
  /// Takes ownership of `fd`, a UDP socket.
  UdpSocket(EventLoop& loop, int fd) noexcept;

  /// Creates a socket that is bound to `at`. For a socket that only sends, or whose port does not
  /// matter, bind Endpoint::any_v4(0) or any_v6(0). Fails with EADDRINUSE, EACCES or EADDRNOTAVAIL,
  /// with EAFNOSUPPORT if `at` is not an IP address, and
  /// with the errors of the options.
  [[nodiscard]] static Result<UdpSocket> bind(EventLoop& loop, const Endpoint& at,
                                              const UdpOptions& options = {}) noexcept;

  /// Closes the socket. Waits on it fail with ECANCELED. No effect on a closed socket.
  using IoHandle::close;
  /// Releases ownership of the file descriptor and returns it. Waits on the socket fail with
  /// ECANCELED.
  using IoHandle::release;

  /// getsockname(2) and getpeername(2).
  [[nodiscard]] Result<Endpoint> local_endpoint() const noexcept;
  [[nodiscard]] Result<Endpoint> peer_endpoint() const noexcept;

  /// setsockopt(2) with an int.
  [[nodiscard]] Result<> set_option(int level, int option, int value) noexcept;

  /// Connects the socket: it then receives only from `to`, sends to `to` by default, and reports
  /// ICMP errors. Returns without waiting. May be called again for another peer. Fails with
  /// ENETUNREACH, EINVAL and other errors of connect(2).
  [[nodiscard]] Result<> connect(const Endpoint& to) noexcept;
  /// Dissolves the association: the socket receives from all peers again, on the same port. Fails
  /// with EADDRINUSE if the system had chosen that port and has given it to another socket
  /// meanwhile.
  [[nodiscard]] Result<> disconnect() noexcept;

  class Receive final : public detail::IoWait {
   public:
    static constexpr bool is_cancel_safe = true;

    Receive(UdpSocket& socket, DatagramBatch& into) noexcept;
    [[nodiscard]] bool await_ready() noexcept;
    [[nodiscard]] Result<std::size_t> await_resume() noexcept;

   private:
    [[nodiscard]] bool step(detail::loop::Core& core) noexcept override;

    DatagramBatch& into_;
    bool has_room_;
    bool merges_;  ///< UDP_GRO
  };

  /// Waits for datagrams, receives as many as are available and fit in the batch, and returns their
  /// number, at least one. Fails with ECANCELED, and with EINVAL if the batch is too small for
  /// UdpOptions::gro. ECONNREFUSED, EHOSTUNREACH and similar errors refer to an earlier send:
  /// receive again.
  [[nodiscard]] Receive receive(DatagramBatch& into) noexcept { return {*this, into}; }

  class Send final : public detail::IoWait {
   public:
    Send(UdpSocket& socket, DatagramBatch& from) noexcept;
    [[nodiscard]] bool await_ready() const noexcept { return from_.empty(); }
    [[nodiscard]] Result<> await_resume() const noexcept;

   private:
    friend class UdpSocket;
    [[nodiscard]] bool step(detail::loop::Core& core) noexcept override;
    [[nodiscard]] std::int32_t call(detail::backend::System& system) noexcept;
    void prepare() noexcept;
    [[nodiscard]] bool retries_unsegmented() noexcept;

    UdpSocket& udp() noexcept { return static_cast<UdpSocket&>(*handle()); }
    DatagramBatch& from_;
    DatagramBatch::Messages messages_{};
    bool may_segment_;  ///< The kernel has not refused segmentation.
  };

  /// Waits until the kernel has accepted the whole batch, which is then empty. If a datagram fails,
  /// those before it have been sent, and it is the first of the batch: call drop_front(), or send
  /// again. Fails with EMSGSIZE if the datagram exceeds the limit of UDP, or of the path if
  /// fragmentation is not allowed; EPERM if it is filtered; ENOBUFS; ECANCELED. ECONNREFUSED and
  /// similar errors refer to an earlier send: send again.
  [[nodiscard]] Send send(DatagramBatch& from) noexcept { return {*this, from}; }

  class SendTo final : public detail::IoWait {
   public:
    SendTo(UdpSocket& socket, std::span<const std::byte> bytes, const Endpoint* to,
           const DatagramOptions& options, std::size_t segment_bytes) noexcept;
    SendTo(SendTo&& other) noexcept;
    SendTo& operator=(SendTo&&) = delete;
    ~SendTo() override = default;
    [[nodiscard]] bool await_ready() const noexcept { return is_done_ || outcome < 0; }
    [[nodiscard]] Result<> await_resume() const noexcept;

   private:
    friend class UdpSocket;
    static constexpr std::size_t whole = SIZE_MAX;  ///< A single datagram of any size.
    [[nodiscard]] bool step(detail::loop::Core& core) noexcept override;
    /// Sets the pointers to members of this object.
    void begin_message() noexcept;
    void prepare() noexcept;
    [[nodiscard]] bool retries_unsegmented() noexcept;

    UdpSocket& udp() noexcept { return static_cast<UdpSocket&>(*handle()); }
    sockaddr_in6 name_{};  ///< Or a sockaddr_in.
    socklen_t name_size_ = 0;
    std::size_t segment_bytes_;
    bool may_segment_;
    bool is_done_ = false;
    iovec left_;  ///< The bytes that remain to be sent.
    iovec now_{};
    msghdr message_{};
    detail::DatagramControl control_;
  };

  /// Waits until the kernel has accepted the datagram. The caller owns the bytes and must keep them
  /// valid until then. Fails with the errors of send(DatagramBatch&); the datagram is then not
  /// sent.
  [[nodiscard]] SendTo send_to(std::span<const std::byte> bytes, const Endpoint& to,
                               const DatagramOptions& options = {}) noexcept {
    return {*this, bytes, &to, options, SendTo::whole};
  }
  /// Like send_to(), to the peer of a connected socket.
  [[nodiscard]] SendTo send(std::span<const std::byte> bytes,
                            const DatagramOptions& options = {}) noexcept {
    return {*this, bytes, nullptr, options, SendTo::whole};
  }
  /// Sends `bytes` as datagrams of `segment_bytes` each; the last may be shorter. The kernel splits
  /// the data if it can (UDP_SEGMENT). Sends nothing if `bytes` is empty. On failure it is unknown
  /// how much was sent. Fails with EINVAL if `segment_bytes` is 0.
  [[nodiscard]] SendTo send_segments(std::span<const std::byte> bytes, std::size_t segment_bytes,
                                     const Endpoint& to,
                                     const DatagramOptions& options = {}) noexcept {
    return {*this, bytes, &to, options, segment_bytes};
  }

  // Non-blocking variants for callbacks: fail with EAGAIN if the kernel's send buffer is full. UDP
  // does not guarantee delivery, and most programs drop such a datagram; to wait instead, await
  // send() in a task.
  [[nodiscard]] Result<> try_send(DatagramBatch& from) noexcept;
  [[nodiscard]] Result<> try_send_to(std::span<const std::byte> bytes, const Endpoint& to,
                                     const DatagramOptions& options = {}) noexcept;
  [[nodiscard]] Result<> try_send(std::span<const std::byte> bytes,
                                  const DatagramOptions& options = {}) noexcept;

  /// Starts receiving with callbacks, into a batch of this size, until the socket is closed or
  /// destroyed, or stop_receiving() is called. Meanwhile no task may await receive(). Fails with
  /// EBADF, and with EINVAL as receive(). Throws what DatagramBatch throws, and std::bad_alloc.
  [[nodiscard]] Result<> serve(UdpCallbacks callbacks, std::size_t datagrams = 64,
                               std::size_t bytes_each = 2048);
  /// Stops receiving without invoking callbacks. A task that waits in receive() gets ECANCELED.
  void stop_receiving() noexcept { stop_waiting(false); }

  /// Joins a multicast group on the interface with this index (if_nametoindex(3)); 0: chosen by the
  /// system. Fails with ENODEV, with EADDRINUSE if the socket has joined already, and with EINVAL
  /// if `group` is not a multicast address. Bind to the group's port first, with reuse_address if
  /// other sockets of this machine use the same port.
  [[nodiscard]] Result<> join(const Endpoint& group, unsigned interface = 0) noexcept;
  [[nodiscard]] Result<> leave(const Endpoint& group, unsigned interface = 0) noexcept;
  /// Source-specific multicast, only datagrams from `source`: RFC 4607.
  [[nodiscard]] Result<> join_source(const Endpoint& group, const Endpoint& source,
                                     unsigned interface = 0) noexcept;
  [[nodiscard]] Result<> leave_source(const Endpoint& group, const Endpoint& source,
                                      unsigned interface = 0) noexcept;

  /// Options for outgoing multicast. Loop: sockets of this machine receive it too; enabled by
  /// default. Hops: the hop limit, 0 to 255; by default 1, the local network. Interface: the index
  /// of the outgoing interface.
  [[nodiscard]] Result<> set_multicast_loop(bool loop) noexcept;
  [[nodiscard]] Result<> set_multicast_hops(int hops) noexcept;
  [[nodiscard]] Result<> set_multicast_interface(unsigned interface) noexcept;

 private:
  class [[gnu::visibility("hidden")]] Serving;
  template <class Sending>
  [[nodiscard]] static Result<> at_once(Sending&& sending) noexcept;
  /// Makes one system call and returns its result or a negated errno value.
  static std::int32_t receive_into(DatagramBatch& batch, detail::backend::System& system,
                                   int fd) noexcept;
  [[nodiscard]] bool is_v4() const noexcept { return family_ == AF_INET; }
  [[nodiscard]] Result<> set_options(const UdpOptions& options) noexcept;
  [[nodiscard]] Result<> set_ip_option(int v4_option, int v6_option, int value) noexcept;
  [[nodiscard]] Result<> change_group(int option, const Endpoint& group,
                                      unsigned interface) noexcept;
  [[nodiscard]] Result<> change_source(int option, const Endpoint& group, const Endpoint& source,
                                       unsigned interface) noexcept;
  [[nodiscard]] bool fits(const DatagramBatch& batch) const noexcept {
    return !gro_ || batch.bytes_each() == DatagramBatch::bytes_each_max;
  }

  int family_ = AF_UNSPEC;
  bool peer_is_v4_ = false;  ///< Datagrams without a destination are sent over IPv4.
  bool gro_ = false;
  bool can_segment_ = false;  ///< The kernel supports UDP_SEGMENT, and no device has refused it.
};

}  // namespace tambour

#pragma GCC visibility pop
