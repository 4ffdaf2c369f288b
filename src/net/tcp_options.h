// Setting the options of TCP on listeners and streams.
#pragma once

#include <tambour/result.h>
#include <tambour/stream.h>
#include <tambour/tcp_options.h>

namespace tambour::net {

/// Leaves what is zero as it is.
Result<> set_tcp_options(Socket& socket, const TcpOptions& options) noexcept;

}  // namespace tambour::net
