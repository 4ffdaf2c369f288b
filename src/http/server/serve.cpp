// serve_connection(): the task of a connection, for each version of HTTP.
#include "http/server/serve.h"

#include <utility>

#include <tambour/task/context.h>

#include "http/protocol.h"
#include "http/server/h1_connection.h"
#include "http/server/h2_connection.h"

namespace tambour::http {
namespace {

Task<> serve_http_2(SocketStream stream, Buffer received,
                    std::shared_ptr<const ServerSettings> settings, std::stop_token shutdown) {
  const TaskContext& context = co_await this_task;
  H2Connection connection(std::move(stream), std::move(received), std::move(settings), shutdown,
                          context.stop);
  co_await connection.serve();
}

/// A client that knows that the server speaks HTTP/2 begins with its preface: RFC 9113, section
/// 3.3.
Task<> serve_http_1(SocketStream stream, std::shared_ptr<const ServerSettings> settings,
                    std::stop_token shutdown) {
  const TaskContext& context = co_await this_task;
  H1Connection connection(std::move(stream), settings, shutdown, context.stop);
  co_await connection.serve();
  if (!connection.is_http_2()) co_return;
  Buffer received = connection.take_input();
  auto serving = serve_http_2(connection.take_socket(), std::move(received), std::move(settings),
                              std::move(shutdown));
  co_await std::move(serving);
}

}  // namespace

// Each version has a coroutine of its own, so that a connection has no memory for the other one.
Task<> serve_connection(SocketStream stream, std::shared_ptr<const ServerSettings> settings,
                        std::stop_token shutdown) {
  const auto protocol = negotiated_protocol(stream, http_2_support(settings->options));
  if (protocol == Protocol::http_2)
    return serve_http_2(std::move(stream), Buffer(), std::move(settings), std::move(shutdown));
  return serve_http_1(std::move(stream), std::move(settings), std::move(shutdown));
}

}  // namespace tambour::http
