// DatagramBatch: divides a block of memory into pieces of equal datagrams, for reading and for
// sending.
#include <tambour/udp/datagrams.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/failure.h"
#include "udp/datagram_piece.h"
#include "udp/received_control.h"

namespace tambour {
namespace {

std::size_t checked(std::size_t size, std::size_t limit) {
  if (size == 0 || size > limit) throw std::length_error("tambour::DatagramBatch");
  return size;
}

}  // namespace

DatagramBatch::DatagramBatch(std::size_t datagrams, std::size_t bytes_each)
    : capacity_(checked(datagrams, datagrams_max)),
      bytes_each_(checked(bytes_each, bytes_each_max)),
      bytes_(std::make_unique_for_overwrite<std::byte[]>(capacity_ * bytes_each_)),
      pieces_(std::make_unique<Piece[]>(capacity_)),
      headers_(std::make_unique<mmsghdr[]>(capacity_)),
      vectors_(std::make_unique<iovec[]>(capacity_)),
      control_(std::make_unique_for_overwrite<std::byte[]>(capacity_ *
                                                           detail::udp::received_control_bytes)),
      stale_(capacity_) {}

DatagramBatch::DatagramBatch(DatagramBatch&& other) noexcept
    : capacity_(std::exchange(other.capacity_, 0)),
      bytes_each_(other.bytes_each_),
      bytes_(std::move(other.bytes_)),
      pieces_(std::move(other.pieces_)),
      headers_(std::move(other.headers_)),
      vectors_(std::move(other.vectors_)),
      control_(std::move(other.control_)),
      first_(std::exchange(other.first_, 0)),
      end_(std::exchange(other.end_, 0)),
      datagrams_(std::exchange(other.datagrams_, 0)),
      used_(std::exchange(other.used_, 0)),
      stale_(std::exchange(other.stale_, 0)) {}

DatagramBatch& DatagramBatch::operator=(DatagramBatch&& other) noexcept {
  if (this != &other) {
    std::destroy_at(this);
    std::construct_at(this, std::move(other));
  }
  return *this;
}

DatagramBatch::~DatagramBatch() = default;

void DatagramBatch::clear() noexcept { first_ = end_ = datagrams_ = used_ = 0; }

DatagramBatch::Iterator DatagramBatch::begin() const noexcept {
  return Iterator(pieces_.get() + first_);
}

DatagramBatch::Iterator DatagramBatch::end() const noexcept {
  return Iterator(pieces_.get() + end_);
}

Datagram DatagramBatch::Iterator::operator*() const noexcept {
  const std::size_t left = piece_->size - at_;
  const std::size_t size =
      piece_->segment != 0 ? std::min<std::size_t>(piece_->segment, left) : left;
  return {*piece_, {piece_->data + at_, size}};
}

DatagramBatch::Iterator& DatagramBatch::Iterator::operator++() noexcept {
  at_ += piece_->segment;
  if (piece_->segment == 0 || at_ >= piece_->size) {
    ++piece_;
    at_ = 0;
  }
  return *this;
}

void DatagramBatch::drop_front() noexcept { drop_bytes(pieces_[first_].first_size()); }

void DatagramBatch::drop_bytes(std::size_t size) noexcept {
  Piece& piece = pieces_[first_];
  const std::size_t before = piece.datagrams();
  if (size < piece.size) {
    piece.data += size;
    piece.size -= size;
    datagrams_ -= before - piece.datagrams();
    return;
  }
  datagrams_ -= before;
  ++first_;
  if (first_ == end_) clear();
}

bool DatagramBatch::extend_last(std::span<const std::byte> bytes, const Piece& like) noexcept {
  if (first_ == end_ || bytes.empty() || used_ + bytes.size() > capacity_ * bytes_each_)
    return false;
  Piece& last = pieces_[end_ - 1];
  const std::size_t segment = last.segment != 0 ? last.segment : last.size;
  // Only the last datagram of a run may be shorter.
  if (segment == 0 || segment > bytes_each_max || last.size % segment != 0) return false;
  if (bytes.size() > segment || last.size + bytes.size() > together_bytes_max) return false;
  if (last.datagrams() == segments_max || !last.has_same_destination(like)) return false;
  std::memcpy(last.data + last.size, bytes.data(), bytes.size());
  last.segment = static_cast<std::uint16_t>(segment);
  last.size += bytes.size();
  used_ += bytes.size();
  ++datagrams_;
  return true;
}

Result<> DatagramBatch::add_piece(std::span<const std::byte> bytes, const Piece& like) noexcept {
  const std::size_t room = capacity_ * bytes_each_;
  if (bytes.size() > room) return detail::base::failure(EMSGSIZE);
  if (extend_last(bytes, like)) return {};
  if (end_ == capacity_ || bytes.size() > room - used_) return detail::base::failure(ENOBUFS);
  Piece& piece = pieces_[end_++];
  piece = like;
  piece.data = bytes_.get() + used_;
  piece.size = bytes.size();
  if (!bytes.empty()) std::memcpy(piece.data, bytes.data(), bytes.size());
  used_ += bytes.size();
  ++datagrams_;
  return {};
}

Result<> DatagramBatch::add(std::span<const std::byte> bytes, const Endpoint& to,
                            const DatagramOptions& options) noexcept {
  Piece like;
  if (auto set = like.set_destination(&to, options); !set) return set;
  return add_piece(bytes, like);
}

Result<> DatagramBatch::add(std::span<const std::byte> bytes,
                            const DatagramOptions& options) noexcept {
  Piece like;
  if (auto set = like.set_destination(nullptr, options); !set) return set;
  return add_piece(bytes, like);
}

Result<> DatagramBatch::add_reply(const Datagram& question,
                                  std::span<const std::byte> bytes) noexcept {
  Piece like;
  like.name = question.piece_->name;
  like.from = question.piece_->from;
  like.added = true;
  return add_piece(bytes, like);
}

DatagramBatch::Messages DatagramBatch::prepare_to_receive() noexcept {
  clear();
  for (std::size_t i = 0; i < stale_; ++i) {
    vectors_[i] = {.iov_base = bytes_.get() + i * bytes_each_, .iov_len = bytes_each_};
    msghdr& message = headers_[i].msg_hdr;
    message.msg_name = &pieces_[i].name;
    message.msg_namelen = sizeof(pieces_[i].name);
    message.msg_iov = &vectors_[i];
    message.msg_iovlen = 1;
    message.msg_control = control_.get() + i * detail::udp::received_control_bytes;
    message.msg_controllen = detail::udp::received_control_bytes;
  }
  stale_ = 0;
  return {.first = headers_.get(), .count = capacity_, .with_segments = false};
}

void DatagramBatch::received(std::size_t answer, bool merges) noexcept {
  if (capacity_ == 1) headers_[0].msg_len = static_cast<unsigned>(std::exchange(answer, 1));
  const std::size_t count = answer;
  for (std::size_t i = 0; i < count; ++i) {
    const mmsghdr& header = headers_[i];
    Piece& piece = pieces_[i];
    if (header.msg_hdr.msg_namelen == 0) piece.name.sin6_family = AF_UNSPEC;
    piece.read_control(header.msg_hdr, merges);
    piece.data = bytes_.get() + i * bytes_each_;
    piece.size = header.msg_len;
    piece.added = false;
    datagrams_ += piece.datagrams();
  }
  end_ = stale_ = count;
  used_ = count * bytes_each_;
}

DatagramBatch::Messages DatagramBatch::prepare_to_send(bool with_segments,
                                                       bool unnamed_is_v4) noexcept {
  Messages messages{.first = headers_.get(), .count = 0, .with_segments = false};
  for (std::size_t i = first_; i < end_ && messages.count < capacity_; ++i) {
    Piece& piece = pieces_[i];
    const bool together = piece.datagrams() == 1 || with_segments;
    const bool to_cut = piece.datagrams() > 1 && with_segments;
    // The ECN bits of a received datagram are not forwarded: they may report congestion on its
    // path.
    const Ecn ecn = piece.added ? piece.ecn : Ecn::none;
    piece.control.set(piece.is_v4(unnamed_is_v4), piece.from, piece.added ? piece.interface : 0,
                      ecn, to_cut ? piece.segment : std::uint16_t{0});
    for (std::size_t at = 0; messages.count < capacity_;) {
      const std::size_t size =
          together ? piece.size : std::min<std::size_t>(piece.segment, piece.size - at);
      vectors_[messages.count] = {.iov_base = piece.data + at, .iov_len = size};
      msghdr& message = headers_[messages.count].msg_hdr;
      message = {};
      message.msg_namelen = piece.name_size();
      message.msg_name = message.msg_namelen != 0 ? &piece.name : nullptr;
      message.msg_iov = &vectors_[messages.count];
      message.msg_iovlen = 1;
      piece.control.put_into(message, to_cut);
      if (messages.count++ == 0) messages.with_segments = to_cut;
      at += size;
      if (at >= piece.size) break;
    }
  }
  stale_ = capacity_;
  return messages;
}

void DatagramBatch::sent(std::size_t count) noexcept {
  // clear() does not change the vectors, so they are valid even after the batch has become empty.
  for (std::size_t i = 0; i < count; ++i) drop_bytes(vectors_[i].iov_len);
}

}  // namespace tambour
