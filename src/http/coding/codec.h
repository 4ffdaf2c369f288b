// Encoders and decoders of content codings, as streams of bytes.
//
// A codec implements one step between contiguous memory; the loops over buffers are common to all.
// All functions throw std::bad_alloc, after which the codec cannot be used any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/coding.h>

namespace tambour::http::detail::coding {

/// What a step has done.
struct Step {
  std::size_t consumed = 0;
  std::size_t produced = 0;
  /// Encoders: the bytes of the step and its mode are in the output. Decoders: the end of the
  /// coded data.
  bool is_done = false;
};

/// Whether the coding "deflate" may lack the zlib format. Servers have sent it so, because the name
/// is that of the format inside, and browsers accept both.
enum class RawDeflate : std::uint8_t { rejected, accepted };

class Encoder {
 public:
  enum class Mode : std::uint8_t {
    append,  ///< The output may lag behind.
    flush,   ///< The output so far can be decoded to all of the input.
    finish,  ///< Ends the coded data.
  };

  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  virtual ~Encoder() = default;

  /// Encodes `input` and appends the result to `output`.
  void encode(Buffer input, Mode mode, Buffer& output);
  /// What it has allocated.
  [[nodiscard]] virtual std::size_t memory_bytes() const noexcept = 0;

 protected:
  Encoder() = default;

 private:
  void encode_piece(std::span<const std::byte> piece, Mode mode, Buffer& output);
  virtual Step step(std::span<const std::byte> in, std::span<std::byte> out, Mode mode) = 0;
};

class Decoder {
 public:
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;

  /// Decodes bytes of `input`, which are removed, and appends at most `bytes_max` to `output`.
  /// Returns their number; 0 means that more input is needed, or that the coded data has ended.
  /// Fails with http::ErrorCode::bad_content_coding, also if bytes follow the end.
  Result<std::size_t> decode(Buffer& input, Buffer& output, std::size_t bytes_max);

  /// What it has allocated.
  [[nodiscard]] virtual std::size_t memory_bytes() const noexcept = 0;
  /// True if the input may end here: at the end of the coded data, or before its first byte.
  [[nodiscard]] bool may_end() const noexcept { return !is_within_; }

 protected:
  Decoder() = default;

 private:
  virtual Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  /// After the end: begins with further coded data. Returns false if none may follow.
  virtual bool restart() = 0;

  bool is_within_ = false;
  bool is_ended_ = false;
  bool has_more_ = false;  ///< The decoder may hold output.
};

/// `level` in the range of the coding. Returns null if the coding is not available.
[[nodiscard]] std::unique_ptr<Encoder> make_encoder(Coding coding, int level);
[[nodiscard]] std::unique_ptr<Decoder> make_decoder(Coding coding,
                                                    RawDeflate raw = RawDeflate::rejected);

// One file for each library, compiled if the library was found.
[[nodiscard]] std::unique_ptr<Encoder> make_zlib_encoder(bool is_gzip, int level);
[[nodiscard]] std::unique_ptr<Decoder> make_zlib_decoder(bool is_gzip, RawDeflate raw);
[[nodiscard]] std::unique_ptr<Encoder> make_brotli_encoder(int quality);
[[nodiscard]] std::unique_ptr<Decoder> make_brotli_decoder();
[[nodiscard]] std::unique_ptr<Encoder> make_zstd_encoder(int level);
[[nodiscard]] std::unique_ptr<Decoder> make_zstd_decoder();

}  // namespace tambour::http::detail::coding
