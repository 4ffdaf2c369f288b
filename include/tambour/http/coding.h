// Content codings (compression): RFC 9110, section 8.4.
//
// A server compresses responses with the middleware compress() of http/compress.h, and decodes the
// body of a request if its handler calls IncomingBody::decode(). A client decodes responses by
// itself: see ClientOptions::decompress. The codings use zlib, libbrotli and libzstd; a library
// that was built without one of them does not have its codings.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <tambour/base/cxx23.h>
#include <tambour/detail/namespaces.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// A content coding: RFC 9110, section 8.4.1.
enum class Coding : std::uint8_t {
  gzip,     ///< RFC 1952; also called "x-gzip".
  deflate,  ///< The zlib format of RFC 1950. Decoded, but never offered or chosen by default. In
            ///< responses, clients also decode data without the header of that format (RFC 1951).
  br,       ///< Brotli: RFC 7932.
  zstd,     ///< RFC 8878, with a window of at most 8 MiB (RFC 9659).
};

/// The name of a coding in Content-Encoding.
[[nodiscard]] std::string_view name_of(Coding coding) noexcept;
/// The coding with this name, which is case-insensitive; no value for other names and for
/// "identity".
[[nodiscard]] std::optional<Coding> coding_named(std::string_view name) noexcept;
/// False if the library was built without what the coding needs.
[[nodiscard]] bool is_available(Coding coding) noexcept;

/// How much a compressed body may become. A few KiB can decode to gigabytes ("zip bomb").
/// Conversely, a body fails with http::ErrorCode::coded_too_large if its encoded size exceeds 1 MiB
/// plus 16 bytes for each decoded byte.
struct DecodingLimits {
  /// Of the decoded body. More: http::ErrorCode::decoded_too_large.
  std::uint64_t bytes_max = std::uint64_t{64} * 1024 * 1024;
  /// Decoded bytes for each received byte, after the first MiB; zero: no limit. gzip reaches 1000
  /// with zeros, and 5 to 20 with text. More: http::ErrorCode::decoded_too_large.
  std::uint32_t ratio_max = 200;
};

}  // namespace tambour::http

#pragma GCC visibility pop
