// Writes HEADERS, and CONTINUATION where one frame is too small: RFC 9113, section 6.2 and 8.3.
//
// As in h1/writer.h, the length of the body is an argument, and fields that contradict the protocol
// are not written: Content-Length (without the argument), Host of a request, and the fields of a
// connection of HTTP/1, such as Connection and Transfer-Encoding.
//
// If a function fails or throws, neither the buffer nor the state of the encoder has changed.
#pragma once

#include <array>
#include <cstddef>
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

/// The field block of the last response. While all of its fields are in the tables of the encoder,
/// a response with the same fields has the same block. It remembers the fields of a response if the
/// one before had the same status and as many bytes of fields, so that responses whose fields
/// differ cost nothing more.
///
/// Ownership: owned by the connection, as the encoder is. Memory: at most 2 KiB.
class ResponseBlock {
 public:
  struct Match {
    std::string_view block;   ///< Empty: the response has other fields.
    bool has_length = false;  ///< The block contains the Content-Length.
  };

  /// The block of a response, or its part before the Content-Length. Valid until note() is called.
  [[nodiscard]] Match find(const HpackEncoder& encoder, const ResponseHead& head,
                           const HeadOptions& options) const noexcept;
  /// A block was written. `fixed` is its part before the Content-Length, and `block` all of it.
  /// `table_state` is that of the encoder, before and after; 0 if the block has changed it, because
  /// the indices of the block are then those of other entries.
  void note(std::uint64_t table_state, const ResponseHead& head, const HeadOptions& options,
            std::string_view fixed, std::string_view block) noexcept;

 private:
  static constexpr std::size_t block_bytes_max = 32;
  static constexpr std::size_t date_bytes_max = 32;

  Fields fields_;
  std::array<char, block_bytes_max> bytes_{};
  std::array<char, date_bytes_max> date_{};
  std::uint64_t content_length_ = 0;
  std::uint64_t table_state_ = 0;  ///< That of the encoder. 0: nothing is remembered.
  std::size_t fields_bytes_ = 0;   ///< Of the last response.
  int status_ = 0;
  std::uint8_t date_size_ = 0;
  std::uint8_t fixed_size_ = 0;
  std::uint8_t size_ = 0;  ///< With the Content-Length; 0: not remembered.
};

/// Appends the head of a request. The scheme is "https" if `head.scheme` is empty. Fails with
/// http::ErrorCode::bad_target or bad_host. Throws std::bad_alloc.
[[nodiscard]] Result<> append_head(Buffer& to, HpackEncoder& encoder, const RequestHead& head,
                                   const HeadOptions& options);

/// Appends the head of a response. Fails with http::ErrorCode::bad_status, also for 101, which
/// HTTP/2 does not have. `last` is that of the connection. Throws std::bad_alloc.
[[nodiscard]] Result<> append_head(Buffer& to, HpackEncoder& encoder, const ResponseHead& head,
                                   const HeadOptions& options, ResponseBlock* last = nullptr);

/// Appends trailers, which end the stream. Fails with http::ErrorCode::trailer_not_allowed. Throws
/// std::bad_alloc.
[[nodiscard]] Result<> append_trailers(Buffer& to, HpackEncoder& encoder, const Fields& trailers,
                                       const HeadOptions& options);

}  // namespace tambour::http::detail::h2
