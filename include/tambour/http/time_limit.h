// Middleware that limits the time of handlers.
#pragma once

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/router.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// Middleware that sends 503 if a handler has not begun its response after `limit`, and asks the
/// handler to stop: its waits fail with ECANCELED. A response that it sends afterwards has no
/// effect. If the response has begun by then, it is abandoned: the connection is reset, so that the
/// client does not treat a truncated response as complete. Do not use this middleware for routes
/// with event streams, WebSockets or tunnels: it would end them, too.
///
/// The next request of the connection waits until the handler has ended. A handler that computes
/// without waiting is not interrupted. The time of the server for the body of a request,
/// ServerOptions::body_timeout, applies too. Fails with EINVAL unless `limit` is positive. Throws
/// std::bad_alloc.
///
///   router.use(or_throw(http::time_limit(5s)));
[[nodiscard]] Result<Middleware> time_limit(Duration limit);

}  // namespace tambour::http

#pragma GCC visibility pop
