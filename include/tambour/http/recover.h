// Middleware that responds to exceptions of handlers. The server does so too, but then closes the
// connection, and no middleware sees the response. With recover(), the middleware around it sees an
// ordinary response, and the connection stays open.
#pragma once

#include <exception>
#include <functional>

#include <tambour/detail/namespaces.h>
#include <tambour/http/router.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// What recover() does with exceptions.
struct RecoverOptions {
  /// Invoked with each exception, for logs, instead of ServerOptions::on_exception.
  std::function<void(const Request&, const std::exception_ptr&)> on_exception{};
  /// Sends the response to an exception, for example 404 for an exception type of the program. Must
  /// not wait. If the function is empty or sends nothing, Response::send_error() sends 500.
  std::function<void(const Request&, Response&, const std::exception_ptr&)> answer{};
};

/// Middleware that responds if a handler throws, also for std::bad_alloc. The response has the
/// fields that were set before the handler was started. If the response has begun, the exception is
/// passed on, and the server resets the connection. A group of loops invokes the functions on
/// several threads. Throws std::bad_alloc.
///
///   router.use(http::recover({.on_exception = log_exception}));
[[nodiscard]] Middleware recover(RecoverOptions options = {});

}  // namespace tambour::http

#pragma GCC visibility pop
