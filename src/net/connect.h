// Connecting a stream of any family.
#pragma once

#include <tambour/endpoint.h>
#include <tambour/result.h>
#include <tambour/stream.h>
#include <tambour/task.h>

namespace tambour::net {

/// A stream socket, connected, of the loop of the task that awaits; see TcpStream::connect.
Task<Result<Socket>> connect_stream(Endpoint to);

}  // namespace tambour::net
