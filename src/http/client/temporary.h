// Failures of requests after which another attempt may succeed.
#pragma once

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/status.h>
#include <tambour/net/stream_error.h>

#include "client/may_pass.h"

namespace tambour::http::detail::client {

/// With which servers and proxies answer while a service is overloaded or restarts.
[[nodiscard]] inline bool is_temporary(Status status) noexcept {
  return status == Status::too_many_requests || status == Status::internal_server_error ||
         status == Status::bad_gateway || status == Status::service_unavailable ||
         status == Status::gateway_timeout;
}

[[nodiscard]] inline bool is_temporary(const Error& error) noexcept {
  return tambour::detail::client::may_pass(error) || error == StreamError::truncated;
}

}  // namespace tambour::http::detail::client
