// Decodes the body of a message that has the field Content-Encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/coding.h>
#include <tambour/http/fields.h>

#include "http/coding/codec.h"

namespace tambour::http::detail::coding {

/// The codings of a body, in the order in which they were applied. "identity" is none.
///
/// Fails with http::ErrorCode::unsupported_content_coding if there are more than four, or if one is
/// unknown or not available.
[[nodiscard]] Result<std::vector<Coding>> codings_of(const Fields& fields);

/// A chain of decoders. Received bytes are appended; decoded ones are read piece by piece, so that
/// memory is used for what was received and for the pieces only.
class BodyDecoder {
 public:
  /// `codings` must be available, and at least one.
  BodyDecoder(const std::vector<Coding>& codings, const DecodingLimits& limits,
              RawDeflate raw = RawDeflate::rejected);

  void append(Buffer received) {
    received_ += received.size();
    stages_.front().input.append(std::move(received));
  }

  /// Appends decoded bytes to `into`, at most `bytes_max` of them, and returns their number; 0
  /// means that more bytes must be received. Fails with http::ErrorCode::bad_content_coding,
  /// coded_too_large and decoded_too_large. Throws std::bad_alloc.
  Result<std::size_t> read(Buffer& into, std::size_t bytes_max);

  /// Call it when all bytes were received and read() has returned 0. Fails with
  /// StreamError::truncated within the coded data. A body without any byte is valid.
  Result<> end();
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }

  /// By how much the memory of the decoders has grown since the last call.
  [[nodiscard]] std::size_t take_memory_growth() noexcept;

  /// A body that has failed fails again, whatever has been decoded.
  void fail(const Error& error) noexcept {
    if (!first_error_) first_error_ = error;
  }
  [[nodiscard]] const Error& first_error() const noexcept { return first_error_; }

 private:
  struct Stage {
    std::unique_ptr<Decoder> decoder;
    Buffer input;
  };

  Result<std::size_t> pull(std::size_t stage, Buffer& into, std::size_t bytes_max);
  [[nodiscard]] bool decodes_to_nothing() const noexcept;
  [[nodiscard]] bool exceeds(std::uint64_t bytes, std::uint32_t ratio_max) const noexcept;

  std::vector<Stage> stages_;  ///< The first one gets what was received.
  DecodingLimits limits_;
  std::uint64_t received_ = 0;
  std::uint64_t decoded_ = 0;
  std::uint64_t between_ = 0;     ///< Bytes that passed from one decoder to the next.
  std::size_t memory_bytes_ = 0;  ///< That take_memory_growth() has returned.
  bool has_ended_ = false;
  Error first_error_{};
};

}  // namespace tambour::http::detail::coding
