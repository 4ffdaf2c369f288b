// gzip and deflate, with zlib.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <new>

#include "http/coding/codec.h"
#include "http_message/failure.h"

namespace tambour::http::detail::coding {
namespace {

/// The window of 32 KiB that RFC 1951 allows, and the format around it.
constexpr int zlib_window_bits = 15;
constexpr int gzip_window_bits = zlib_window_bits + 16;

/// Sets the memory of a step. zlib's sizes have 32 bits.
void set_memory(z_stream& stream, std::span<const std::byte> in,
                std::span<std::byte> out) noexcept {
  constexpr std::size_t limit = std::numeric_limits<uInt>::max();
  // zlib does not write to its input, but declares it so.
  stream.next_in =
      const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));  // NOLINT: see above.
  stream.avail_in = static_cast<uInt>(std::min(in.size(), limit));
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(std::min(out.size(), limit));
}

class ZlibEncoder final : public Encoder {
 public:
  ZlibEncoder(bool is_gzip, int level) {
    constexpr int memory_level = 8;
    const int bits = is_gzip ? gzip_window_bits : zlib_window_bits;
    if (deflateInit2(&stream_, level, Z_DEFLATED, bits, memory_level, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  ZlibEncoder(const ZlibEncoder&) = delete;
  ZlibEncoder& operator=(const ZlibEncoder&) = delete;
  ~ZlibEncoder() override { deflateEnd(&stream_); }
  /// With the window and the memory level that zlib chooses: zconf.h.
  [[nodiscard]] std::size_t memory_bytes() const noexcept override {
    return std::size_t{268} * 1024;
  }

 private:
  Step step(std::span<const std::byte> in, std::span<std::byte> out, Mode mode) override {
    set_memory(stream_, in, out);
    const std::size_t given = stream_.avail_in;
    int flush = Z_NO_FLUSH;
    // An input of more than 4 GiB takes several steps.
    if (given == in.size() && mode == Mode::flush) flush = Z_SYNC_FLUSH;
    if (given == in.size() && mode == Mode::finish) flush = Z_FINISH;
    const int result = deflate(&stream_, flush);
    const std::size_t consumed = given - stream_.avail_in;
    const bool is_done = mode == Mode::finish ? result == Z_STREAM_END : stream_.avail_out > 0;
    return {.consumed = consumed,
            .produced = out.size() - stream_.avail_out,
            .is_done = is_done && consumed == in.size()};
  }

  z_stream stream_{};
};

class ZlibDecoder final : public Decoder {
 public:
  ZlibDecoder(bool is_gzip, RawDeflate raw)
      : is_gzip_(is_gzip), knows_format_(is_gzip || raw == RawDeflate::rejected) {
    if (inflateInit2(&stream_, is_gzip ? gzip_window_bits : zlib_window_bits) != Z_OK)
      throw std::bad_alloc();
  }
  ZlibDecoder(const ZlibDecoder&) = delete;
  ZlibDecoder& operator=(const ZlibDecoder&) = delete;
  ~ZlibDecoder() override { inflateEnd(&stream_); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept override {
    return std::size_t{40} * 1024;
  }

 private:
  Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out) override {
    if (!knows_format_) return read_header(in, out);
    return inflate_step(in, out);
  }

  /// Keeps the first two bytes, in which the zlib format has a header with a checksum (RFC 1950,
  /// section 2.2). A block of RFC 1951 that begins in the same way does not occur: it would have
  /// bits that are not zero where an encoder aligns to a byte.
  Result<Step> read_header(std::span<const std::byte> in, std::span<std::byte> out) {
    std::size_t consumed = 0;
    while (header_size_ < header_.size() && consumed < in.size())
      header_[header_size_++] = in[consumed++];
    if (header_size_ < header_.size()) return Step{.consumed = consumed};
    knows_format_ = true;
    const auto first = std::to_integer<unsigned>(header_[0]);
    const auto second = std::to_integer<unsigned>(header_[1]);
    const bool has_header =
        (first & 15U) == Z_DEFLATED && (first >> 4U) <= 7 && (first * 256 + second) % 31 == 0;
    if (!has_header && inflateReset2(&stream_, -zlib_window_bits) != Z_OK) throw std::bad_alloc();
    // There is space for what two bytes may decode to, so both are consumed.
    auto taken = inflate_step(header_, out);
    if (taken) taken->consumed = consumed;
    return taken;
  }

  Result<Step> inflate_step(std::span<const std::byte> in, std::span<std::byte> out) {
    set_memory(stream_, in, out);
    const std::size_t given = stream_.avail_in;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    // Z_BUF_ERROR only says that nothing could be done.
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      return failure(http::ErrorCode::bad_content_coding);
    return Step{.consumed = given - stream_.avail_in,
                .produced = out.size() - stream_.avail_out,
                .is_done = result == Z_STREAM_END};
  }

  /// gzip data consists of members (RFC 1952, section 2.2).
  bool restart() override { return is_gzip_ && inflateReset(&stream_) == Z_OK; }

  z_stream stream_{};
  bool is_gzip_;
  bool knows_format_;
  std::array<std::byte, 2> header_{};
  std::size_t header_size_ = 0;
};

}  // namespace

std::unique_ptr<Encoder> make_zlib_encoder(bool is_gzip, int level) {
  return std::make_unique<ZlibEncoder>(is_gzip, level);
}
std::unique_ptr<Decoder> make_zlib_decoder(bool is_gzip, RawDeflate raw) {
  return std::make_unique<ZlibDecoder>(is_gzip, raw);
}

}  // namespace tambour::http::detail::coding
