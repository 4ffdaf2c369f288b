// Sets TCP options on listeners and streams.
#pragma once

#include <tambour/result.h>
#include <tambour/stream.h>
#include <tambour/tcp_options.h>

namespace tambour::net {

/// Options whose value is zero are not changed.
Result<> set_tcp_options(Socket& socket, const TcpOptions& options) noexcept;

}  // namespace tambour::net
