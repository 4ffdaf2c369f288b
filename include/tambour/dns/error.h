// Errors of DNS: of messages, and of lookups.
#pragma once

#include <system_error>
#include <type_traits>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>

#pragma GCC visibility push(default)

namespace tambour::dns {

/// What lookups and the codec of messages fail with.
enum class ErrorCode : int {
  // Response codes of a server: RFC 1035, section 4.1.1.
  format_error = 1,  ///< FORMERR: the server could not parse the query.
  server_failure,    ///< SERVFAIL from a server, and no usable response from the others.
  no_such_name,      ///< NXDOMAIN: the name does not exist.
  not_implemented,   ///< NOTIMP.
  refused,           ///< REFUSED.
  bad_response,      ///< Another response code, or a malformed or truncated response over TCP.

  // Lookups.
  no_data = 100,     ///< The name exists, but has no records of the type.
  timeout,           ///< No server answered in time.
  non_ascii_name,    ///< A host name with bytes outside ASCII; convert it to its A-label.
  too_many_lookups,  ///< dns::ResolverOptions::lookups_max is reached.
  /// TLS with the servers failed, they did not prove their identity, or ALPN has chosen another
  /// protocol than "dot".
  insecure_server,
  no_service,  ///< The domain declares that it does not offer the service (target ".").

  // Names and messages.
  bad_name = 200,    ///< Not the text of a name.
  name_too_long,     ///< More than 255 bytes, or a label of more than 63.
  bad_message,       ///< Not a well-formed message.
  bad_pointer,       ///< A compression pointer that does not point to an earlier name.
  bad_record,        ///< The data of a record does not have the form of its type.
  bad_edns,          ///< More than one OPT record, or in the wrong section; when writing: missing.
  message_too_long,  ///< The message does not fit into the size limit.
};

/// The category "tambour.dns", whose values are those of ErrorCode. Any thread.
const std::error_category& error_category() noexcept;

/// Converts to an Error, also implicitly: `error == dns::ErrorCode::timeout`.
[[nodiscard]] inline Error make_error_code(
    ErrorCode error) noexcept {  // NOLINT: the standard's own name.
  return {static_cast<int>(error), error_category()};
}

}  // namespace tambour::dns

template <>
struct std::is_error_code_enum<tambour::dns::ErrorCode> : std::true_type {};

#pragma GCC visibility pop
