// A connection of HTTP/1 that waits for a request: all that it holds meanwhile.
//
// Most connections of a server wait most of the time. So this is small: no parser, no request or
// response, and no buffer.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/net/socket_stream.h>

#include "http/server/idle/idle_waits.h"
#include "http/server/idle/server_on_loop.h"

namespace tambour::http {

/// Ownership: in the task of the connection; owns the stream, except while an H1Connection serves
/// requests. Thread: that of the loop.
class IdleConnection {
 public:
  IdleConnection(SocketStream socket, std::shared_ptr<ServerOnLoop> server_on_loop)
      : stream(std::move(socket)), server(std::move(server_on_loop)) {
    server->begin_connection();
  }
  IdleConnection(IdleConnection&&) noexcept = default;
  IdleConnection& operator=(IdleConnection&&) = delete;
  ~IdleConnection() {
    if (server != nullptr) server->end_connection();
  }

  /// The wait in which a read must be.
  [[nodiscard]] IdleWait wait();

  /// True if nothing has to be sent after a read with this result: the connection is only closed.
  [[nodiscard]] bool closes_silently(const Result<std::size_t>& received) const noexcept;

  // For H1Connection.

  SocketStream stream;
  std::shared_ptr<ServerOnLoop> server;
  TimePoint deadline = never;  ///< Of the wait.
  IdleKind kind = IdleKind::first_request;
};

}  // namespace tambour::http
