// zstd, with libzstd.
#include <zstd.h>

#include <zstd_errors.h>

#include <new>

#include "http/coding/codec.h"
#include "http_message/failure.h"

namespace tambour::http::detail::coding {
namespace {

/// 512 KiB, as for brotli.
constexpr int encoder_window_log = 19;
/// 8 MiB, the most that a sender may use: RFC 9659.
constexpr int decoder_window_log_max = 23;

class ZstdEncoder final : public Encoder {
 public:
  explicit ZstdEncoder(int level) : context_(ZSTD_createCCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(context_, ZSTD_c_windowLog, encoder_window_log);
  }
  ZstdEncoder(const ZstdEncoder&) = delete;
  ZstdEncoder& operator=(const ZstdEncoder&) = delete;
  ~ZstdEncoder() override { ZSTD_freeCCtx(context_); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept override {
    return ZSTD_sizeof_CCtx(context_);
  }

 private:
  Step step(std::span<const std::byte> in, std::span<std::byte> out, Mode mode) override {
    ZSTD_inBuffer input{.src = in.data(), .size = in.size(), .pos = 0};
    ZSTD_outBuffer output{.dst = out.data(), .size = out.size(), .pos = 0};
    ZSTD_EndDirective directive = ZSTD_e_continue;
    if (mode == Mode::flush) directive = ZSTD_e_flush;
    if (mode == Mode::finish) directive = ZSTD_e_end;
    const std::size_t left = ZSTD_compressStream2(context_, &output, &input, directive);
    if (ZSTD_isError(left) != 0)
      throw std::bad_alloc();  // The only error of a context that is used correctly.
    const bool is_done = mode == Mode::append ? input.pos == input.size : left == 0;
    return {.consumed = input.pos, .produced = output.pos, .is_done = is_done};
  }

  ZSTD_CCtx* context_;
};

class ZstdDecoder final : public Decoder {
 public:
  ZstdDecoder() : context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, decoder_window_log_max);
  }
  ZstdDecoder(const ZstdDecoder&) = delete;
  ZstdDecoder& operator=(const ZstdDecoder&) = delete;
  ~ZstdDecoder() override { ZSTD_freeDCtx(context_); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept override {
    return ZSTD_sizeof_DCtx(context_);
  }

 private:
  Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out) override {
    ZSTD_inBuffer input{.src = in.data(), .size = in.size(), .pos = 0};
    ZSTD_outBuffer output{.dst = out.data(), .size = out.size(), .pos = 0};
    const std::size_t left = ZSTD_decompressStream(context_, &output, &input);
    if (ZSTD_isError(left) != 0) {
      if (ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation) throw std::bad_alloc();
      return failure(http::ErrorCode::bad_content_coding);
    }
    return Step{.consumed = input.pos, .produced = output.pos, .is_done = left == 0};
  }

  /// Data consists of frames (RFC 8878, section 3). The context begins with the next one by itself.
  bool restart() override { return true; }

  ZSTD_DCtx* context_;
};

}  // namespace

std::unique_ptr<Encoder> make_zstd_encoder(int level) {
  return std::make_unique<ZstdEncoder>(level);
}
std::unique_ptr<Decoder> make_zstd_decoder() { return std::make_unique<ZstdDecoder>(); }

}  // namespace tambour::http::detail::coding
