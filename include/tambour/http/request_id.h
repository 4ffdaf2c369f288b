// Request ids: an id for each request, which correlates the logs of several services.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/router.h>
#include <tambour/net/ip_address.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// Where request_id() finds and puts the id.
struct RequestIdOptions {
  std::string field = "X-Request-Id";
  /// Peers whose ids are accepted: proxies that set the field themselves. Any other peer could send
  /// the id of another request.
  std::vector<IpNetwork> trusted{};
  /// Accepts the ids of peers on Unix sockets.
  bool trusts_unix_peers = false;
};

/// Middleware that gives each request an id: the one that a trusted peer has sent, if it consists
/// of 1 to 128 letters, digits and "-._:+/=@", or else 128 random bits in hexadecimal. The id
/// replaces the field of the request, so that it is passed on to other services, and the response
/// has it too. The ids are unique, but not secret. Fails with http::ErrorCode::bad_field_name.
/// Throws std::bad_alloc.
///
///   router.use(or_throw(http::request_id()));
///   log(http::request_id_of(request));
[[nodiscard]] Result<Middleware> request_id(RequestIdOptions options = {});

/// The id of a request; empty if it has not passed through request_id(). Valid until the parameters
/// of the request change.
[[nodiscard]] std::string_view request_id_of(const Request& request) noexcept;

}  // namespace tambour::http

#pragma GCC visibility pop
