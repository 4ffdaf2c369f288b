// Datagrams, many at a time: what a UdpSocket receives into, and what it sends from.
//
// A batch is a piece of memory of a fixed size. Neighbours of one size and one destination are kept
// so that they go to the kernel, and come from it, as one (segmentation offload, udp(7)); whoever
// looks at the batch sees single datagrams. The trap: what is shown belongs to the batch, and is
// good until that changes.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <tambour/endpoint.h>
#include <tambour/result.h>

namespace tambour {

/// What routers say of congestion, in two bits of the IP header: RFC 3168, RFC 9331.
enum class Ecn : std::uint8_t {
  none = 0,       ///< The transport does not take part: Not-ECT.
  capable_1 = 1,  ///< ECT(1): wants to be told early, as L4S has it.
  capable_0 = 2,  ///< ECT(0)
  congested = 3,  ///< CE: a router on the way was congested.
};

/// How a datagram is sent, where that is not as the socket and the routes have it.
struct DatagramOptions {
  /// Where it is not `none`: the type-of-service byte of this datagram is these two bits.
  Ecn ecn = Ecn::none;
  /// An address of this machine that it comes from; the port stays the socket's.
  std::optional<Endpoint> from{};
  /// By its index, if_nametoindex(3): which one it leaves by. 0: whichever.
  unsigned interface = 0;
};

/// Ancillary data of one message to be sent: cmsg(3).
class DatagramControl {
 public:
  /// What goes with a message to `name`, cut into segments of that many bytes where not 0.
  /// `from` is an IPv4 address mapped into IPv6, or one of IPv6; all zero: not said.
  void set(bool is_v4, const in6_addr& from, unsigned interface, Ecn ecn,
           std::uint16_t segment) noexcept;
  /// With the size of the segments, or without.
  void put_into(msghdr& message, bool with_segment) noexcept;

 private:
  template <class Value>
  void put(int level, int type, const Value& value) noexcept;

  /// For IPV6_PKTINFO, IPV6_TCLASS and UDP_SEGMENT.
  static constexpr std::size_t bytes_max =
      CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(std::uint16_t));
  alignas(cmsghdr) std::array<std::byte, bytes_max> bytes_;
  std::uint8_t size_ = 0;
  std::uint8_t size_without_segment_ = 0;
};

class DatagramBatch;
class UdpSocket;

/// One datagram of a batch, which shows that and owns nothing.
class Datagram {
 public:
  /// None is a datagram too.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

  /// Who sent it; of one that is to be sent, whom it goes to (0.0.0.0:0: the socket's peer). A
  /// socket of IPv6 shows IPv4 as ::ffff:192.0.2.1.
  [[nodiscard]] Endpoint peer() const noexcept;

  /// True if bytes() is not exactly one datagram: the datagram was longer than
  /// DatagramBatch::bytes_each(), and the rest is lost; or UdpOptions::gro merged several
  /// datagrams, and their size is among the ancillary data that were lost (control_truncated()).
  [[nodiscard]] bool truncated() const noexcept;

  /// True if the kernel had more ancillary data than the batch holds (MSG_CTRUNC, recvmsg(2)):
  /// to(), interface() and ecn() may lack their values. Everything that UdpOptions enables fits, as
  /// does every option of fixed size; IPv6 extension headers that the program itself enables may
  /// not.
  [[nodiscard]] bool control_truncated() const noexcept;

  /// Where UdpOptions::pktinfo asks for it: the address it was sent to, this machine's or a
  /// group's, with port 0; and the index of the interface it came by, else 0.
  [[nodiscard]] std::optional<Endpoint> to() const noexcept;
  [[nodiscard]] unsigned interface() const noexcept;

  /// Where UdpOptions::ecn asks for it, else `none`.
  [[nodiscard]] Ecn ecn() const noexcept;

 private:
  friend class DatagramBatch;
  friend class UdpSocket;
  struct Piece;
  Datagram(const Piece& piece, std::span<const std::byte> bytes) noexcept
      : piece_(&piece), bytes_(bytes) {}

  const Piece* piece_;
  std::span<const std::byte> bytes_;
};

