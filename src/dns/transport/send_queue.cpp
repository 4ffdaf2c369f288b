// SendQueue: which packets share one call with UDP segmentation (udp(7)), and the message of that
// call.
#include "dns/transport/send_queue.h"

#include <netinet/udp.h>

#include <cstring>

namespace tambour::dns::detail {
namespace {

/// UDP_MAX_SEGMENTS of older kernels.
constexpr std::size_t segments_max = 64;
/// The largest datagram of IPv4, before it is segmented.
constexpr std::size_t message_bytes_max = 65'507;

void put_segment_size(msghdr& message, std::span<std::byte> control, std::uint16_t bytes) noexcept {
  std::memset(control.data(), 0, control.size());
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = IPPROTO_UDP;
  header->cmsg_type = UDP_SEGMENT;
  header->cmsg_len = CMSG_LEN(sizeof bytes);
  std::memcpy(CMSG_DATA(header), &bytes, sizeof bytes);
}

}  // namespace

void SendQueue::add(std::string_view packet, bool is_alone) {
  packets_.push_back({.size = static_cast<std::uint16_t>(packet.size()), .is_alone = is_alone});
  try {
    bytes_ += packet;
  } catch (...) {
    packets_.pop_back();
    throw;
  }
}

void SendQueue::remove_last() noexcept {
  bytes_.erase(bytes_.size() - packets_.back().size);
  packets_.pop_back();
}

void SendQueue::clear() noexcept {
  bytes_.clear();
  packets_.clear();
  first_ = offset_ = 0;
}

std::size_t SendQueue::segments_from(std::size_t packet) const noexcept {
  const auto [size, is_alone] = packets_[packet];
  if (is_alone) return 1;
  std::size_t count = 1;
  while (packet + count < packets_.size() && count < segments_max &&
         (count + 1) * size <= message_bytes_max) {
    const Packet& next = packets_[packet + count];
    if (next.size != size || next.is_alone) break;
    ++count;
  }
  return count;
}

void SendQueue::prepare(Messages& messages, bool with_segments) noexcept {
  std::size_t offset = offset_;
  std::size_t count = 0;
  for (std::size_t packet = first_; packet < packets_.size() && count < Messages::count_max;) {
    const std::size_t together = with_segments ? segments_from(packet) : 1;
    const std::uint16_t size = packets_[packet].size;
    messages.packets_[count] = together;
    messages.vectors_[count] = {.iov_base = bytes_.data() + offset, .iov_len = size * together};
    messages.headers_[count] = {};
    msghdr& header = messages.headers_[count].msg_hdr;
    header.msg_iov = &messages.vectors_[count];
    header.msg_iovlen = 1;
    if (together > 1) put_segment_size(header, messages.controls_[count].bytes, size);
    packet += together;
    offset += size * together;
    ++count;
  }
  messages.count_ = count;
}

std::size_t SendQueue::remove(const Messages& messages, std::size_t count) noexcept {
  std::size_t packets = 0;
  for (std::size_t i = 0; i < count; ++i) {
    packets += messages.packets_[i];
    offset_ += messages.vectors_[i].iov_len;
  }
  first_ += packets;
  return packets;
}

}  // namespace tambour::dns::detail
