// The error category of HTTP.
#include <tambour/http/error.h>

#include <cerrno>

#include <tambour/http/message.h>
#include <tambour/net/stream_error.h>

#include "base/error_table.h"

namespace tambour::http {

namespace {

constexpr detail::base::ErrorText<ErrorCode> texts[] = {
    {ErrorCode::url_bad_character, "The URL contains a character that must be percent-encoded"},
    {ErrorCode::url_bad_encoding, "The URL contains a percent sign without two hexadecimal digits"},
    {ErrorCode::url_bad_scheme, "The URL has text before its first colon that is not a scheme"},
    {ErrorCode::url_bad_host, "The URL has a host that is neither a name nor an address"},
    {ErrorCode::url_bad_port, "The URL has a port that is not a number from 0 to 65535"},
    {ErrorCode::url_ambiguous_path, "The path would be read as another component of the URL"},
    {ErrorCode::url_not_absolute, "The URL has no scheme, but must be absolute"},
    {ErrorCode::url_too_long, "The URL is longer than 65535 bytes"},
    {ErrorCode::bad_method_name, "The method is not a token, or too long"},
    {ErrorCode::bad_field_name, "The name of the field is not a token"},
    {ErrorCode::bad_field_value, "The value of the field contains a control character"},
    {ErrorCode::bad_status, "The status is not between 100 and 999"},
    {ErrorCode::bad_reason, "The reason phrase contains a control character"},
    {ErrorCode::bad_cookie, "The cookie has an invalid name, value or attribute"},
    {ErrorCode::fields_too_large, "The fields exceed the bytes that they may have"},
    {ErrorCode::bad_event, "The type or id of the event contains a line end or a null byte"},
    {ErrorCode::bad_origin,
     "An origin is not a scheme and a host, such as \"https://example.org\""},
    {ErrorCode::credentials_for_any_origin,
     "The origin \"*\" cannot be combined with credentials; list the origins"},
    {ErrorCode::bad_coding_level, "A level of compression is outside its range"},
    {ErrorCode::bad_request_line, "The request line is not a method, a target and a version"},
    {ErrorCode::method_too_long, "The method is longer than any known method"},
    {ErrorCode::bad_target, "The request target is invalid, or not allowed for the method"},
    {ErrorCode::bad_version, "The version of the protocol is malformed"},
    {ErrorCode::version_not_supported, "The version of the protocol is not HTTP/1"},
    {ErrorCode::bad_status_line, "The status line is not a version, a status and a reason phrase"},
    {ErrorCode::start_line_too_long, "The first line of the message exceeds its limit"},
    {ErrorCode::bare_carriage_return, "A carriage return is not followed by a line feed"},
    {ErrorCode::bare_line_feed, "A line feed does not follow a carriage return"},
    {ErrorCode::folded_field, "A line that continues a field (obsolete line folding)"},
    {ErrorCode::missing_colon, "A line of the head has no colon"},
    {ErrorCode::space_before_colon, "White space between the name of a field and its colon"},
    {ErrorCode::too_many_fields, "The message has more fields than its limit"},
    {ErrorCode::missing_host, "The request has no Host field"},
    {ErrorCode::several_hosts, "The request has more than one Host field"},
    {ErrorCode::bad_host, "The Host field is not a host with an optional port"},
    {ErrorCode::http_2_preface,
     "The client speaks HTTP/2 without negotiation (\"h2c\"), which is not supported"},
    {ErrorCode::bad_content_length, "The Content-Length is not a number, or too large"},
    {ErrorCode::several_content_lengths, "The message has more than one Content-Length"},
    {ErrorCode::length_with_transfer_encoding,
     "The message has both Content-Length and Transfer-Encoding"},
    {ErrorCode::bad_transfer_encoding, "The Transfer-Encoding does not end with one \"chunked\""},
    {ErrorCode::unsupported_transfer_encoding,
     "The Transfer-Encoding contains another coding than \"chunked\""},
    {ErrorCode::transfer_encoding_in_http_1_0, "A message of HTTP/1.0 has a Transfer-Encoding"},
    {ErrorCode::bad_chunk_size, "The size of a chunk is not a hexadecimal number, or too large"},
    {ErrorCode::bad_chunk_extension, "An extension of a chunk is malformed"},
    {ErrorCode::chunk_extensions_too_large, "The extensions of the chunks exceed their limit"},
    {ErrorCode::bad_chunk_end, "The data of a chunk is not followed by CRLF"},
    {ErrorCode::trailer_not_allowed, "A trailer field that must not be a trailer"},
    {ErrorCode::body_too_large, "The body of the message exceeds its limit"},
    {ErrorCode::connect_with_body,
     "A CONNECT request has a body, but the bytes after its head belong to the tunnel"},
    {ErrorCode::bad_content_coding, "The body is malformed in its content coding"},
    {ErrorCode::unsupported_content_coding, "The body has a content coding that is not supported"},
    {ErrorCode::decoded_too_large, "The decoded body exceeds its limit"},
    {ErrorCode::coded_too_large, "The body has far more coded bytes than what they decode to"},
    {ErrorCode::not_a_form,
     "The Content-Type is neither multipart/form-data nor that of an encoded form"},
    {ErrorCode::bad_boundary, "The Content-Type has no boundary of 1 to 70 permitted characters"},
    {ErrorCode::bad_delimiter,
     "The body of the form is not parts that are separated by its boundary"},
    {ErrorCode::bad_disposition, "A part of the form has no Content-Disposition with one name"},
    {ErrorCode::too_many_form_parts, "The form has more parts than its limit"},
    {ErrorCode::form_part_too_large, "A part of the form exceeds its limit"},
    {ErrorCode::response_begun, "The response has already begun"},
    {ErrorCode::response_ended, "The body of the response has already ended"},
    {ErrorCode::response_too_long,
     "The body of the response is longer than its length or its status allow"},
    {ErrorCode::response_too_short, "The body of the response is shorter than its length"},
    {ErrorCode::not_an_upgrade,
     "The request does not ask for the protocol in the field Upgrade of the response"},
    {ErrorCode::interim_status,
     "A status below 200 cannot be sent as the response; for 101, call upgrade()"},
    {ErrorCode::bad_parameter, "A parameter of the request is missing or has the wrong type"},
    {ErrorCode::offered_http_2,
     "The TLS context of the server offers \"h2\" (HTTP/2) with ALPN, which is not supported; name "
     "only \"http/1.1\" in tls::Options::alpn"},
    {ErrorCode::offered_other_protocol,
     "The TLS context of the server offers another protocol than \"http/1.1\" with ALPN, which is "
     "not supported; name only \"http/1.1\" in tls::Options::alpn"},
    {ErrorCode::too_many_redirects, "The server redirects the request too often"},
    {ErrorCode::too_many_interim_responses, "The server sends interim responses without end"},
    {ErrorCode::bad_credentials,
     "The user or the password contains a character that Basic does not allow"},
    {ErrorCode::bad_location,
     "The Location of the redirect is not a URL that the client can request"},
    {ErrorCode::negotiated_http_2,
     "ALPN has chosen \"h2\" (HTTP/2), which is not supported; name only \"http/1.1\" in "
     "tls::Options::alpn"},
    {ErrorCode::negotiated_other_protocol,
     "ALPN has chosen another protocol than \"http/1.1\", which is not supported; name only "
     "\"http/1.1\" in tls::Options::alpn"},
    {ErrorCode::http_2_not_negotiated,
     "The server has not chosen \"h2\" (HTTP/2) with ALPN; name it first in tls::Options::alpn"},
    {ErrorCode::http_2_violation, "The server has broken a rule of HTTP/2 or exceeded a limit"},
    {ErrorCode::stream_refused, "The server has not processed the request (HTTP/2)"},
    {ErrorCode::http_1_required, "The server requires HTTP/1.1 (HTTP_1_1_REQUIRED)"},
    {ErrorCode::stream_reset, "The server has reset the stream of the request (HTTP/2)"},
    {ErrorCode::no_extended_connect,
     "The server does not support extended CONNECT (RFC 8441) on this connection"},
    {ErrorCode::unexpected_status, "The response has a status that the client cannot use"},
    {ErrorCode::not_an_event_stream, "The Content-Type is not \"text/event-stream\""},
    {ErrorCode::event_line_too_long, "A line of the event stream exceeds its limit"},
    {ErrorCode::event_too_large, "The data or the id of an event exceeds its limit"},
    {ErrorCode::bad_content_range, "The Content-Range is not the range that was requested"},
};

}  // namespace

const std::error_category& error_category() noexcept {
  static constinit const detail::base::ErrorTable category("tambour.http", "Unknown HTTP error",
                                                           texts);
  return category;
}

Status status_for(const Error& error) noexcept {
  if (error == system_error(ETIMEDOUT)) return Status::request_timeout;
  if (error == StreamError::truncated) return Status::bad_request;
  if (error.category() != error_category()) return Status::internal_server_error;
  switch (static_cast<ErrorCode>(error.value())) {
    case ErrorCode::method_too_long:
    case ErrorCode::unsupported_transfer_encoding:
      return Status::not_implemented;
    case ErrorCode::version_not_supported:
    case ErrorCode::http_2_preface:
      return Status::http_version_not_supported;
    case ErrorCode::start_line_too_long:
      return Status::uri_too_long;
    case ErrorCode::too_many_fields:
    case ErrorCode::fields_too_large:
      return Status::request_header_fields_too_large;
    case ErrorCode::body_too_large:
    case ErrorCode::decoded_too_large:
    case ErrorCode::coded_too_large:
    case ErrorCode::too_many_form_parts:
    case ErrorCode::form_part_too_large:
      return Status::content_too_large;
    case ErrorCode::unsupported_content_coding:
    case ErrorCode::not_a_form:
      return Status::unsupported_media_type;
    case ErrorCode::bad_status:
    case ErrorCode::bad_reason:
    case ErrorCode::bad_event:
    case ErrorCode::bad_origin:
    case ErrorCode::credentials_for_any_origin:
    case ErrorCode::bad_coding_level:
    case ErrorCode::bad_status_line:
    case ErrorCode::response_begun:
    case ErrorCode::response_ended:
    case ErrorCode::response_too_long:
    case ErrorCode::response_too_short:
    case ErrorCode::not_an_upgrade:
    case ErrorCode::interim_status:
      return Status::internal_server_error;
    default:
      return Status::bad_request;
  }
}

}  // namespace tambour::http
