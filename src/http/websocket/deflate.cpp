// Compresses and decompresses messages with zlib, within the limit of bytes.
#include "http/websocket/deflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "http_message/ws/error.h"

namespace tambour::http::detail::websocket {
namespace {

using http::WebSocketError;
using ws::failure;

/// What a flush appends: the header of an empty block follows the last bits, this is the rest of
/// it. RFC 7692, section 7.2.1.
constexpr std::array<std::byte, 4> empty_block = {std::byte{0}, std::byte{0}, std::byte{0xFF},
                                                  std::byte{0xFF}};
/// The ratio counts after so many bytes.
constexpr std::uint64_t ratio_free_bytes = std::uint64_t{64} * 1024;
/// Of one message: as many as fragments, after each of which a sender may end a stream.
constexpr std::uint32_t final_blocks_max = 4096;
constexpr std::size_t output_bytes = 4096;
/// A window of 8 bits, which zlib does not compress with.
constexpr int smallest_window_bits = 8;

/// Sets the memory of a step. zlib's sizes have 32 bits.
void set_memory(z_stream& stream, std::span<const std::byte> in,
                std::span<std::byte> out) noexcept {
  constexpr std::size_t size_max = std::numeric_limits<uInt>::max();
  // zlib does not write to its input, but declares it so.
  stream.next_in =
      const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));  // NOLINT: see above.
  stream.avail_in = static_cast<uInt>(std::min(in.size(), size_max));
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(std::min(out.size(), size_max));
}

}  // namespace

void DeflateDeleter::operator()(z_stream_s* stream) const noexcept {
  deflateEnd(stream);
  delete stream;
}

void InflateDeleter::operator()(z_stream_s* stream) const noexcept {
  inflateEnd(stream);
  delete stream;
}

