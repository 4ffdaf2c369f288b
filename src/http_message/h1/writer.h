// Writes messages of HTTP/1.1: RFC 9112.
//
// The framing of the body and the persistence of the connection are arguments: the fields
// Content-Length, Transfer-Encoding and Connection of a head are not written, nor is the Host field
// of a request, so that they cannot contradict them.
#pragma once

#include <cstdint>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>

#include "http_message/h1/framing.h"

namespace tambour::http::detail::h1 {

/// What a head says about the connection.
struct HeadOptions {
  BodyFraming framing{};
  /// BodyKind::length with 0 bytes is written, BodyKind::none is not.
  std::string_view connection{};  ///< The value of the Connection field; empty: no field.
  /// The Date field with its line end, unless the head has a Date; empty: no field.
  std::string_view date_line{};
  std::string_view body{};  ///< Of a response: written behind the head.
};

/// Appends the head of a request, whose target has the form of `head.form`. Fails with
/// http::ErrorCode::bad_target or bad_host if the target or the authority is invalid; nothing is
/// appended then. Throws std::bad_alloc.
[[nodiscard]] Result<> append_head(Buffer& to, const RequestHead& head, const HeadOptions& options);

/// Appends the head of a response, always as HTTP/1.1. Fails with http::ErrorCode::bad_status or
/// bad_reason.
[[nodiscard]] Result<> append_head(Buffer& to, const ResponseHead& head,
                                   const HeadOptions& options);

/// Writes the head of a response to the beginning of `to`, and returns its size; 0: there may be
/// too little room, and nothing was written. Fails like append_head().
[[nodiscard]] Result<std::size_t> write_head(std::span<char> to, const ResponseHead& head,
                                             const HeadOptions& options);

/// Appends a chunk with `data`, which must not be empty: that would be the last chunk. Throws
/// std::bad_alloc.
void append_chunk(Buffer& to, Buffer data);

/// Appends the last chunk and the trailers. Fails with http::ErrorCode::trailer_not_allowed. Throws
/// std::bad_alloc.
[[nodiscard]] Result<> append_last_chunk(Buffer& to, const Fields& trailers);

}  // namespace tambour::http::detail::h1
