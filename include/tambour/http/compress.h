// Compressed responses, and compressed bodies of requests: middleware for the Router.
//
// The most likely mistake: compressing responses that contain both a secret and text that an
// attacker chooses, because their size then tells the secret (BREACH); see docs/http.md.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/coding.h>  // IWYU pragma: export
#include <tambour/http/router.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// Which responses compress() compresses, and how.
struct CompressOptions {
  /// In the order of preference, which decides between codings that the client accepts equally.
  /// Those that are not available are ignored.
  std::vector<Coding> codings = {Coding::zstd, Coding::br, Coding::gzip};
  /// Smaller bodies are sent as they are. The default fits into one packet anyway.
  std::size_t bytes_min = 1024;
  /// Media types without parameters: "text/html"; "text/*" for all of a type, "+json" for all with
  /// this suffix. Others are sent as they are: images, video and archives are compressed already.
  std::vector<std::string> media_types = {"text/*",
                                          "+json",
                                          "+xml",
                                          "application/json",
                                          "application/javascript",
                                          "application/x-javascript",
                                          "application/xml",
                                          "application/x-ndjson",
                                          "application/wasm",
                                          "font/ttf",
                                          "font/otf",
                                          "image/bmp",
                                          "image/x-icon"};
  int gzip_level = 5;      ///< 1 (fast) to 9.
  int brotli_quality = 4;  ///< 0 (fast) to 11; from 5 on, much slower.
  int zstd_level = 3;      ///< 1 (fast) to 19.
};

/// A middleware that compresses responses with the coding that the client prefers
/// (Accept-Encoding: RFC 9110, section 12.5.3). It sets Content-Encoding and Vary, and makes ETag
/// weak, because the bytes differ from those that the tag names.
///
///   router.use(http::compress());
///
/// Sent as they are: responses to clients that accept no coding; bodies below `bytes_min` and of
/// other media types; partial content (206); responses with Content-Encoding, Content-Digest or
/// "Cache-Control: no-transform". Each write() is flushed, so that streams of events arrive at
/// once. Compression runs on the thread of the loop; a body of more than 256 KiB is compressed
/// piece by piece while it is sent, so that other connections are served meanwhile.
///
/// Memory: while a body is sent, at the default levels, about 270 KiB (gzip), up to 3.5 MiB (br),
/// or 2 MiB (zstd); at the highest ones up to 37 MiB and 82 MiB. See also Http2Options.
[[nodiscard]] Middleware compress();
/// Fails with http::ErrorCode::bad_coding_level if a level is outside its range.
[[nodiscard]] Result<Middleware> compress(CompressOptions options);

/// A middleware that calls IncomingBody::decode(): handlers get the bodies of requests decoded. It
/// answers 415 with Accept-Encoding if the coding is not supported.
[[nodiscard]] Middleware decode_requests(DecodingLimits limits = {});

}  // namespace tambour::http

#pragma GCC visibility pop