void Deflater::open() {
  auto stream = std::make_unique<z_stream>();
  // Matches of distance 1 need no window, so the peer may have one of any size.
  const bool has_smallest = settings_.window_bits == smallest_window_bits;
  const int bits = has_smallest ? smallest_window_bits + 1 : settings_.window_bits;
  if (deflateInit2(stream.get(), settings_.level, Z_DEFLATED, -bits, settings_.memory_level,
                   has_smallest ? Z_RLE : Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  stream_.reset(stream.release());
}

void Deflater::compress(Buffer part, bool is_last, Buffer& output) {
  if (part.empty()) {
    // zlib writes nothing if it is flushed twice. The byte is the header of an empty block, whose
    // other bytes are removed: RFC 7692, section 7.2.3.6.
    if (!is_last) return;
    output.append(std::string_view("\0", 1));
    is_within_message_ = false;
    if (!settings_.has_context_takeover) forget_context();
    return;
  }
  if (!stream_) open();
  is_within_message_ = true;
  held_bytes_ = 0;
  while (!part.empty()) {
    std::span<const std::byte> piece = part.front();
    const std::size_t size = piece.size();
    const bool is_last_piece = size == part.size();
    for (bool is_done = false; !is_done;)
      step(piece, is_last_piece ? Z_SYNC_FLUSH : Z_NO_FLUSH, output, is_done);
    part.consume(size);
  }
  is_within_message_ = !is_last;
  if (!is_last) return output.append(std::span(held_).first(held_bytes_));
  if (!settings_.has_context_takeover) forget_context();
}

void Deflater::step(std::span<const std::byte>& piece, int flush, Buffer& output, bool& is_done) {
  const std::span<std::byte> memory = output.prepare(tail_bytes + output_bytes);
  std::copy_n(held_.begin(), held_bytes_, memory.begin());
  set_memory(*stream_, piece, memory.subspan(held_bytes_));
  const std::size_t given = stream_->avail_in;
  const std::size_t room = stream_->avail_out;
  // An input of more than 4 GiB takes several steps.
  const bool is_whole = given == piece.size();
  deflate(stream_.get(), is_whole ? flush : Z_NO_FLUSH);
  piece = piece.subspan(given - stream_->avail_in);
  is_done = piece.empty() && stream_->avail_out > 0 && is_whole;
  const std::size_t size = held_bytes_ + room - stream_->avail_out;
  held_bytes_ = std::min(size, tail_bytes);
  const std::size_t committed = size - held_bytes_;
  std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(committed), held_bytes_, held_.begin());
  output.commit(committed);
}

void Deflater::forget_context() noexcept {
  base::check(!is_within_message_,
              "Deflater::forget_context() called within a message: compress its last part first");
  if (stream_) deflateReset(stream_.get());
}

void Inflater::open() {
  auto stream = std::make_unique<z_stream>();
  if (inflateInit2(stream.get(), -settings_.window_bits) != Z_OK) throw std::bad_alloc();
  stream_.reset(stream.release());
}

Result<Inflater::Progress> Inflater::decompress(Buffer& input, bool is_last, Buffer& output,
                                                std::size_t bytes_max) {
  if (!stream_) open();
  Progress progress;
  for (;;) {
    const bool has_tail = is_last && input.empty() && tail_bytes_used_ < empty_block.size();
    if (input.empty() && !has_tail && !has_more_) break;
    if (progress.added == bytes_max) return progress;
    const std::size_t size = std::min(bytes_max - progress.added, output_bytes);
    const std::span<std::byte> memory = output.prepare(size).first(size);
    const auto added = step(input, has_tail, memory);
    output.commit(added.value_or(0));
    if (!added) return std::unexpected(added.error());
    progress.added += *added;
    if (auto checked = check_limits(); !checked) return std::unexpected(checked.error());
  }
  if (!is_last) return progress;
  if (auto ended = end_message(); !ended) return std::unexpected(ended.error());
  progress.is_done = true;
  return progress;
}

/// Decompresses a piece of the input or, with `has_tail`, of what the sender has removed.
Result<std::size_t> Inflater::step(Buffer& input, bool has_tail, std::span<std::byte> memory) {
  if (is_at_final_block_) {
    // The end of a stream may be the end of the message, which then lacks the empty block.
    has_more_ = false;
    if (has_tail) tail_bytes_used_ = empty_block.size();
    if (input.empty()) return 0;
    // They may take two bytes each, of which nothing is decompressed.
    if (final_blocks_ == final_blocks_max) return failure(WebSocketError::bad_deflate);
    restart_after_final_block();
  }
  std::span<const std::byte> piece = input.front();
  if (has_tail) piece = std::span(empty_block).subspan(tail_bytes_used_);
  set_memory(*stream_, piece, memory);
  const std::size_t given = stream_->avail_in;
  const int result = inflate(stream_.get(), Z_NO_FLUSH);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  // Z_BUF_ERROR only says that nothing could be done.
  if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
    return failure(WebSocketError::bad_deflate);
  is_at_final_block_ = result == Z_STREAM_END;
  const std::size_t consumed = given - stream_->avail_in;
  const std::size_t added = memory.size() - stream_->avail_out;
  has_more_ = stream_->avail_out == 0;
  // zlib sets the bit if it expects the header of a block, but clears it in a call without input.
  constexpr int expects_block = 128;
  if (consumed > 0 || added > 0) is_between_blocks_ = (stream_->data_type & expects_block) != 0;
  if (has_tail) {
    tail_bytes_used_ += static_cast<std::uint8_t>(consumed);
  } else {
    input.consume(consumed);
    received_bytes_ += consumed;
  }
  message_bytes_ += added;
  // It cannot happen that zlib needs more input than there is, and has consumed none of it.
  if (consumed == 0 && added == 0 && !piece.empty() && !is_at_final_block_)
    return failure(WebSocketError::bad_deflate);
  return added;
}

/// A sender may mark a block as the last one, and then continue with another stream, which refers
/// to the same window: RFC 7692, section 7.2.3.4.
void Inflater::restart_after_final_block() {
  is_at_final_block_ = false;
  ++final_blocks_;
  // inflateReset(), but keeps the window.
  if (inflateResetKeep(stream_.get()) != Z_OK) throw std::bad_alloc();
}

Result<> Inflater::check_limits() const {
  if (message_bytes_ > limits_.message_bytes_max)
    return failure(WebSocketError::inflated_too_large);
  if (limits_.ratio_max > 0 && message_bytes_ > ratio_free_bytes &&
      message_bytes_ - ratio_free_bytes > received_bytes_ * limits_.ratio_max)
    return failure(WebSocketError::inflated_too_large);
  return {};
}

Result<> Inflater::end_message() {
  if (is_at_final_block_) {
    restart_after_final_block();
  } else if (!is_between_blocks_) {
    // The message was cut.
    return failure(WebSocketError::bad_deflate);
  }
  received_bytes_ = 0;
  message_bytes_ = 0;
  tail_bytes_used_ = 0;
  final_blocks_ = 0;
  has_more_ = false;
  is_between_blocks_ = false;
  if (!settings_.has_context_takeover && inflateReset(stream_.get()) != Z_OK)
    throw std::bad_alloc();
  return {};
}

void Inflater::release_memory() noexcept {
  if (!settings_.has_context_takeover) stream_.reset();
}

}  // namespace tambour::http::detail::websocket