/// Owns its memory, all of it from the beginning: `datagrams` times `bytes_each` plus about 1 KiB,
/// of which 640 bytes are for ancillary data and stay untouched unless those arrive. Moves freely,
/// but not while a task receives into it or sends it.
class DatagramBatch {
 public:
  static constexpr std::size_t datagrams_max = 1024;         ///< recvmmsg(2)'s own limit.
  static constexpr std::size_t bytes_each_max = 65'535;      ///< No datagram is longer.
  static constexpr std::size_t segments_max = 64;            ///< As one, in the oldest kernels.
  static constexpr std::size_t together_bytes_max = 65'507;  ///< As one: what UDP over IPv4 has.

  /// Room to receive so many datagrams of up to so many bytes, 1 to the limits above, at a time; a
  /// socket with UdpOptions::gro wants `bytes_each_max`, and may fill each place with many
  /// datagrams. Or room to send as many, in the same memory, of any sizes. Throws std::bad_alloc;
  /// std::length_error beyond the limits.
  explicit DatagramBatch(std::size_t datagrams = 64, std::size_t bytes_each = 2048);
  DatagramBatch(DatagramBatch&&) noexcept;
  DatagramBatch& operator=(DatagramBatch&&) noexcept;
  ~DatagramBatch();

  /// How many datagrams there are.
  [[nodiscard]] std::size_t size() const noexcept { return datagrams_; }
  [[nodiscard]] bool empty() const noexcept { return datagrams_ == 0; }
  void clear() noexcept;

  /// How many can be received at a time, and how long.
  [[nodiscard]] std::size_t places() const noexcept { return places_; }
  [[nodiscard]] std::size_t bytes_each() const noexcept { return bytes_each_; }

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
    std::size_t at_ = 0;  ///< In its bytes.
  };
  [[nodiscard]] Iterator begin() const noexcept;
  [[nodiscard]] Iterator end() const noexcept;

  /// The first; there must be one.
  [[nodiscard]] Datagram front() const noexcept { return *begin(); }
  /// Leaves the first out; there must be one.
  void drop_front() noexcept;

  /// Copies a datagram to the end, to be sent. ENOBUFS: there is no room left; EMSGSIZE: there
  /// would not be in an empty batch either; EAFNOSUPPORT: not an IP address. What was received and
  /// not dropped is sent as well, back to where it came from.
  Result<> add(std::span<const std::byte> bytes, const Endpoint& to,
               const DatagramOptions& how = {}) noexcept;
  /// The same for a socket that is connected.
  Result<> add(std::span<const std::byte> bytes, const DatagramOptions& how = {}) noexcept;
  /// The same for an answer to `question`, which may be in another batch: to its peer, and, where
  /// it is known, from the address that `question` was sent to.
  Result<> add_reply(const Datagram& question, std::span<const std::byte> bytes) noexcept;

 private:
  friend class UdpSocket;
  using Piece = Datagram::Piece;
  struct Messages {
    mmsghdr* first;
    std::size_t count;
    bool with_segments;  ///< The first of them is to be cut by the kernel.
  };

  /// Everything in place for recvmmsg(2).
  Messages prepare_to_receive() noexcept;
  /// Takes the result of recvmmsg(2) or, if the batch has one place, of recvmsg(2). `merges`: the
  /// socket has UDP_GRO.
  void received(std::size_t answer, bool merges) noexcept;
  /// What sendmmsg(2) is to be given next, from the front on.
  Messages prepare_to_send(bool with_segments, bool unnamed_is_v4) noexcept;
  /// It has taken the first so many.
  void sent(std::size_t count) noexcept;

  Result<> add_piece(std::span<const std::byte> bytes, const Piece& like) noexcept;
  bool extend_last(std::span<const std::byte> bytes, const Piece& like) noexcept;
  void drop_bytes(std::size_t size) noexcept;

  std::size_t places_;
  std::size_t bytes_each_;
  std::unique_ptr<std::byte[]> bytes_;
  std::unique_ptr<Piece[]> pieces_;
  std::unique_ptr<mmsghdr[]> headers_;
  std::unique_ptr<iovec[]> vectors_;
  std::unique_ptr<std::byte[]> control_;  ///< Of received messages.
  std::size_t first_ = 0;                 ///< Of pieces_, and behind the last.
  std::size_t end_ = 0;
  std::size_t datagrams_ = 0;  ///< In these.
  std::size_t used_ = 0;       ///< Of bytes_, from the front.
  std::size_t stale_ = 0;      ///< So many headers are not as receiving wants them.
};

}  // namespace tambour
