// br, with libbrotlienc and libbrotlidec.
#include <brotli/decode.h>
#include <brotli/encode.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "http/coding/codec.h"
#include "http_message/failure.h"

namespace tambour::http::detail::coding {
namespace {

/// A window of 512 KiB: a larger one costs more memory for each response than it saves bytes.
constexpr std::uint32_t brotli_window_bits = 19;

/// Allocates, and counts what is allocated: the size is in front of each block.
class CountedMemory {
 public:
  static void* allocate(void* opaque, std::size_t size) noexcept {
    auto& self = *static_cast<CountedMemory*>(opaque);
    void* const memory = std::malloc(head_bytes + size);
    if (memory == nullptr) return nullptr;
    std::memcpy(memory, &size, sizeof size);
    self.bytes_ += size;
    return static_cast<std::byte*>(memory) + head_bytes;
  }
  static void free(void* opaque, void* address) noexcept {
    if (address == nullptr) return;
    void* const memory = static_cast<std::byte*>(address) - head_bytes;
    std::size_t size = 0;
    std::memcpy(&size, memory, sizeof size);
    static_cast<CountedMemory*>(opaque)->bytes_ -= size;
    std::free(memory);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t head_bytes = alignof(std::max_align_t);
  std::size_t bytes_ = 0;
};

class BrotliEncoder final : public Encoder {
 public:
  explicit BrotliEncoder(int quality)
      : state_(
            BrotliEncoderCreateInstance(&CountedMemory::allocate, &CountedMemory::free, &memory_)) {
    if (state_ == nullptr) throw std::bad_alloc();
    BrotliEncoderSetParameter(state_, BROTLI_PARAM_QUALITY, static_cast<std::uint32_t>(quality));
    BrotliEncoderSetParameter(state_, BROTLI_PARAM_LGWIN, brotli_window_bits);
  }
  BrotliEncoder(const BrotliEncoder&) = delete;
  BrotliEncoder& operator=(const BrotliEncoder&) = delete;
  ~BrotliEncoder() override { BrotliEncoderDestroyInstance(state_); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept override { return memory_.bytes(); }

 private:
  Step step(std::span<const std::byte> in, std::span<std::byte> out, Mode mode) override {
    std::size_t left_in = in.size();
    std::size_t left_out = out.size();
    const auto* next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    auto* next_out = reinterpret_cast<std::uint8_t*>(out.data());
    BrotliEncoderOperation operation = BROTLI_OPERATION_PROCESS;
    if (mode == Mode::flush) operation = BROTLI_OPERATION_FLUSH;
    if (mode == Mode::finish) operation = BROTLI_OPERATION_FINISH;
    if (BrotliEncoderCompressStream(state_, operation, &left_in, &next_in, &left_out, &next_out,
                                    nullptr) == BROTLI_FALSE)
      throw std::bad_alloc();  // The only error of a state that is used correctly.
    const bool is_done = mode == Mode::finish
                             ? BrotliEncoderIsFinished(state_) == BROTLI_TRUE
                             : BrotliEncoderHasMoreOutput(state_) == BROTLI_FALSE && left_in == 0;
    return {.consumed = in.size() - left_in, .produced = out.size() - left_out, .is_done = is_done};
  }

  CountedMemory memory_;
  BrotliEncoderState* state_;
};

class BrotliDecoder final : public Decoder {
 public:
  BrotliDecoder()
      : state_(
            BrotliDecoderCreateInstance(&CountedMemory::allocate, &CountedMemory::free, &memory_)) {
    if (state_ == nullptr) throw std::bad_alloc();
  }
  BrotliDecoder(const BrotliDecoder&) = delete;
  BrotliDecoder& operator=(const BrotliDecoder&) = delete;
  ~BrotliDecoder() override { BrotliDecoderDestroyInstance(state_); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept override { return memory_.bytes(); }

 private:
  Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out) override {
    std::size_t left_in = in.size();
    std::size_t left_out = out.size();
    const auto* next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    auto* next_out = reinterpret_cast<std::uint8_t*>(out.data());
    const BrotliDecoderResult result =
        BrotliDecoderDecompressStream(state_, &left_in, &next_in, &left_out, &next_out, nullptr);
    if (result == BROTLI_DECODER_RESULT_ERROR) {
      // Errors of allocation have the codes -30 to -21.
      const int code = BrotliDecoderGetErrorCode(state_);
      if (code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
          code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES)
        throw std::bad_alloc();
      return failure(http::ErrorCode::bad_content_coding);
    }
    return Step{.consumed = in.size() - left_in,
                .produced = out.size() - left_out,
                .is_done = result == BROTLI_DECODER_RESULT_SUCCESS};
  }

  bool restart() override { return false; }

  CountedMemory memory_;
  BrotliDecoderState* state_;
};

}  // namespace

std::unique_ptr<Encoder> make_brotli_encoder(int quality) {
  return std::make_unique<BrotliEncoder>(quality);
}
std::unique_ptr<Decoder> make_brotli_decoder() { return std::make_unique<BrotliDecoder>(); }

}  // namespace tambour::http::detail::coding
