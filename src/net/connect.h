// Connecting a stream of any family.
#pragma once

#include <tambour/endpoint.h>
#include <tambour/result.h>
#include <tambour/stream.h>
#include <tambour/task.h>

namespace tambour::net {

/// Whether a TCP socket that was connected to `to` is connected to itself. If no server listens
/// on a port of this machine that connect(2) may choose as the local port, it may choose that one,
/// and the simultaneous open with itself succeeds (RFC 9293, section 3.5).
bool is_connected_to_itself(const Socket& socket, const Endpoint& to) noexcept;

/// A stream socket, connected, of the loop of the task that awaits; see TcpStream::connect. A
/// socket that is connected to itself is closed, and after three of them the error is ECONNREFUSED.
Task<Result<Socket>> connect_stream(Endpoint to);

}  // namespace tambour::net
