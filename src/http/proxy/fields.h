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

/// What the fields of a request say about the way it is passed on.
struct RequestTraits {
  bool has_upgrade = false;
  bool names_upgrade = false;  ///< The field Connection does.
  bool has_expect = false;
  bool has_max_forwards = false;
  std::size_t hops = 0;  ///< The number of proxies in the field Via.
};

/// Replaces `to` by the fields of a request that are passed on, and keeps its memory: all but Host,
/// those that are about one connection, those that Connection names, and those that frame the
/// message; "TE: trailers" is kept. Upgrade, Expect and Max-Forwards are left to the caller. If the
/// client is not trusted, what it says about itself is not copied either, also under names that CGI
/// does not distinguish ("X_Forwarded_For").
[[nodiscard]] RequestTraits copy_request_fields(Fields& to, const Fields& from, bool is_trusted);

/// Removes the same fields of a response, except Host; and Upgrade, unless `keeps_upgrade`.
void remove_hop_by_hop(Fields& fields, bool keeps_upgrade);

/// What is known about the client of a request.
struct ClientIdentity {
  std::optional<IpAddress> address{};  ///< None for a Unix socket.
  bool is_secure = false;
  bool is_trusted = false;       ///< It is a proxy whose statements are passed on.
  std::string_view authority{};  ///< Of the request.
};

/// Adds what is known about the client.
void add_forwarded_fields(Fields& fields, const ClientIdentity& client, ForwardedFields kind);

}  // namespace tambour::http::detail::proxy
