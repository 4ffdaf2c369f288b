// The part of encoders and decoders that all codings share, and which codings this build has.
#include "http/coding/codec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http {
namespace detail::coding {
namespace {

/// More than the flush markers of the codings.
constexpr std::size_t output_bytes = 4096;

}  // namespace

void Encoder::encode(Buffer input, Mode mode, Buffer& output) {
  while (!input.empty()) {
    const std::span<const std::byte> piece = input.front();
    const bool is_last = piece.size() == input.size();
    encode_piece(piece, is_last ? mode : Mode::append, output);
    input.consume(piece.size());
    if (is_last) return;
  }
  if (mode != Mode::append) encode_piece({}, mode, output);
}

void Encoder::encode_piece(std::span<const std::byte> piece, Mode mode, Buffer& output) {
  for (bool is_done = false; !is_done;) {
    const Step taken = step(piece, output.prepare(output_bytes), mode);
    output.commit(taken.produced);
    piece = piece.subspan(taken.consumed);
    is_done = taken.is_done;
  }
}

Result<std::size_t> Decoder::decode(Buffer& input, Buffer& output, std::size_t bytes_max) {
  std::size_t total = 0;
  while (total < bytes_max && (!input.empty() || has_more_)) {
    if (is_ended_) {
      if (!restart()) return failure(http::ErrorCode::bad_content_coding);
      is_ended_ = false;
    }
    const std::size_t size = std::min(bytes_max - total, output_bytes);
    const std::span<std::byte> memory = output.prepare(size).first(size);
    const Result<Step> taken = step(input.front(), memory);
    output.commit(taken ? taken->produced : 0);
    if (!taken) return std::unexpected(taken.error());
    input.consume(taken->consumed);
    total += taken->produced;
    is_ended_ = taken->is_done;
    is_within_ = !is_ended_;
    has_more_ = !is_ended_ && taken->produced == size;
    // It cannot happen that a decoder needs more input than there is, and has consumed none of it.
    if (taken->consumed == 0 && taken->produced == 0 && !is_ended_ && !input.empty())
      return failure(http::ErrorCode::bad_content_coding);
  }
  return total;
}

std::unique_ptr<Encoder> make_encoder(Coding coding, [[maybe_unused]] int level) {
  switch (coding) {
#ifndef TAMBOUR_NO_ZLIB
    case Coding::gzip:
    case Coding::deflate:
      return make_zlib_encoder(coding == Coding::gzip, level);
#endif
#ifndef TAMBOUR_NO_BROTLI
    case Coding::br:
      return make_brotli_encoder(level);
#endif
#ifndef TAMBOUR_NO_ZSTD
    case Coding::zstd:
      return make_zstd_encoder(level);
#endif
    default:
      return nullptr;
  }
}

std::unique_ptr<Decoder> make_decoder(Coding coding, [[maybe_unused]] RawDeflate raw) {
  switch (coding) {
#ifndef TAMBOUR_NO_ZLIB
    case Coding::gzip:
    case Coding::deflate:
      return make_zlib_decoder(coding == Coding::gzip, raw);
#endif
#ifndef TAMBOUR_NO_BROTLI
    case Coding::br:
      return make_brotli_decoder();
#endif
#ifndef TAMBOUR_NO_ZSTD
    case Coding::zstd:
      return make_zstd_decoder();
#endif
    default:
      return nullptr;
  }
}

}  // namespace detail::coding

std::string_view name_of(Coding coding) noexcept {
  static constexpr std::array<std::string_view, 4> names = {"gzip", "deflate", "br", "zstd"};
  return names[static_cast<std::size_t>(coding)];
}

std::optional<Coding> coding_named(std::string_view name) noexcept {
  for (const Coding coding : {Coding::gzip, Coding::deflate, Coding::br, Coding::zstd}) {
    if (equal_ignoring_case(name, name_of(coding))) return coding;
  }
  // RFC 9110, section 8.4.1.3.
  if (equal_ignoring_case(name, "x-gzip")) return Coding::gzip;
  return std::nullopt;
}

bool is_available([[maybe_unused]] Coding coding) noexcept {
  bool is_available = false;
#ifndef TAMBOUR_NO_ZLIB
  is_available = is_available || coding == Coding::gzip || coding == Coding::deflate;
#endif
#ifndef TAMBOUR_NO_BROTLI
  is_available = is_available || coding == Coding::br;
#endif
#ifndef TAMBOUR_NO_ZSTD
  is_available = is_available || coding == Coding::zstd;
#endif
  return is_available;
}

}  // namespace tambour::http
