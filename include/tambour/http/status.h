// HTTP status codes: the registered ones have names, and any other number from 100 to 999 is valid.
#pragma once

#include <cstdint>
#include <string_view>

#include <tambour/base/cxx23.h>
#include <tambour/detail/namespaces.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// The registered status codes (RFC 9110, section 15, and later RFCs). Other codes are written
/// `Status(299)`; a recipient treats them like the first code of their class.
enum class Status : std::uint16_t {
  continue_ = 100,  // NOLINT(readability-identifier-naming): a keyword.
  switching_protocols = 101,
  processing = 102,
  early_hints = 103,

  ok = 200,
  created = 201,
  accepted = 202,
  non_authoritative_information = 203,
  no_content = 204,
  reset_content = 205,
  partial_content = 206,
  multi_status = 207,
  already_reported = 208,
  im_used = 226,

  multiple_choices = 300,
  moved_permanently = 301,
  found = 302,
  see_other = 303,
  not_modified = 304,
  use_proxy = 305,
  temporary_redirect = 307,
  permanent_redirect = 308,

  bad_request = 400,
  unauthorized = 401,
  payment_required = 402,
  forbidden = 403,
  not_found = 404,
  method_not_allowed = 405,
  not_acceptable = 406,
  proxy_authentication_required = 407,
  request_timeout = 408,
  conflict = 409,
  gone = 410,
  length_required = 411,
  precondition_failed = 412,
  content_too_large = 413,
  uri_too_long = 414,
  unsupported_media_type = 415,
  range_not_satisfiable = 416,
  expectation_failed = 417,
  misdirected_request = 421,
  unprocessable_content = 422,
  locked = 423,
  failed_dependency = 424,
  too_early = 425,
  upgrade_required = 426,
  precondition_required = 428,
  too_many_requests = 429,
  request_header_fields_too_large = 431,
  unavailable_for_legal_reasons = 451,

  internal_server_error = 500,
  not_implemented = 501,
  bad_gateway = 502,
  service_unavailable = 503,
  gateway_timeout = 504,
  http_version_not_supported = 505,
  variant_also_negotiates = 506,
  insufficient_storage = 507,
  loop_detected = 508,
  not_extended = 510,
  network_authentication_required = 511,
};

/// The number of a status, for example 404.
[[nodiscard]] constexpr int code_of(Status status) noexcept { return static_cast<int>(status); }

/// The class of a status, 1 to 5 for the registered ones: informational, success, redirection,
/// client error, server error.
[[nodiscard]] constexpr int class_of(Status status) noexcept { return code_of(status) / 100; }
/// True for an interim response, which another response follows: 100 to 199, except 101.
[[nodiscard]] constexpr bool is_interim(Status status) noexcept {
  return class_of(status) == 1 && status != Status::switching_protocols;
}
/// True for 200 to 299.
[[nodiscard]] constexpr bool is_success(Status status) noexcept { return class_of(status) == 2; }
/// True for 301, 302, 303, 307 and 308.
[[nodiscard]] constexpr bool is_redirect(Status status) noexcept {
  return status == Status::moved_permanently || status == Status::found ||
         status == Status::see_other || status == Status::temporary_redirect ||
         status == Status::permanent_redirect;
}
/// True if a response with this status never has a body: 1xx, 204 and 304 (RFC 9112, section 6.3).
[[nodiscard]] constexpr bool has_no_body(Status status) noexcept {
  return class_of(status) == 1 || status == Status::no_content || status == Status::not_modified;
}

/// The registered reason phrase, "Not Found"; empty for other codes. Phrases have no meaning:
/// clients ignore them, and HTTP/2 does not send them.
[[nodiscard]] std::string_view reason_phrase(Status status) noexcept;

}  // namespace tambour::http

#pragma GCC visibility pop
