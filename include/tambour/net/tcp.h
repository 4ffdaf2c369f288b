// TCP streams and servers.
#pragma once

#include <tambour/net/stream_server.h>
#include <tambour/net/tcp_stream.h>  // IWYU pragma: export

#pragma GCC visibility push(default)

namespace tambour {

/// A server for TCP on one loop.
using TcpServer = StreamServer<TcpStream>;

}  // namespace tambour

#pragma GCC visibility pop
