// The four forms of request targets, and the host that a target or the field Host names.
#include "http_message/request_target.h"

#include <cstddef>
#include <string>

#include "bytes/short_copy.h"
#include "http_message/characters.h"
#include "http_message/failure.h"
#include "http_message/field_writer.h"
#include "http_message/url_syntax.h"

namespace tambour::http {
namespace {

/// The same as an assignment of a text that is no part of `to`. Most texts fit into its memory.
void assign(std::string& to, std::string_view text) {
  // If the text has to grow, GCC 12 passes the new capacity in place of the size.
  to.resize_and_overwrite(text.size(), [text](char* memory, std::size_t /*size*/) {
    detail::bytes::copy_short(memory, text);
    return text.size();
  });
}

/// "/path?query".
Result<> check_origin_form(std::string_view target) noexcept {
  const std::size_t query = target.find('?');
  if (!target.starts_with('/') || !check_component(target.substr(0, query), target_path_char))
    return failure(ErrorCode::bad_target);
  if (query != std::string_view::npos && !all_are(target.substr(query + 1), target_query_char))
    return failure(ErrorCode::bad_target);
  return {};
}

/// "http://example.org/path?query". Userinfo is rejected: RFC 9110, section 4.2.4.
Result<> set_absolute_form(RequestHead& head, std::string_view target) {
  const std::size_t colon = target.find(':');
  const std::string_view scheme = target.substr(0, colon);
  if (!equal_ignoring_case(scheme, "http") && !equal_ignoring_case(scheme, "https"))
    return failure(ErrorCode::bad_target);
  target.remove_prefix(colon + 1);
  if (!target.starts_with("//")) return failure(ErrorCode::bad_target);
  target.remove_prefix(2);
  const std::string_view authority = target.substr(0, target.find_first_of("/?"));
  const auto parsed = parse_host_and_port(authority);
  if (!parsed || parsed->host.empty()) return failure(ErrorCode::bad_target);
  target.remove_prefix(authority.size());
  head.form = TargetForm::absolute;
  head.scheme = std::string(scheme.size() == 4 ? "http" : "https");
  head.authority = authority;
  if (target.empty() && head.method == Method::options) {
    head.target.assign(1, '*');
    return {};
  }
  head.target.clear();
  if (!target.starts_with('/')) head.target += '/';
  head.target += target;
  return check_origin_form(head.target);
}

Result<> set_authority_form(RequestHead& head, std::string_view target) {
  const auto parsed = parse_host_and_port(target);
  if (!parsed || parsed->host.empty() || !parsed->port) return failure(ErrorCode::bad_target);
  head.form = TargetForm::authority;
  head.authority = head.target = target;
  return {};
}

Result<> set_host(RequestHead& head) {
  const std::size_t first = detail::FieldWriter::find(head.fields, "Host");
  if (first == head.fields.size()) {
    if (head.version == Version::http_1_0) return {};
    return failure(ErrorCode::missing_host);
  }
  if (detail::FieldWriter::find(head.fields, "Host", first + 1) != head.fields.size())
    return failure(ErrorCode::several_hosts);
  const std::string_view host = head.fields[first].value;
  // Most names have no port.
  if (!all_are(host, host_char) && !parse_host_and_port(host)) return failure(ErrorCode::bad_host);
  assign(head.authority, host);
  return {};
}

/// Checks a target of another form than that of CONNECT.
Result<> check_other_form(const RequestHead& head, const HostAndPort& host) noexcept {
  if (head.form == TargetForm::absolute) {
    if (host.host.empty()) return failure(ErrorCode::bad_host);
    if (head.scheme != "http" && head.scheme != "https") return failure(ErrorCode::bad_target);
  }
  const bool is_asterisk = head.target == "*" && head.method == Method::options;
  if (head.form == TargetForm::asterisk || is_asterisk) {
    const bool may_be = is_asterisk && head.form != TargetForm::origin;
    return may_be ? Result<>() : failure(ErrorCode::bad_target);
  }
  return check_origin_form(head.target);
}

}  // namespace

Result<> set_target(RequestHead& head, std::string_view target) {
  head.scheme.clear();
  head.authority.clear();
  if (auto host = set_host(head); !host) return host;
  if (head.method == Method::connect) return set_authority_form(head, target);
  if (target.starts_with('/')) {
    head.form = TargetForm::origin;
    head.target = target;
    return check_origin_form(target);
  }
  if (target == "*" && head.method == Method::options) {
    head.form = TargetForm::asterisk;
    head.target.assign(1, '*');
    return {};
  }
  return set_absolute_form(head, target);
}

void set_plain_target(RequestHead& head, std::string_view target, std::string_view host) {
  head.form = TargetForm::origin;
  head.scheme.clear();
  assign(head.target, target);
  assign(head.authority, host);
}

Result<> check_target(const RequestHead& head) noexcept {
  const auto host = parse_host_and_port(head.authority);
  if (!host) return failure(ErrorCode::bad_host);
  const bool is_tunnel = head.form == TargetForm::authority;
  if (is_tunnel != (head.method == Method::connect)) return failure(ErrorCode::bad_target);
  if (is_tunnel) {
    if (host->host.empty() || !host->port || head.target != head.authority)
      return failure(ErrorCode::bad_target);
    return {};
  }
  return check_other_form(head, *host);
}

Result<> check_path(const RequestHead& head) noexcept { return check_other_form(head, {}); }

Result<> check_extended_connect(const RequestHead& head) noexcept {
  const auto host = parse_host_and_port(head.authority);
  if (!host) return failure(ErrorCode::bad_host);
  if (head.form == TargetForm::authority || head.form == TargetForm::asterisk)
    return failure(ErrorCode::bad_target);
  return check_other_form(head, *host);
}

}  // namespace tambour::http
