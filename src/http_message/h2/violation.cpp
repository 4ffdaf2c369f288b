// The table of error codes and texts.
#include "http_message/h2/violation.h"

#include <array>
#include <cstddef>
#include <string>

namespace tambour::http::detail::h2 {
namespace {

struct Rule {
  Violation violation;
  ErrorCode code;
  std::string_view text;
};

consteval auto make_rules() noexcept {  // NOLINT(readability-function-size): a table.
  using enum ErrorCode;
  using enum Violation;
  return std::array{
      Rule{bad_preface, protocol_error, "The connection does not begin with the preface of HTTP/2"},
      Rule{no_settings, protocol_error, "The first frame is not SETTINGS"},
      Rule{frame_too_large, frame_size_error, "A frame exceeds SETTINGS_MAX_FRAME_SIZE"},
      Rule{control_frame_too_large, enhance_your_calm, "A control frame exceeds its limit"},
      Rule{frame_on_connection, protocol_error, "A frame of a stream has the stream number 0"},
      Rule{frame_on_stream, protocol_error, "A frame of the connection has a stream number"},
      Rule{unexpected_push_promise, protocol_error, "PUSH_PROMISE, which is not enabled"},
      Rule{bad_padding, protocol_error, "The padding of a frame is longer than the frame"},
      Rule{frame_too_short, frame_size_error, "A frame is shorter than its fixed part"},
      Rule{bad_priority_size, frame_size_error, "PRIORITY does not have 5 bytes"},
      Rule{bad_rst_stream_size, frame_size_error, "RST_STREAM does not have 4 bytes"},
      Rule{bad_settings_size, frame_size_error, "SETTINGS does not have 6 bytes for each setting"},
      Rule{settings_ack_with_payload, frame_size_error, "SETTINGS has ACK and settings"},
      Rule{bad_enable_push, protocol_error, "SETTINGS_ENABLE_PUSH has a value that is not allowed"},
      Rule{bad_initial_window_size, flow_control_error,
           "SETTINGS_INITIAL_WINDOW_SIZE exceeds 2147483647"},
      Rule{bad_frame_size_max, protocol_error,
           "SETTINGS_MAX_FRAME_SIZE is not between 16384 and 16777215"},
      Rule{bad_enable_connect_protocol, protocol_error,
           "SETTINGS_ENABLE_CONNECT_PROTOCOL is neither 0 nor 1"},
      Rule{bad_no_rfc7540_priorities, protocol_error,
           "SETTINGS_NO_RFC7540_PRIORITIES is neither 0 nor 1"},
      Rule{bad_ping_size, frame_size_error, "PING does not have 8 bytes"},
      Rule{bad_window_update_size, frame_size_error, "WINDOW_UPDATE does not have 4 bytes"},
      Rule{zero_window_increment, protocol_error, "WINDOW_UPDATE has an increment of 0"},
      Rule{unexpected_continuation, protocol_error,
           "CONTINUATION does not follow HEADERS of the same stream"},
      Rule{interrupted_field_block, protocol_error,
           "A field block is interrupted by another frame"},
      Rule{too_many_continuations, enhance_your_calm, "A field block has too many CONTINUATION"},
      Rule{field_block_too_large, enhance_your_calm, "A field block exceeds its limit"},
      Rule{bad_prioritized_stream, protocol_error, "PRIORITY_UPDATE names the stream number 0"},
      Rule{priority_update_from_server, protocol_error, "A server has sent PRIORITY_UPDATE"},

      Rule{truncated_field_block, compression_error, "A field block ends within a field"},
      Rule{integer_too_large, compression_error, "An integer in a field block exceeds 32 bits"},
      Rule{bad_index, compression_error, "A field block refers to an entry that does not exist"},
      Rule{bad_huffman_code, compression_error, "The Huffman code of a text contains EOS"},
      Rule{bad_huffman_padding, compression_error, "The Huffman code of a text has bad padding"},
      Rule{table_size_too_large, compression_error,
           "The size of the dynamic table exceeds SETTINGS_HEADER_TABLE_SIZE"},
      Rule{late_table_size_update, compression_error,
           "The size of the dynamic table changes after the first field of a block"},
      Rule{missing_table_size_update, compression_error,
           "A field block does not begin with the reduced size of the dynamic table"},
      Rule{far_too_many_fields, enhance_your_calm, "A message has far too many fields"},
      Rule{decoder_failed, internal_error, "The decoder of fields has failed before"},

      Rule{bad_field_name, protocol_error, "The name of a field is not a token"},
      Rule{upper_case_field_name, protocol_error, "The name of a field has an upper-case letter"},
      Rule{bad_field_value, protocol_error,
           "The value of a field has a control character, or a blank at an end"},
      Rule{connection_specific_field, protocol_error,
           "A field belongs to a connection of HTTP/1, such as Connection or Transfer-Encoding"},
      Rule{bad_te, protocol_error, "The field TE has another value than \"trailers\""},
      Rule{unknown_pseudo_header, protocol_error, "A pseudo-header field is unknown"},
      Rule{pseudo_header_after_field, protocol_error, "A pseudo-header field follows other fields"},
      Rule{repeated_pseudo_header, protocol_error, "A pseudo-header field is repeated"},
      Rule{pseudo_header_in_trailers, protocol_error, "The trailers have a pseudo-header field"},
      Rule{missing_pseudo_header, protocol_error, "A pseudo-header field is missing"},
      Rule{unexpected_pseudo_header, protocol_error,
           "A pseudo-header field does not belong to the message"},
      Rule{bad_method, protocol_error, "The method is not a token, or too long"},
      Rule{bad_scheme, protocol_error, "The scheme is not a scheme of a URL"},
      Rule{bad_authority, protocol_error, "The authority is not a host with an optional port"},
      Rule{missing_authority, protocol_error, "The request has neither :authority nor Host"},
      Rule{different_host, protocol_error, "The field Host differs from :authority"},
      Rule{bad_path, protocol_error, "The path is invalid, or not allowed for the method"},
      Rule{bad_status, protocol_error, "The status is not a number between 100 and 999"},
      Rule{switching_protocols, protocol_error, "The status is 101, which HTTP/2 does not have"},
      Rule{interim_response_ends_stream, protocol_error, "An interim response ends the stream"},
      Rule{bad_trailer, protocol_error, "A trailer field that must not be a trailer"},
      Rule{bad_content_length, protocol_error,
           "The Content-Length is not a number, too large, or repeated"},
      Rule{body_longer_than_content_length, protocol_error,
           "The body is longer than its Content-Length"},
      Rule{body_shorter_than_content_length, protocol_error,
           "The body is shorter than its Content-Length"},
  };
}
constexpr auto rules = make_rules();

consteval bool are_in_order() noexcept {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (static_cast<std::size_t>(rules[i].violation) != i) return false;
  }
  return static_cast<std::size_t>(Violation::body_shorter_than_content_length) + 1 == rules.size();
}
static_assert(are_in_order());

constexpr std::array<std::string_view, 14> code_names = {"NO_ERROR",
                                                         "PROTOCOL_ERROR",
                                                         "INTERNAL_ERROR",
                                                         "FLOW_CONTROL_ERROR",
                                                         "SETTINGS_TIMEOUT",
                                                         "STREAM_CLOSED",
                                                         "FRAME_SIZE_ERROR",
                                                         "REFUSED_STREAM",
                                                         "CANCEL",
                                                         "COMPRESSION_ERROR",
                                                         "CONNECT_ERROR",
                                                         "ENHANCE_YOUR_CALM",
                                                         "INADEQUATE_SECURITY",
                                                         "HTTP_1_1_REQUIRED"};

class ViolationCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "tambour.http2"; }
  [[nodiscard]] std::string message(int value) const override {
    const auto index = static_cast<std::size_t>(value) - 1;
    return std::string(index < rules.size() ? rules[index].text : "Unknown error of HTTP/2");
  }
};

}  // namespace

ErrorCode code_of(Violation violation) noexcept {
  return rules[static_cast<std::size_t>(violation)].code;
}

std::string_view text_of(Violation violation) noexcept {
  return rules[static_cast<std::size_t>(violation)].text;
}

std::string_view name_of(ErrorCode code) noexcept {
  const auto index = static_cast<std::size_t>(code);
  return index < code_names.size() ? code_names[index] : std::string_view();
}

const std::error_category& violation_category() noexcept {
  static const ViolationCategory category;
  return category;
}

}  // namespace tambour::http::detail::h2
