// Request targets and hosts: RFC 9112, section 3.2 and 3.3.
#pragma once

#include <string_view>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>

namespace tambour::http {

/// Parses the target of a request line, for the method of `head`, and sets form, target, scheme and
/// authority. The Host field decides the authority, unless the target is absolute (RFC 9112,
/// section 3.2.2).
///
/// Accepts more than RFC 3986 where browsers send more and the division into path and query does
/// not depend on it (URL Standard, section 1.3): the characters [ ] \ ^ ` { | } in paths and
/// queries, and any percent sign in queries.
///
/// Fails with http::ErrorCode::bad_target, missing_host, several_hosts or bad_host.
[[nodiscard]] Result<> set_target(RequestHead& head, std::string_view target);

/// The same for a valid target that begins with "/", of a method other than CONNECT, and the host
/// of the only Host field, which is valid too.
void set_plain_target(RequestHead& head, std::string_view target, std::string_view host);

/// Checks the target and the authority of a request to be sent, of any form: what set_target()
/// would accept. Fails with http::ErrorCode::bad_target or bad_host.
[[nodiscard]] Result<> check_target(const RequestHead& head) noexcept;

/// The same for a request that is no CONNECT, whose target is not absolute, and whose authority has
/// been checked.
[[nodiscard]] Result<> check_path(const RequestHead& head) noexcept;

/// The same as check_target() for a request whose method is CONNECT but whose target has another
/// form: an extended CONNECT (RFC 8441).
[[nodiscard]] Result<> check_extended_connect(const RequestHead& head) noexcept;

}  // namespace tambour::http
