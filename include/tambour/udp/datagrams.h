// Batches of datagrams: what a UdpSocket receives into and sends from.
//
// A batch is a fixed-size block of memory. Consecutive datagrams with equal size and destination
// are stored so that the kernel can transfer them together (segmentation offload, udp(7)); the
// interface shows single datagrams. A Datagram refers to memory of its batch and is invalidated
// when the batch changes.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/net/endpoint.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Explicit congestion notification, two bits of the IP header: RFC 3168, RFC 9331.
enum class Ecn : std::uint8_t {
  none = 0,  ///< Not-ECT: the transport does not support ECN.
  ect1 = 1,  ///< ECT(1): requests early signals, as L4S does.
  ect0 = 2,  ///< ECT(0)
  ce = 3,    ///< CE: a router on the path was congested.
};

/// Per-datagram overrides of the socket's options and the routing table.
struct DatagramOptions {
  /// Unless `none`, sets the type-of-service byte of this datagram to these two bits.
  Ecn ecn = Ecn::none;
  /// The source address, one of this machine's; the port is always the socket's.
  std::optional<Endpoint> from{};
  /// The index of the outgoing interface, if_nametoindex(3). 0: chosen by routing.
  unsigned interface = 0;
};

namespace detail {

/// Ancillary data of an outgoing message: cmsg(3).
class DatagramControl {
 public:
  /// Sets the ancillary data of an IPv4 or IPv6 message, to be split into segments of `segment`
  /// bytes unless that is 0. `from` is an IPv6 or IPv4-mapped address; all zero: not set.
  void set(bool is_v4, const in6_addr& from, unsigned interface, Ecn ecn,
           std::uint16_t segment) noexcept;
  /// Stores the ancillary data in `message`, with or without the segment size.
  void put_into(msghdr& message, bool with_segment) noexcept;

 private:
  template <class Value>
  void put(int level, int type, const Value& value) noexcept;

  /// Space for IPV6_PKTINFO, IPV6_TCLASS and UDP_SEGMENT.
  static constexpr std::size_t bytes_max =
      CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(std::uint16_t));
  alignas(cmsghdr) std::array<std::byte, bytes_max> bytes_;
  std::uint8_t size_ = 0;
  std::uint8_t size_without_segment_ = 0;
};

}  // namespace detail

class DatagramBatch;
class UdpSocket;

/// A view of one datagram of a batch; owns nothing.
class Datagram {
 public:
  /// May be empty: a datagram may have no payload.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

  /// The sender of a received datagram, or the destination of one to be sent (0.0.0.0:0: the peer
  /// of the connected socket). An IPv6 socket reports IPv4 addresses as ::ffff:192.0.2.1.
  [[nodiscard]] Endpoint peer() const noexcept;

  /// True if bytes() is not exactly one datagram. Either the datagram was longer than
  /// DatagramBatch::bytes_each() and the rest is lost, or UdpOptions::gro merged several datagrams
  /// and their segment size was lost with truncated ancillary data (control_truncated()).
  [[nodiscard]] bool is_truncated() const noexcept;

  /// True if the kernel had more ancillary data than the batch can hold (MSG_CTRUNC, recvmsg(2)):
  /// to(), interface() and ecn() may lack their values. Everything that UdpOptions enables fits, as
  /// does every option of fixed size; IPv6 extension headers that the program enables itself may
  /// not.
  [[nodiscard]] bool control_truncated() const noexcept;

  /// Requires UdpOptions::pktinfo. to(): the destination address, of this machine or a multicast
  /// group, with port 0. interface(): the index of the incoming interface, or 0.
  [[nodiscard]] std::optional<Endpoint> to() const noexcept;
  [[nodiscard]] unsigned interface() const noexcept;

  /// Requires UdpOptions::ecn, otherwise `none`.
  [[nodiscard]] Ecn ecn() const noexcept;

 private:
  friend class DatagramBatch;
  friend class UdpSocket;
  struct [[gnu::visibility("hidden")]] Piece;
  Datagram(const Piece& piece, std::span<const std::byte> bytes) noexcept
      : piece_(&piece), bytes_(bytes) {}

  const Piece* piece_;
  std::span<const std::byte> bytes_;
};

/// A batch of datagrams.
///
/// Memory: allocated by the constructor: `bytes_each` plus about 1 KiB for each of `datagrams`. 640
/// bytes of that are for ancillary data and stay untouched unless some arrives.
/// Lifetime: may be moved, but not while a task receives into it or sends it.
class DatagramBatch {
 public:
  static constexpr std::size_t datagrams_max = 1024;     ///< The limit of recvmmsg(2).
  static constexpr std::size_t bytes_each_max = 65'535;  ///< The largest datagram.
  static constexpr std::size_t segments_max = 64;        ///< Per message, in the oldest kernels.
  /// Per message: the maximum payload of UDP over IPv4.
  static constexpr std::size_t together_bytes_max = 65'507;

