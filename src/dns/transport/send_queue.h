// The packets that a socket sends at the end of an iteration.
//
// Packets of the same size that follow each other, such as the two queries of a lookup, become the
// segments of one message (UDP_SEGMENT, udp(7)): the kernel routes, delivers and wakes up once for
// all of them. On the network they are separate datagrams.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/detail/namespaces.h>

namespace tambour::dns::detail {

class SendQueue {
 public:
  /// Messages for sendmmsg(2). They refer to the queue, which must not change until they are sent.
  class Messages {
   public:
    [[nodiscard]] std::span<mmsghdr> headers() noexcept { return {headers_.data(), count_}; }
    /// The number of packets in one message.
    [[nodiscard]] std::size_t packets(std::size_t message) const noexcept {
      return packets_[message];
    }

   private:
    friend class SendQueue;
    static constexpr std::size_t count_max = 32;

    std::size_t count_ = 0;
    std::array<std::size_t, count_max> packets_;
    std::array<mmsghdr, count_max> headers_;
    std::array<iovec, count_max> vectors_;
    struct Control {
      alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> bytes;
    };
    std::array<Control, count_max> controls_;
  };

  /// `is_alone`: it does not become a segment.
  void add(std::string_view packet, bool is_alone);
  void remove_last() noexcept;
  void clear() noexcept;
  [[nodiscard]] bool empty() const noexcept { return first_ == packets_.size(); }

  /// The next messages; not all packets if there are many.
  void prepare(Messages& messages, bool with_segments) noexcept;
  /// Removes the packets of the first `count` messages, and returns their number.
  std::size_t remove(const Messages& messages, std::size_t count) noexcept;

 private:
  struct Packet {
    std::uint16_t size;
    bool is_alone;
  };
  /// The number of packets, from this one on, that one message may have.
  [[nodiscard]] std::size_t segments_from(std::size_t packet) const noexcept;

  std::string bytes_;
  std::vector<Packet> packets_;
  std::size_t first_ = 0;   ///< The first packet that was not sent.
  std::size_t offset_ = 0;  ///< Its first byte.
};

}  // namespace tambour::dns::detail
