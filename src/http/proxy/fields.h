// The fields that a proxy removes and adds: RFC 9110, section 7.6, and RFC 7239.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/fields.h>
#include <tambour/http/reverse_proxy.h>
#include <tambour/net/endpoint.h>

namespace tambour::http::detail::proxy {

/// Removes the fields that are about one connection, those that Connection names, and those that
/// frame the message. "TE: trailers" is kept, and Upgrade if `keeps_upgrade`.
void remove_hop_by_hop(Fields& fields, bool keeps_upgrade);

/// What is known about the client of a request.
struct ClientIdentity {
  std::optional<IpAddress> address{};  ///< None for a Unix socket.
  bool is_secure = false;
  bool is_trusted = false;       ///< It is a proxy whose statements are passed on.
  std::string_view authority{};  ///< Of the request.
};

/// Removes what an untrusted client says about itself, also under names that CGI does not
/// distinguish ("X_Forwarded_For"), and adds what is known.
void set_forwarded(Fields& fields, const ClientIdentity& client, ForwardedFields kind);

/// The number of proxies in the field Via.
[[nodiscard]] std::size_t hops_of(const Fields& fields) noexcept;

}  // namespace tambour::http::detail::proxy