  /// Reserves memory to receive up to `datagrams` datagrams of up to `bytes_each` bytes at a time,
  /// or to send datagrams of any size that fit in the same memory. Both values are from 1 to the
  /// limits above. A socket with UdpOptions::gro requires `bytes_each_max`, and may put many
  /// datagrams in one entry. Throws std::bad_alloc, and std::length_error if a limit is exceeded.
  explicit DatagramBatch(std::size_t datagrams = 64, std::size_t bytes_each = 2048);
  DatagramBatch(DatagramBatch&&) noexcept;
  DatagramBatch& operator=(DatagramBatch&&) noexcept;
  ~DatagramBatch();

  /// The number of datagrams.
  [[nodiscard]] std::size_t size() const noexcept { return datagrams_; }
  [[nodiscard]] bool empty() const noexcept { return datagrams_ == 0; }
  void clear() noexcept;

  /// The capacity: the number of entries, and the bytes of each.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t bytes_each() const noexcept { return bytes_each_; }

  /// Iterates over the datagrams from the first to the last.
  class Iterator {
   public:
    using value_type = Datagram;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    [[nodiscard]] Datagram operator*() const noexcept;
    Iterator& operator++() noexcept;
    Iterator operator++(int) noexcept {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const noexcept = default;

   private:
    friend class DatagramBatch;
    explicit Iterator(const Datagram::Piece* piece) noexcept : piece_(piece) {}
    const Datagram::Piece* piece_ = nullptr;
    std::size_t at_ = 0;  ///< The offset in the bytes of the piece.
  };
  [[nodiscard]] Iterator begin() const noexcept;
  [[nodiscard]] Iterator end() const noexcept;

  /// The first datagram. The batch must not be empty.
  [[nodiscard]] Datagram front() const noexcept { return *begin(); }
  /// Removes the first datagram. The batch must not be empty.
  void drop_front() noexcept;

  /// Appends a copy of a datagram to be sent. Fails with ENOBUFS if the batch is full, with
  /// EMSGSIZE if the datagram would not fit in an empty batch either, and with EAFNOSUPPORT if `to`
  /// is not an IP address. Received datagrams that were not dropped are sent as well, back to their
  /// senders.
  [[nodiscard]] Result<> add(std::span<const std::byte> bytes, const Endpoint& to,
                             const DatagramOptions& options = {}) noexcept;
  /// Appends a copy of a datagram to be sent to the peer of a connected socket. Fails like
  /// add(bytes, to).
  [[nodiscard]] Result<> add(std::span<const std::byte> bytes,
                             const DatagramOptions& options = {}) noexcept;
  /// Appends a copy of a reply to `question`, which may be in another batch. The reply is sent to
  /// the peer of `question` and, if known, from the address that `question` was sent to.
  [[nodiscard]] Result<> add_reply(const Datagram& question,
                                   std::span<const std::byte> bytes) noexcept;

 private:
  friend class UdpSocket;
  using Piece = Datagram::Piece;
  struct Messages {
    mmsghdr* first;
    std::size_t count;
    bool with_segments;  ///< The kernel must split the first message into segments.
  };

  /// Prepares all headers for recvmmsg(2).
  Messages prepare_to_receive() noexcept;
  /// Processes the result of recvmmsg(2) or, if the batch has one entry, of recvmsg(2). `merges`:
  /// the socket has UDP_GRO.
  void received(std::size_t answer, bool merges) noexcept;
  /// Prepares the next messages for sendmmsg(2), starting at the front.
  Messages prepare_to_send(bool with_segments, bool unnamed_is_v4) noexcept;
  /// Removes the first `count` messages, which sendmmsg(2) has sent.
  void sent(std::size_t count) noexcept;

  [[nodiscard]] Result<> add_piece(std::span<const std::byte> bytes, const Piece& like) noexcept;
  bool extend_last(std::span<const std::byte> bytes, const Piece& like) noexcept;
  void drop_bytes(std::size_t size) noexcept;

  std::size_t capacity_;
  std::size_t bytes_each_;
  detail::OwnedPointer<std::byte[]> bytes_;
  detail::OwnedPointer<Piece[]> pieces_;
  detail::OwnedPointer<mmsghdr[]> headers_;
  detail::OwnedPointer<iovec[]> vectors_;
  detail::OwnedPointer<std::byte[]> control_;  ///< The ancillary data of received messages.
  std::size_t first_ = 0;                      ///< The used range of pieces_: first_ to end_.
  std::size_t end_ = 0;
  std::size_t datagrams_ = 0;  ///< The number of datagrams in that range.
  std::size_t used_ = 0;       ///< The used bytes of bytes_, from the front.
  std::size_t stale_ = 0;  ///< The number of headers that must be reset before the next receive.
};

}  // namespace tambour

#pragma GCC visibility pop
