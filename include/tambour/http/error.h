// The errors of HTTP: of URLs, fields, messages, servers and clients.
//
// They form an error category of their own and can be compared with an Error:
// `if (error == http::ErrorCode::body_too_large)`. Each rejected message has an error that names
// the rule it breaks; status_for() returns the status with which a server answers it.
#pragma once

#include <system_error>
#include <type_traits>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// What is wrong with a URL or a message, or has gone wrong in a connection.
enum class ErrorCode : int {
  // URLs: RFC 3986.
  url_bad_character = 1,  ///< A character that the component must not contain unencoded.
  url_bad_encoding,       ///< A percent sign that is not followed by two hexadecimal digits.
  url_bad_scheme,         ///< The text before the first colon is not a scheme.
  url_bad_host,           ///< Not a name, IPv4 address, or IPv6 address in brackets.
  url_bad_port,           ///< Not a number between 0 and 65535.
  url_ambiguous_path,     ///< The path would be read as another component.
  url_not_absolute,       ///< A URL with a scheme is required.
  url_too_long,           ///< More than Url::size_max bytes.

  // Names and values that a program sets.
  bad_method_name,   ///< Not a token, or more than Method::size_max bytes.
  bad_field_name,    ///< Not a token: RFC 9110, section 5.1.
  bad_field_value,   ///< A control character, for example a line end or a null byte.
  bad_status,        ///< Not between 100 and 999.
  bad_reason,        ///< A control character in a reason phrase.
  bad_cookie,        ///< A character, a size or a combination of attributes: see SetCookie.
  fields_too_large,  ///< More than Fields::bytes_max bytes; received: more than the limit.
  bad_event,         ///< A line end in the type or id of a ServerEvent, or a null byte in its id.
  bad_origin,        ///< An origin of CorsOptions that browsers do not send.
  credentials_for_any_origin,  ///< CorsOptions with "*" and credentials.
  bad_coding_level,            ///< A level of CompressOptions outside its range.

  // Received messages of HTTP/1.1: RFC 9112.
  bad_request_line = 100,  ///< Not a method, a target and a version, separated by one space each.
  method_too_long,         ///< More than Method::size_max bytes.
  bad_target,              ///< Not a target, or of a form that the method does not allow.
  bad_version,             ///< Not "HTTP/", a digit, a dot and a digit.
  version_not_supported,   ///< Not HTTP/1.
  bad_status_line,         ///< Not a version, a status and a reason phrase.
  start_line_too_long,     ///< The first line exceeds Http1Limits::start_line_bytes_max.
  bare_carriage_return,    ///< A CR that is not followed by LF.
  bare_line_feed,          ///< An LF that does not follow a CR.
  folded_field,            ///< A line that begins with a space or tab: section 5.2.
  missing_colon,           ///< A line without a colon, where a field is expected.
  space_before_colon,      ///< A space or tab between the name of a field and its colon.
  too_many_fields,         ///< More than MessageLimits::fields_max or trailers_max.
  missing_host,            ///< No Host field in a request of HTTP/1.1.
  several_hosts,           ///< More than one Host field.
  bad_host,                ///< The Host field is not a host with an optional port.
  http_2_preface,          ///< The preface of HTTP/2 without ALPN; the server does not speak it.

  // The end of a message's body: RFC 9112, section 6.
  bad_content_length = 150,       ///< Not a number of digits, or a number that is too large.
  several_content_lengths,        ///< More than one length, even if they are equal.
  length_with_transfer_encoding,  ///< Both fields: the message may be an attack.
  bad_transfer_encoding,          ///< Not a list of transfer codings that ends with "chunked".
  unsupported_transfer_encoding,  ///< Another coding than "chunked".
  transfer_encoding_in_http_1_0,  ///< HTTP/1.0 does not define the field.
  bad_chunk_size,                 ///< Not a hexadecimal number, or one that is too large.
  bad_chunk_extension,            ///< Not a name with an optional value.
  chunk_extensions_too_large,     ///< More than Http1Limits::chunk_extension_bytes_max.
  bad_chunk_end,                  ///< The data of a chunk is not followed by CRLF.
  trailer_not_allowed,            ///< A field that frames or routes a message, as a trailer.
  body_too_large,                 ///< More than MessageLimits::body_bytes_max.
  connect_with_body,              ///< CONNECT has no body: RFC 9110, section 9.3.6.

