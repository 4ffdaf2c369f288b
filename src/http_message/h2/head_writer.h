// Writes HEADERS, and CONTINUATION where one frame is too small: RFC 9113, section 6.2 and 8.3.
//
// As in h1/writer.h, the length of the body is an argument, and fields that contradict the protocol
// are not written: Content-Length (without the argument), Host of a request, and the fields of a
// connection of HTTP/1, such as Connection and Transfer-Encoding.
//
// If a function fails or throws, neither the buffer nor the state of the encoder has changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>

#include "http_message/h2/frame.h"
#include "http_message/h2/hpack_encoder.h"

namespace tambour::http::detail::h2 {

struct HeadOptions {
  std::uint32_t stream_id = 0;
  bool end_stream = false;
  std::uint32_t frame_size_max = frame_size_max_min;  ///< SETTINGS_MAX_FRAME_SIZE of the peer.
  std::optional<std::uint64_t> content_length{};
  std::string_view date{};      ///< Unless the head of a response has a Date; empty: no field.
  std::string_view protocol{};  ///< Of an extended CONNECT (RFC 8441); empty: none.
};

/// Appends the head of a request. The scheme is "https" if `head.scheme` is empty. Fails with
/// http::ErrorCode::bad_target or bad_host. Throws std::bad_alloc.
[[nodiscard]] Result<> append_head(Buffer& to, HpackEncoder& encoder, const RequestHead& head,
                                   const HeadOptions& options);

/// Appends the head of a response. Fails with http::ErrorCode::bad_status, also for 101, which
/// HTTP/2 does not have. Throws std::bad_alloc.
[[nodiscard]] Result<> append_head(Buffer& to, HpackEncoder& encoder, const ResponseHead& head,
                                   const HeadOptions& options);

/// Appends trailers, which end the stream. Fails with http::ErrorCode::trailer_not_allowed. Throws
/// std::bad_alloc.
[[nodiscard]] Result<> append_trailers(Buffer& to, HpackEncoder& encoder, const Fields& trailers,
                                       const HeadOptions& options);

}  // namespace tambour::http::detail::h2
