// A tunnel between two byte streams: what an accepted upgrade becomes.
#pragma once

#include <tambour/base/clock.h>
#include <tambour/detail/namespaces.h>
#include <tambour/net/byte_stream.h>
#include <tambour/task/task.h>

namespace tambour::http::detail::proxy {

/// Transfers bytes in both directions until both have ended, one has failed, or nothing was
/// transferred for `idle_timeout` (zero: no limit). The end of one direction is passed on, and the
/// other one continues.
[[nodiscard]] Task<> run_tunnel(ByteStream client, ByteStream server, Duration idle_timeout);

}  // namespace tambour::http::detail::proxy
