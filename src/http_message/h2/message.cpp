// Makes heads of decoded fields.
#include "http_message/h2/message.h"

#include <string_view>

#include "http_message/characters.h"
#include "http_message/content_length.h"
#include "http_message/field_writer.h"
#include "http_message/h1/trailers.h"
#include "http_message/request_target.h"
#include "http_message/url_syntax.h"

namespace tambour::http::detail::h2 {
namespace {

using Checked = std::expected<void, Violation>;

/// The pseudo-header fields of a request; null if the request does not have them.
struct Request {
  std::string_view method;
  std::string_view scheme;
  std::string_view authority;
  std::string_view path;
  std::string_view protocol;
};

constexpr bool is_present(std::string_view value) noexcept { return value.data() != nullptr; }

bool is_scheme(std::string_view text) noexcept {
  return !text.empty() && is_letter(text.front()) && all_are(text, scheme_char);
}

/// Which pseudo-header fields the method requires: RFC 9113, section 8.3.1 and 8.5.
Checked check_presence(const Request& request, const RequestRules& rules) noexcept {
  if (!is_present(request.method)) return std::unexpected(Violation::missing_pseudo_header);
  const bool is_connect = request.method == Method::connect.name();
  const bool has_protocol = is_present(request.protocol);
  if (has_protocol && (!is_connect || !rules.allows_connect_protocol))
    return std::unexpected(Violation::unexpected_pseudo_header);
  if (is_connect && !is_present(request.authority))
    return std::unexpected(Violation::missing_pseudo_header);
  const bool has_scheme = is_present(request.scheme);
  const bool has_path = is_present(request.path);
  const bool is_tunnel = is_connect && !has_protocol;
  if (is_tunnel && (has_scheme || has_path))
    return std::unexpected(Violation::unexpected_pseudo_header);
  if (!is_tunnel && (!has_scheme || !has_path))
    return std::unexpected(Violation::missing_pseudo_header);
  return {};
}

/// Removes the Host field, which has the same meaning as :authority. `is_valid`: it was checked.
Checked set_authority(RequestHead& head, std::string_view authority, bool is_valid) {
  constexpr http::detail::KnownName host_name("Host");
  const std::size_t at = FieldWriter::find(head.fields, host_name);
  if (at != head.fields.size()) {
    const std::string_view host = head.fields[at].value;
    if (FieldWriter::find(head.fields, host_name, at + 1) != head.fields.size() ||
        (is_present(authority) && !equal_ignoring_case(host, authority)))
      return std::unexpected(Violation::different_host);
    head.authority = host;
    head.fields.remove("Host");
  } else {
    head.authority = authority;
  }
  if (!is_valid && !parse_host_and_port(head.authority))
    return std::unexpected(Violation::bad_authority);
  const bool is_http = head.scheme == "http" || head.scheme == "https";
  if (is_http && head.authority.empty()) return std::unexpected(Violation::missing_authority);
  return {};
}

Checked set_target(RequestHead& head, const Request& request) {
  if (!is_present(request.path)) {
    head.form = TargetForm::authority;
    head.target = head.authority;
  } else {
    head.form = request.path == "*" ? TargetForm::asterisk : TargetForm::origin;
    head.target = request.path;
  }
  // The authority has been checked. Only that of a tunnel must have a port.
  const bool is_tunnel = !is_present(request.path);
  const Result<> checked = is_present(request.protocol) ? check_extended_connect(head)
                           : is_tunnel                  ? check_target(head)
                                                        : check_path(head);
  if (checked) return {};
  return std::unexpected(is_present(request.path) ? Violation::bad_path : Violation::bad_authority);
}

Checked check_fields(const FieldSection& section) noexcept {
  if (const auto violation = section.violation()) return std::unexpected(*violation);
  return {};
}

}  // namespace

Checked make_request(FieldSection& section, const RequestRules& rules, RequestHead& head,
                     std::string& protocol) {
  if (auto checked = check_fields(section); !checked) return checked;
  // Before there are views of the section: its text may move when cookies are joined.
  section.move_fields_to(head.fields);
  const Request request = {.method = section.pseudo_header(NameKind::method),
                           .scheme = section.pseudo_header(NameKind::scheme),
                           .authority = section.pseudo_header(NameKind::authority),
                           .path = section.pseudo_header(NameKind::path),
                           .protocol = section.pseudo_header(NameKind::protocol)};
  if (is_present(section.pseudo_header(NameKind::status)))
    return std::unexpected(Violation::unexpected_pseudo_header);
  if (auto checked = check_presence(request, rules); !checked) return checked;
  const auto method = Method::parse(request.method);
  if (!method) return std::unexpected(Violation::bad_method);
  if (is_present(request.scheme) && !is_scheme(request.scheme))
    return std::unexpected(Violation::bad_scheme);
  head.version = Version::http_2;
  head.method = *method;
  head.scheme = request.scheme;
  protocol = request.protocol;
  if (auto checked = set_authority(head, request.authority, section.has_valid_authority());
      !checked)
    return checked;
  return set_target(head, request);
}

Checked make_response(FieldSection& section, bool ends_stream, ResponseHead& head) {
  if (auto checked = check_fields(section); !checked) return checked;
  const std::string_view status = section.pseudo_header(NameKind::status);
  if (!is_present(status)) return std::unexpected(Violation::missing_pseudo_header);
  if (section.pseudo_header_count() > 1)
    return std::unexpected(Violation::unexpected_pseudo_header);
  if (status.size() != 3 || !is_digit(status[0]) || !is_digit(status[1]) || !is_digit(status[2]) ||
      status[0] == '0')
    return std::unexpected(Violation::bad_status);
  head.status = Status((status[0] - '0') * 100 + (status[1] - '0') * 10 + (status[2] - '0'));
  if (head.status == Status::switching_protocols)
    return std::unexpected(Violation::switching_protocols);
  if (is_interim(head.status) && ends_stream)
    return std::unexpected(Violation::interim_response_ends_stream);
  head.version = Version::http_2;
  head.reason.clear();
  section.move_fields_to(head.fields);
  return {};
}

Checked make_trailers(FieldSection& section, Fields& trailers) {
  if (auto checked = check_fields(section); !checked) return checked;
  if (section.pseudo_header_count() > 0)
    return std::unexpected(Violation::pseudo_header_in_trailers);
  section.move_fields_to(trailers);
  for (const Field field : trailers) {
    if (!h1::may_be_trailer(field.name)) return std::unexpected(Violation::bad_trailer);
  }
  return {};
}

std::expected<BodyLength, Violation> BodyLength::of_request(const RequestHead& head) noexcept {
  const auto length = content_length(head.fields);
  if (!length) return std::unexpected(Violation::bad_content_length);
  // The DATA of a tunnel are no body.
  return BodyLength(head.method == Method::connect ? std::nullopt : *length);
}

std::expected<BodyLength, Violation> BodyLength::of_response(const ResponseHead& head,
                                                             const Method& method) noexcept {
  const auto length = repeated_content_length(head.fields);
  if (!length) return std::unexpected(Violation::bad_content_length);
  if (method == Method::head || has_no_body(head.status)) return BodyLength(0);
  if (method == Method::connect && is_success(head.status)) return BodyLength();
  return BodyLength(*length);
}

Checked BodyLength::add(std::uint64_t bytes) noexcept {
  if (!left_) return {};
  if (bytes > *left_) return std::unexpected(Violation::body_longer_than_content_length);
  *left_ -= bytes;
  return {};
}

Checked BodyLength::finish() const noexcept {
  if (left_.value_or(0) > 0) return std::unexpected(Violation::body_shorter_than_content_length);
  return {};
}

}  // namespace tambour::http::detail::h2
