// gzip and deflate, with zlib.
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

#include "http/coding/codec.h"
#include "http/failure.h"

namespace tambour::http::coding {
namespace {

/// The window of 32 KiB that RFC 1951 allows, and the format around it.
constexpr int zlib_window_bits = 15;
constexpr int gzip_window_bits = zlib_window_bits + 16;

/// Sets the memory of a step. zlib's sizes have 32 bits.
void set_memory(z_stream& stream, std::span<const std::byte> in,
                std::span<std::byte> out) noexcept {
  constexpr std::size_t most = std::numeric_limits<uInt>::max();
  // zlib does not write to its input, but declares it so.
  stream.next_in =
      const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));  // NOLINT: see above.
  stream.avail_in = static_cast<uInt>(std::min(in.size(), most));
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(std::min(out.size(), most));
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
  explicit ZlibDecoder(bool is_gzip) : is_gzip_(is_gzip) {
    if (inflateInit2(&stream_, is_gzip ? gzip_window_bits : zlib_window_bits) != Z_OK)
      throw std::bad_alloc();
  }
  ZlibDecoder(const ZlibDecoder&) = delete;
  ZlibDecoder& operator=(const ZlibDecoder&) = delete;
  ~ZlibDecoder() override { inflateEnd(&stream_); }

 private:
  Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out) override {
    set_memory(stream_, in, out);
    const std::size_t given = stream_.avail_in;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    // Z_BUF_ERROR only says that nothing could be done.
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      return failure(HttpError::bad_content_coding);
    return Step{.consumed = given - stream_.avail_in,
                .produced = out.size() - stream_.avail_out,
                .is_done = result == Z_STREAM_END};
  }

  /// gzip data consists of members (RFC 1952, section 2.2).
  bool restart() override { return is_gzip_ && inflateReset(&stream_) == Z_OK; }

  z_stream stream_{};
  bool is_gzip_;
};

}  // namespace

std::unique_ptr<Encoder> make_zlib_encoder(bool is_gzip, int level) {
  return std::make_unique<ZlibEncoder>(is_gzip, level);
}
std::unique_ptr<Decoder> make_zlib_decoder(bool is_gzip) {
  return std::make_unique<ZlibDecoder>(is_gzip);
}

}  // namespace tambour::http::coding
