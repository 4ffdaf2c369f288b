// The error category of HTTP.
#include <cerrno>

#include <tambour/http_error.h>
#include <tambour/http_message.h>
#include <tambour/stream_error.h>

namespace tambour {
namespace {

class HttpCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "http"; }
  [[nodiscard]] std::string message(int value) const override { return text(HttpError(value)); }

 private:
  static const char* text(HttpError error) noexcept {
    switch (error) {
      case HttpError::url_bad_character:
        return "The URL contains a character that must be percent-encoded";
      case HttpError::url_bad_encoding:
        return "The URL contains a percent sign without two hexadecimal digits";
      case HttpError::url_bad_scheme:
        return "The URL has text before its first colon that is not a scheme";
      case HttpError::url_bad_host:
        return "The URL has a host that is neither a name nor an address";
      case HttpError::url_bad_port:
        return "The URL has a port that is not a number from 0 to 65535";
      case HttpError::url_ambiguous_path:
        return "The path would be read as another component of the URL";
      case HttpError::url_not_absolute:
        return "The URL has no scheme, but must be absolute";
      case HttpError::url_too_long:
        return "The URL is longer than 65535 bytes";
      default:
        return text_of_names(error);
    }
  }
  static const char* text_of_names(HttpError error) noexcept {
    switch (error) {
      case HttpError::bad_method_name:
        return "The method is not a token, or too long";
      case HttpError::bad_field_name:
        return "The name of the field is not a token";
      case HttpError::bad_field_value:
        return "The value of the field contains a control character";
      case HttpError::bad_status:
        return "The status is not between 100 and 999";
      case HttpError::bad_reason:
        return "The reason phrase contains a control character";
      case HttpError::bad_cookie:
        return "The cookie has an invalid name, value or attribute";
      case HttpError::fields_too_large:
        return "The fields exceed the bytes that they may have";
      case HttpError::bad_event:
        return "The type or id of the event contains a line end or a null byte";
      case HttpError::bad_origin:
        return "An origin is not a scheme and a host, such as \"https://example.org\"";
      case HttpError::credentials_for_any_origin:
        return "The origin \"*\" cannot be combined with credentials; list the origins";
      case HttpError::bad_coding_level:
        return "A level of compression is outside its range";
      default:
        return text_of_message(error);
    }
  }
  static const char* text_of_message(HttpError error) noexcept {
    switch (error) {
      case HttpError::bad_request_line:
        return "The request line is not a method, a target and a version";
      case HttpError::method_too_long:
        return "The method is longer than any known method";
      case HttpError::bad_target:
        return "The request target is invalid, or not allowed for the method";
      case HttpError::bad_version:
        return "The version of the protocol is malformed";
      case HttpError::version_not_supported:
        return "The version of the protocol is not HTTP/1";
      case HttpError::bad_status_line:
        return "The status line is not a version, a status and a reason phrase";
      case HttpError::start_line_too_long:
        return "The first line of the message exceeds its limit";
      case HttpError::bare_carriage_return:
        return "A carriage return is not followed by a line feed";
      case HttpError::bare_line_feed:
        return "A line feed does not follow a carriage return";
      case HttpError::folded_field:
        return "A line that continues a field (obsolete line folding)";
      case HttpError::missing_colon:
        return "A line of the head has no colon";
      case HttpError::space_before_colon:
        return "White space between the name of a field and its colon";
      case HttpError::too_many_fields:
        return "The message has more fields than its limit";
      case HttpError::missing_host:
        return "The request has no Host field";
      case HttpError::several_hosts:
        return "The request has more than one Host field";
      case HttpError::bad_host:
        return "The Host field is not a host with an optional port";
      default:
        return text_of_framing(error);
    }
  }
  static const char* text_of_framing(HttpError error) noexcept {
    switch (error) {
      case HttpError::http_2_preface:
        return "The client speaks HTTP/2 without negotiation (\"h2c\"), which is not supported";
      case HttpError::bad_content_length:
        return "The Content-Length is not a number, or too large";
      case HttpError::several_content_lengths:
        return "The message has more than one Content-Length";
      case HttpError::length_with_transfer_encoding:
        return "The message has both Content-Length and Transfer-Encoding";
      case HttpError::bad_transfer_encoding:
        return "The Transfer-Encoding does not end with one \"chunked\"";
      case HttpError::unsupported_transfer_encoding:
        return "The Transfer-Encoding contains another coding than \"chunked\"";
      case HttpError::transfer_encoding_in_http_1_0:
        return "A message of HTTP/1.0 has a Transfer-Encoding";
      case HttpError::bad_chunk_size:
        return "The size of a chunk is not a hexadecimal number, or too large";
      case HttpError::bad_chunk_extension:
        return "An extension of a chunk is malformed";
      case HttpError::chunk_extensions_too_large:
        return "The extensions of the chunks exceed their limit";
      case HttpError::bad_chunk_end:
        return "The data of a chunk is not followed by CRLF";
      case HttpError::trailer_not_allowed:
        return "A trailer field that must not be a trailer";
      case HttpError::body_too_large:
        return "The body of the message exceeds its limit";
      case HttpError::connect_with_body:
        return "A CONNECT request has a body, but the bytes after its head belong to the tunnel";
      case HttpError::bad_content_coding:
        return "The body is malformed in its content coding";
      case HttpError::unsupported_content_coding:
        return "The body has a content coding that is not supported";
      case HttpError::decoded_too_large:
        return "The decoded body exceeds its limit";
      case HttpError::coded_too_large:
        return "The body has far more coded bytes than what they decode to";
      default:
        return text_of_response(error);
    }
  }
  static const char* text_of_form(HttpError error) noexcept {
    switch (error) {
      case HttpError::not_a_form:
        return "The Content-Type is neither multipart/form-data nor that of an encoded form";
      case HttpError::bad_boundary:
        return "The Content-Type has no boundary of 1 to 70 permitted characters";
      case HttpError::bad_delimiter:
        return "The body of the form is not parts that are separated by its boundary";
      case HttpError::bad_disposition:
        return "A part of the form has no Content-Disposition with one name";
      case HttpError::too_many_form_parts:
        return "The form has more parts than its limit";
      case HttpError::form_part_too_large:
        return "A part of the form exceeds its limit";
      default:
        return "Unknown HTTP error";
    }
  }
  static const char* text_of_response(HttpError error) noexcept {
    switch (error) {
      case HttpError::response_begun:
        return "The response has already begun";
      case HttpError::response_ended:
        return "The body of the response has already ended";
      case HttpError::response_too_long:
        return "The body of the response is longer than its length or its status allow";
      case HttpError::response_too_short:
        return "The body of the response is shorter than its length";
      case HttpError::not_an_upgrade:
        return "The request does not ask for the protocol in the field Upgrade of the response";
      case HttpError::interim_status:
        return "A status below 200 cannot be sent as the response; for 101, call upgrade()";
      case HttpError::offered_http_2:
        return "The TLS context of the server offers \"h2\" (HTTP/2) with ALPN, which is not "
               "supported; name only \"http/1.1\" in TlsOptions::alpn";
      case HttpError::offered_other_protocol:
        return "The TLS context of the server offers another protocol than \"http/1.1\" with ALPN, "
               "which is not supported; name only \"http/1.1\" in TlsOptions::alpn";
      default:
        return text_of_client(error);
    }
  }
  static const char* text_of_client(HttpError error) noexcept {
    switch (error) {
      case HttpError::too_many_redirects:
        return "The server redirects the request too often";
      case HttpError::too_many_interim_responses:
        return "The server sends interim responses without end";
      case HttpError::bad_credentials:
        return "The user or the password contains a character that Basic does not allow";
      case HttpError::bad_location:
        return "The Location of the redirect is not a URL that the client can request";
      case HttpError::negotiated_http_2:
        return "ALPN has chosen \"h2\" (HTTP/2), which is not supported; name only \"http/1.1\" "
               "in TlsOptions::alpn";
      case HttpError::negotiated_other_protocol:
        return "ALPN has chosen another protocol than \"http/1.1\", which is not supported; name "
               "only \"http/1.1\" in TlsOptions::alpn";
      default:
        return text_of_form(error);
    }
  }
};

}  // namespace

const std::error_category& http_category() noexcept {
  static const HttpCategory category;
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
