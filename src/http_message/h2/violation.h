// The rules of HTTP/2 that a peer can break, and the error codes that frames carry.
#pragma once

#include <cstdint>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>

namespace tambour::http::detail::h2 {

/// The codes of RST_STREAM and GOAWAY: RFC 9113, section 7. A peer may send any other number.
enum class ErrorCode : std::uint32_t {
  no_error = 0,
  protocol_error = 1,
  internal_error = 2,
  flow_control_error = 3,
  settings_timeout = 4,
  stream_closed = 5,
  frame_size_error = 6,
  refused_stream = 7,
  cancel = 8,
  compression_error = 9,
  connect_error = 10,
  enhance_your_calm = 11,
  inadequate_security = 12,
  http_1_1_required = 13,
};

/// A rule that the peer has broken. The function that reports it says whether it ends the
/// connection or one stream.
enum class Violation : std::uint8_t {
  // Frames.
  bad_preface,
  no_settings,
  frame_too_large,
  control_frame_too_large,
  frame_on_connection,
  frame_on_stream,
  unexpected_push_promise,
  bad_padding,
  frame_too_short,
  bad_priority_size,
  bad_rst_stream_size,
  bad_settings_size,
  settings_ack_with_payload,
  bad_enable_push,
  bad_initial_window_size,
  bad_frame_size_max,
  bad_enable_connect_protocol,
  bad_no_rfc7540_priorities,
  bad_ping_size,
  bad_window_update_size,
  zero_window_increment,
  unexpected_continuation,
  interrupted_field_block,
  too_many_continuations,
  field_block_too_large,
  bad_prioritized_stream,
  priority_update_from_server,

  // Field blocks: RFC 7541.
  truncated_field_block,
  integer_too_large,
  bad_index,
  bad_huffman_code,
  bad_huffman_padding,
  table_size_too_large,
  late_table_size_update,
  missing_table_size_update,
  far_too_many_fields,
  decoder_failed,

  // Messages: RFC 9113, section 8.
  bad_field_name,
  upper_case_field_name,
  bad_field_value,
  connection_specific_field,
  bad_te,
  unknown_pseudo_header,
  pseudo_header_after_field,
  repeated_pseudo_header,
  pseudo_header_in_trailers,
  missing_pseudo_header,
  unexpected_pseudo_header,
  bad_method,
  bad_scheme,
  bad_authority,
  missing_authority,
  different_host,
  bad_path,
  bad_status,
  switching_protocols,
  interim_response_ends_stream,
  bad_trailer,
  bad_content_length,
  body_longer_than_content_length,
  body_shorter_than_content_length,
};

/// The code with which the stream or the connection is ended.
[[nodiscard]] ErrorCode code_of(Violation violation) noexcept;
/// A sentence without a full stop, for logs and for the debug data of GOAWAY.
[[nodiscard]] std::string_view text_of(Violation violation) noexcept;
/// "PROTOCOL_ERROR"; empty if RFC 9113 does not define the code.
[[nodiscard]] std::string_view name_of(ErrorCode code) noexcept;

/// The error category "tambour.http2", whose values are those of Violation.
[[nodiscard]] const std::error_category& violation_category() noexcept;
[[nodiscard]] inline Error make_error_code(
    Violation violation) noexcept {  // NOLINT: the standard's own name.
  return {static_cast<int>(violation) + 1, violation_category()};
}

}  // namespace tambour::http::detail::h2

template <>
struct std::is_error_code_enum<tambour::http::detail::h2::Violation> : std::true_type {};
