// serve_connection(): the task of a connection, for each version of HTTP.
#include "http/server/serve.h"

#include <cstddef>
#include <utility>

#include <tambour/task/context.h>

#include "http/protocol.h"
#include "http/server/h1_connection.h"
#include "http/server/h2/connection.h"
#include "http/server/idle/idle_connection.h"
#include "task/replace_task.h"

namespace tambour::http {
namespace {

Task<> serve_http_2(SocketStream stream, Buffer received,
                    std::shared_ptr<const ServerSettings> settings, std::stop_token shutdown) {
  const TaskContext& context = co_await this_task;
  H2Connection connection(std::move(stream), std::move(received), std::move(settings), shutdown,
                          context.stop);
  co_await connection.serve();
}

/// Not in the coroutine, whose frame would have to have room for the arguments.
Task<> continue_with_http_2(H1Connection& connection, const ServerOnLoop& server) {
  return serve_http_2(connection.take_stream(), connection.take_input(), server.settings,
                      server.shutdown);
}

/// Serves requests until the connection waits for the next one, or ends, or goes on with another
/// protocol, in the task `next`. Returns whether it waits.
Task<bool> serve_requests(IdleConnection& idle, Result<std::size_t> received, Task<>& next) {
  const TaskContext& context = co_await this_task;
  H1Connection connection(idle, context.stop);
  co_await connection.serve(received);
  if (connection.is_http_2()) {
    next = continue_with_http_2(connection, *idle.server);
    co_return false;
  }
  if (connection.is_idle()) connection.move_to(idle);
  next = connection.start_continuation();
  co_return connection.is_idle();
}

/// A client that knows that the server speaks HTTP/2 begins with its preface: RFC 9113, section
/// 3.3. The task is small while the connection waits for a request, and is freed when the
/// connection does not speak HTTP/1 any more.
Task<> serve_http_1(IdleConnection idle) {
  Task<> next;
  for (bool is_idle = true; is_idle;) {
    Result<std::size_t> received = 0;
    {
      IdleWait wait = idle.wait();
      received = wait.finish(co_await ReadRequests(idle.stream, *idle.server));
    }
    if (idle.closes_silently(received)) co_return;
    is_idle = co_await serve_requests(idle, received, next);
    if (is_idle && idle.kind == IdleKind::released) idle.server->note_release();
  }
  if (next) co_await detail::task::ReplaceTask(std::move(next));
}

}  // namespace

// Each version has a coroutine of its own, so that a connection has no memory for the other one.
Task<> serve_connection(SocketStream stream, std::shared_ptr<ServerOnLoop> server) {
  const auto protocol = negotiated_protocol(stream, http_2_support(server->settings->options));
  if (protocol == Protocol::http_2)
    return serve_http_2(std::move(stream), Buffer(), server->settings, server->shutdown);
  return serve_http_1(IdleConnection(std::move(stream), std::move(server)));
}

}  // namespace tambour::http
