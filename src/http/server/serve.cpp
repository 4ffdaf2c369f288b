// serve_connection(): the task of a connection.
#include "http/server/serve.h"

#include <utility>

#include <tambour/task/context.h>

#include "http/server/h1_connection.h"

namespace tambour::http {

Task<> serve_connection(SocketStream stream, std::shared_ptr<const ServerSettings> settings,
                        std::stop_token shutdown) {
  const TaskContext& context = co_await this_task;
  H1Connection connection(std::move(stream), std::move(settings), shutdown, context.stop);
  co_await connection.serve();
}

}  // namespace tambour::http
