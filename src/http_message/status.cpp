// The reason phrases of HTTP status codes.
#include <tambour/http/status.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace tambour::http {
namespace {

struct Phrase {
  Status status;
  std::string_view text;
};

// The registry of IANA.
constexpr std::array phrases = {
    Phrase{Status::continue_, "Continue"},
    Phrase{Status::switching_protocols, "Switching Protocols"},
    Phrase{Status::processing, "Processing"},
    Phrase{Status::early_hints, "Early Hints"},
    Phrase{Status::ok, "OK"},
    Phrase{Status::created, "Created"},
    Phrase{Status::accepted, "Accepted"},
    Phrase{Status::non_authoritative_information, "Non-Authoritative Information"},
    Phrase{Status::no_content, "No Content"},
    Phrase{Status::reset_content, "Reset Content"},
    Phrase{Status::partial_content, "Partial Content"},
    Phrase{Status::multi_status, "Multi-Status"},
    Phrase{Status::already_reported, "Already Reported"},
    Phrase{Status::im_used, "IM Used"},
    Phrase{Status::multiple_choices, "Multiple Choices"},
    Phrase{Status::moved_permanently, "Moved Permanently"},
    Phrase{Status::found, "Found"},
    Phrase{Status::see_other, "See Other"},
    Phrase{Status::not_modified, "Not Modified"},
    Phrase{Status::use_proxy, "Use Proxy"},
    Phrase{Status::temporary_redirect, "Temporary Redirect"},
    Phrase{Status::permanent_redirect, "Permanent Redirect"},
    Phrase{Status::bad_request, "Bad Request"},
    Phrase{Status::unauthorized, "Unauthorized"},
    Phrase{Status::payment_required, "Payment Required"},
    Phrase{Status::forbidden, "Forbidden"},
    Phrase{Status::not_found, "Not Found"},
    Phrase{Status::method_not_allowed, "Method Not Allowed"},
    Phrase{Status::not_acceptable, "Not Acceptable"},
    Phrase{Status::proxy_authentication_required, "Proxy Authentication Required"},
    Phrase{Status::request_timeout, "Request Timeout"},
    Phrase{Status::conflict, "Conflict"},
    Phrase{Status::gone, "Gone"},
    Phrase{Status::length_required, "Length Required"},
    Phrase{Status::precondition_failed, "Precondition Failed"},
    Phrase{Status::content_too_large, "Content Too Large"},
    Phrase{Status::uri_too_long, "URI Too Long"},
    Phrase{Status::unsupported_media_type, "Unsupported Media Type"},
    Phrase{Status::range_not_satisfiable, "Range Not Satisfiable"},
    Phrase{Status::expectation_failed, "Expectation Failed"},
    Phrase{Status::misdirected_request, "Misdirected Request"},
    Phrase{Status::unprocessable_content, "Unprocessable Content"},
    Phrase{Status::locked, "Locked"},
    Phrase{Status::failed_dependency, "Failed Dependency"},
    Phrase{Status::too_early, "Too Early"},
    Phrase{Status::upgrade_required, "Upgrade Required"},
    Phrase{Status::precondition_required, "Precondition Required"},
    Phrase{Status::too_many_requests, "Too Many Requests"},
    Phrase{Status::request_header_fields_too_large, "Request Header Fields Too Large"},
    Phrase{Status::unavailable_for_legal_reasons, "Unavailable For Legal Reasons"},
    Phrase{Status::internal_server_error, "Internal Server Error"},
    Phrase{Status::not_implemented, "Not Implemented"},
    Phrase{Status::bad_gateway, "Bad Gateway"},
    Phrase{Status::service_unavailable, "Service Unavailable"},
    Phrase{Status::gateway_timeout, "Gateway Timeout"},
    Phrase{Status::http_version_not_supported, "HTTP Version Not Supported"},
    Phrase{Status::variant_also_negotiates, "Variant Also Negotiates"},
    Phrase{Status::insufficient_storage, "Insufficient Storage"},
    Phrase{Status::loop_detected, "Loop Detected"},
    Phrase{Status::not_extended, "Not Extended"},
    Phrase{Status::network_authentication_required, "Network Authentication Required"},
};

constexpr std::size_t codes_end = 600;

/// For each code: one more than the index of its phrase; 0: none. Each response needs one phrase.
constexpr auto indices = [] {
  std::array<std::uint8_t, codes_end> table{};
  for (std::size_t i = 0; i < phrases.size(); ++i)
    table.at(static_cast<std::size_t>(phrases.at(i).status)) = static_cast<std::uint8_t>(i + 1);
  return table;
}();

}  // namespace

std::string_view reason_phrase(Status status) noexcept {
  const auto code = static_cast<std::size_t>(status);
  const std::size_t index = code < codes_end ? indices[code] : 0;
  return index == 0 ? std::string_view() : phrases[index - 1].text;
}

}  // namespace tambour::http
