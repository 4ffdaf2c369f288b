// The error category of HTTP.
#include <cerrno>

#include <tambour/http_error.h>
#include <tambour/http_message.h>
#include <tambour/stream_error.h>

#include "base/error_table.h"

namespace tambour {
namespace {

constexpr base::ErrorText<HttpError> texts[] = {
    {HttpError::url_bad_character, "The URL contains a character that must be percent-encoded"},
    {HttpError::url_bad_encoding, "The URL contains a percent sign without two hexadecimal digits"},
    {HttpError::url_bad_scheme, "The URL has text before its first colon that is not a scheme"},
    {HttpError::url_bad_host, "The URL has a host that is neither a name nor an address"},
    {HttpError::url_bad_port, "The URL has a port that is not a number from 0 to 65535"},
    {HttpError::url_ambiguous_path, "The path would be read as another component of the URL"},
    {HttpError::url_not_absolute, "The URL has no scheme, but must be absolute"},
    {HttpError::url_too_long, "The URL is longer than 65535 bytes"},
    {HttpError::bad_method_name, "The method is not a token, or too long"},
    {HttpError::bad_field_name, "The name of the field is not a token"},
    {HttpError::bad_field_value, "The value of the field contains a control character"},
    {HttpError::bad_status, "The status is not between 100 and 999"},
    {HttpError::bad_reason, "The reason phrase contains a control character"},
    {HttpError::bad_cookie, "The cookie has an invalid name, value or attribute"},
    {HttpError::fields_too_large, "The fields exceed the bytes that they may have"},
    {HttpError::bad_event, "The type or id of the event contains a line end or a null byte"},
    {HttpError::bad_origin,
     "An origin is not a scheme and a host, such as \"https://example.org\""},
    {HttpError::credentials_for_any_origin,
     "The origin \"*\" cannot be combined with credentials; list the origins"},
    {HttpError::bad_coding_level, "A level of compression is outside its range"},
    {HttpError::bad_request_line, "The request line is not a method, a target and a version"},
    {HttpError::method_too_long, "The method is longer than any known method"},
    {HttpError::bad_target, "The request target is invalid, or not allowed for the method"},
    {HttpError::bad_version, "The version of the protocol is malformed"},
    {HttpError::version_not_supported, "The version of the protocol is not HTTP/1"},
    {HttpError::bad_status_line, "The status line is not a version, a status and a reason phrase"},
    {HttpError::start_line_too_long, "The first line of the message exceeds its limit"},
    {HttpError::bare_carriage_return, "A carriage return is not followed by a line feed"},
    {HttpError::bare_line_feed, "A line feed does not follow a carriage return"},
    {HttpError::folded_field, "A line that continues a field (obsolete line folding)"},
    {HttpError::missing_colon, "A line of the head has no colon"},
    {HttpError::space_before_colon, "White space between the name of a field and its colon"},
    {HttpError::too_many_fields, "The message has more fields than its limit"},
    {HttpError::missing_host, "The request has no Host field"},
    {HttpError::several_hosts, "The request has more than one Host field"},
    {HttpError::bad_host, "The Host field is not a host with an optional port"},
    {HttpError::http_2_preface,
     "The client speaks HTTP/2 without negotiation (\"h2c\"), which is not supported"},
    {HttpError::bad_content_length, "The Content-Length is not a number, or too large"},
    {HttpError::several_content_lengths, "The message has more than one Content-Length"},
    {HttpError::length_with_transfer_encoding,
     "The message has both Content-Length and Transfer-Encoding"},
    {HttpError::bad_transfer_encoding, "The Transfer-Encoding does not end with one \"chunked\""},
    {HttpError::unsupported_transfer_encoding,
     "The Transfer-Encoding contains another coding than \"chunked\""},
    {HttpError::transfer_encoding_in_http_1_0, "A message of HTTP/1.0 has a Transfer-Encoding"},
    {HttpError::bad_chunk_size, "The size of a chunk is not a hexadecimal number, or too large"},
    {HttpError::bad_chunk_extension, "An extension of a chunk is malformed"},
    {HttpError::chunk_extensions_too_large, "The extensions of the chunks exceed their limit"},
    {HttpError::bad_chunk_end, "The data of a chunk is not followed by CRLF"},
    {HttpError::trailer_not_allowed, "A trailer field that must not be a trailer"},
    {HttpError::body_too_large, "The body of the message exceeds its limit"},
    {HttpError::connect_with_body,
     "A CONNECT request has a body, but the bytes after its head belong to the tunnel"},
    {HttpError::bad_content_coding, "The body is malformed in its content coding"},
    {HttpError::unsupported_content_coding, "The body has a content coding that is not supported"},
    {HttpError::decoded_too_large, "The decoded body exceeds its limit"},
    {HttpError::coded_too_large, "The body has far more coded bytes than what they decode to"},
    {HttpError::not_a_form,
     "The Content-Type is neither multipart/form-data nor that of an encoded form"},
    {HttpError::bad_boundary, "The Content-Type has no boundary of 1 to 70 permitted characters"},
    {HttpError::bad_delimiter,
     "The body of the form is not parts that are separated by its boundary"},
    {HttpError::bad_disposition, "A part of the form has no Content-Disposition with one name"},
    {HttpError::too_many_form_parts, "The form has more parts than its limit"},
    {HttpError::form_part_too_large, "A part of the form exceeds its limit"},
    {HttpError::response_begun, "The response has already begun"},
    {HttpError::response_ended, "The body of the response has already ended"},
    {HttpError::response_too_long,
     "The body of the response is longer than its length or its status allow"},
    {HttpError::response_too_short, "The body of the response is shorter than its length"},
    {HttpError::not_an_upgrade,
     "The request does not ask for the protocol in the field Upgrade of the response"},
    {HttpError::interim_status,
     "A status below 200 cannot be sent as the response; for 101, call upgrade()"},
    {HttpError::offered_http_2,
     "The TLS context of the server offers \"h2\" (HTTP/2) with ALPN, which is not supported; name "
     "only \"http/1.1\" in TlsOptions::alpn"},
    {HttpError::offered_other_protocol,
     "The TLS context of the server offers another protocol than \"http/1.1\" with ALPN, which is "
     "not supported; name only \"http/1.1\" in TlsOptions::alpn"},
    {HttpError::too_many_redirects, "The server redirects the request too often"},
    {HttpError::too_many_interim_responses, "The server sends interim responses without end"},
    {HttpError::bad_credentials,
     "The user or the password contains a character that Basic does not allow"},
    {HttpError::bad_location,
     "The Location of the redirect is not a URL that the client can request"},
    {HttpError::negotiated_http_2,
     "ALPN has chosen \"h2\" (HTTP/2), which is not supported; name only \"http/1.1\" in "
     "TlsOptions::alpn"},
    {HttpError::negotiated_other_protocol,
     "ALPN has chosen another protocol than \"http/1.1\", which is not supported; name only "
     "\"http/1.1\" in TlsOptions::alpn"},
};

}  // namespace

const std::error_category& http_category() noexcept {
  static constinit const base::ErrorTable category("tambour.http", "Unknown HTTP error", texts);
  return category;
}

namespace http {

Status status_for(const Error& error) noexcept {
  if (error == system_error(ETIMEDOUT)) return Status::request_timeout;
  if (error == StreamError::truncated) return Status::bad_request;
  if (error.category() != http_category()) return Status::internal_server_error;
  switch (static_cast<HttpError>(error.value())) {
    case HttpError::method_too_long:
    case HttpError::unsupported_transfer_encoding:
      return Status::not_implemented;
    case HttpError::version_not_supported:
    case HttpError::http_2_preface:
      return Status::http_version_not_supported;
    case HttpError::start_line_too_long:
      return Status::uri_too_long;
    case HttpError::too_many_fields:
    case HttpError::fields_too_large:
      return Status::request_header_fields_too_large;
    case HttpError::body_too_large:
    case HttpError::decoded_too_large:
    case HttpError::coded_too_large:
    case HttpError::too_many_form_parts:
    case HttpError::form_part_too_large:
      return Status::content_too_large;
    case HttpError::unsupported_content_coding:
    case HttpError::not_a_form:
      return Status::unsupported_media_type;
    case HttpError::bad_status:
    case HttpError::bad_reason:
    case HttpError::bad_event:
    case HttpError::bad_origin:
    case HttpError::credentials_for_any_origin:
    case HttpError::bad_coding_level:
    case HttpError::bad_status_line:
    case HttpError::response_begun:
    case HttpError::response_ended:
    case HttpError::response_too_long:
    case HttpError::response_too_short:
    case HttpError::not_an_upgrade:
    case HttpError::interim_status:
      return Status::internal_server_error;
    default:
      return Status::bad_request;
  }
}

}  // namespace http

}  // namespace tambour
