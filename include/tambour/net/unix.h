// Unix-domain streams and servers (unix(7)) for processes of one machine.
#pragma once

#include <tambour/net/stream_server.h>
#include <tambour/net/unix_stream.h>  // IWYU pragma: export

#pragma GCC visibility push(default)

namespace tambour {

/// A server for Unix sockets on one loop.
using UnixServer = StreamServer<UnixStream>;

}  // namespace tambour

#pragma GCC visibility pop