  // Content codings: RFC 9110, section 8.4.
  bad_content_coding = 180,    ///< A body that is malformed in its coding (gzip, br, zstd).
  unsupported_content_coding,  ///< Content-Encoding names an unknown coding, or too many.
  decoded_too_large,           ///< More than DecodingLimits, or MessageLimits::body_bytes_max.
  coded_too_large,             ///< Far more coded bytes than what they decode to.

  // Forms: RFC 7578, URL Standard.
  not_a_form = 190,     ///< Content-Type is not one of the types of forms.
  bad_boundary,         ///< multipart/form-data without a valid boundary.
  bad_delimiter,        ///< Text after a boundary on its line.
  bad_disposition,      ///< A part without a valid Content-Disposition with a name.
  too_many_form_parts,  ///< More than FormLimits::parts_max.
  form_part_too_large,  ///< More than FormLimits::part_bytes_max.

  // Responses that a program sends.
  response_begun = 200,  ///< The response has already been sent, or its head has been.
  response_ended,        ///< The body has already ended.
  response_too_long,     ///< More bytes than its length, or a body where the status allows none.
  response_too_short,    ///< Fewer bytes than its length.
  not_an_upgrade,        ///< The request does not ask for the protocol of the response.
  interim_status,        ///< A status below 200, which a response of a handler must not have.
  bad_parameter,         ///< A parameter of a route or query, see Request::parameter_as().

  // The TLS context of a server: see http/server.h.
  offered_http_2 = 230,    ///< Its ALPN names "h2", which the server does not speak.
  offered_other_protocol,  ///< Its ALPN names another protocol than "http/1.1".

  // Clients. Servers report the last two as well.
  too_many_redirects = 250,    ///< More than ClientOptions::redirects_max.
  too_many_interim_responses,  ///< More than 32 responses with a status below 200.
  bad_credentials,             ///< A colon in a user name, or a control character.
  bad_location,                ///< A redirect to something that is not a URL of HTTP.
  negotiated_http_2,           ///< ALPN has chosen "h2", which this end does not speak.
  negotiated_other_protocol,   ///< ALPN has chosen another protocol than "http/1.1".
  http_2_not_negotiated,       ///< VersionChoice::http_2, but ALPN has not chosen "h2".
  http_2_violation,            ///< The server has broken a rule of HTTP/2, or has exceeded a limit.
  stream_refused,              ///< By REFUSED_STREAM or GOAWAY: the request was not processed.
  http_1_required,             ///< By HTTP_1_1_REQUIRED, with VersionChoice::http_2.
  stream_reset,                ///< The server has reset the stream of the request.
  no_extended_connect,         ///< The connection does not support extended CONNECT (RFC 8441).

  // Event streams, as a client receives them: http/event_source.h.
  unexpected_status = 280,  ///< A response with a status that the caller cannot use.
  not_an_event_stream,      ///< Content-Type is not text/event-stream.
  event_line_too_long,      ///< More than EventLimits::line_bytes_max.
  event_too_large,          ///< More than EventLimits::data_bytes_max or id_bytes_max.

  // Downloads: http/download.h.
  bad_content_range,  ///< Content-Range is not the range that was requested.
};

/// The category "tambour.http", whose values are those of ErrorCode. Any thread.
const std::error_category& error_category() noexcept;

/// Converts to an Error, also implicitly: `error == http::ErrorCode::missing_host`.
[[nodiscard]] inline Error make_error_code(
    ErrorCode error) noexcept {  // NOLINT: the standard's own name.
  return {static_cast<int>(error), error_category()};
}

}  // namespace tambour::http

template <>
struct std::is_error_code_enum<tambour::http::ErrorCode> : std::true_type {};

#pragma GCC visibility pop
