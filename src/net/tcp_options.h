// Sets TCP options on listeners and streams.
#pragma once

#include <tambour/result.h>
#include <tambour/tcp_options.h>

namespace tambour {

namespace backend {
class System;
}

namespace net {

/// Options whose value is zero are not changed. The descriptor must be open.
Result<> set_tcp_options(backend::System& system, int fd, const TcpOptions& options) noexcept;

}  // namespace net
}  // namespace tambour
