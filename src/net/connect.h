// Connects a stream socket of any family.
#pragma once

#include <optional>

#include <tambour/base/result.h>
#include <tambour/net/bind_options.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/socket.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>

namespace tambour::detail::net {

/// Returns whether a TCP socket that was connected to `to` is connected to itself. If no server
/// listens on a local port within the range of ephemeral ports, connect(2) may choose that port as
/// the local port, and the simultaneous open with itself succeeds (RFC 9293, section 3.5).
bool is_connected_to_itself(const Socket& socket, const Endpoint& to) noexcept;

/// Opens and connects a stream socket on the loop of the awaiting task; see TcpStream::connect. If
/// there is a `local` address, it is bound to it first, and fails with the errors of bind(2).
/// `options` may be null,
/// must outlive the task, and are ignored for Unix endpoints. Closes a socket that is connected to
/// itself and tries again; after three of them the error is ECONNREFUSED.
Task<Result<SocketStream>> connect_stream(Endpoint to, std::optional<Endpoint> local = {},
                                          const BindOptions* options = nullptr);

}  // namespace tambour::detail::net
