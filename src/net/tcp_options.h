// Sets TCP options on listeners and streams.
#pragma once

#include <tambour/base/result.h>
#include <tambour/net/tcp_options.h>

namespace tambour {

namespace detail::backend {
class System;
}

namespace detail::net {

/// Options whose value is zero are not changed. The descriptor must be open.
Result<> set_tcp_options(backend::System& system, int fd, const TcpOptions& options) noexcept;

}  // namespace detail::net
}  // namespace tambour
