// Endpoints, streams, connections, servers and clients.
// Includes all headers of <tambour/net/>.
#pragma once

#include <tambour/net/bind_options.h>         // IWYU pragma: export
#include <tambour/net/byte_stream.h>          // IWYU pragma: export
#include <tambour/net/codec.h>                // IWYU pragma: export
#include <tambour/net/connection.h>           // IWYU pragma: export
#include <tambour/net/connection_group.h>     // IWYU pragma: export
#include <tambour/net/connection_handle.h>    // IWYU pragma: export
#include <tambour/net/connection_limits.h>    // IWYU pragma: export
#include <tambour/net/connector.h>            // IWYU pragma: export
#include <tambour/net/endpoint.h>             // IWYU pragma: export
#include <tambour/net/io_handle.h>            // IWYU pragma: export
#include <tambour/net/ip_address.h>           // IWYU pragma: export
#include <tambour/net/listen_options.h>       // IWYU pragma: export
#include <tambour/net/move_to.h>              // IWYU pragma: export
#include <tambour/net/pipe.h>                 // IWYU pragma: export
#include <tambour/net/proxy.h>                // IWYU pragma: export
#include <tambour/net/proxy_header.h>         // IWYU pragma: export
#include <tambour/net/proxy_protocol.h>       // IWYU pragma: export
#include <tambour/net/resolver.h>             // IWYU pragma: export
#include <tambour/net/retry_policy.h>         // IWYU pragma: export
#include <tambour/net/server_group.h>         // IWYU pragma: export
#include <tambour/net/socket.h>               // IWYU pragma: export
#include <tambour/net/socket_stream.h>        // IWYU pragma: export
#include <tambour/net/spawn_on.h>             // IWYU pragma: export
#include <tambour/net/stream.h>               // IWYU pragma: export
#include <tambour/net/stream_client.h>        // IWYU pragma: export
#include <tambour/net/stream_error.h>         // IWYU pragma: export
#include <tambour/net/stream_server.h>        // IWYU pragma: export
#include <tambour/net/tcp.h>                  // IWYU pragma: export
#include <tambour/net/tcp_options.h>          // IWYU pragma: export
#include <tambour/net/tcp_stream.h>           // IWYU pragma: export
#include <tambour/net/unix.h>                 // IWYU pragma: export
#include <tambour/net/unix_datagram.h>        // IWYU pragma: export
#include <tambour/net/unix_datagram_batch.h>  // IWYU pragma: export
#include <tambour/net/unix_stream.h>          // IWYU pragma: export
