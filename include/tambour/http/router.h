// Routing: which handler answers a request, by host, path and method.
#pragma once

#include <functional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/http/handler.h>
#include <tambour/http/method.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// A function around a handler, for example for authentication or logging. It either awaits
/// `next.run(request, response)`, or sends a response itself:
///
///   Task<> require_token(Request& request, Response& response, const Handler& next) {
///     if (request.headers().get("Authorization") == "Bearer secret")
///       co_await next.run(request, response);
///     else
///       response.send(Status::unauthorized);
///   }
using Middleware = std::function<Task<>(Request&, Response&, const Handler& next)>;

/// The handler with middleware around it, of which the first one is the outermost: for middleware
/// of one route. Throws std::bad_alloc.
///
///   router.post("/photos", http::with_middleware({http::body_limit(1 << 24)}, store_photo));
[[nodiscard]] Handler with_middleware(const std::vector<Middleware>& middleware, Handler handler);

/// Collects routes, and makes a handler of them.
///
///   http::Router router;
///   router.get("/", index);
///   router.get("/users/{id}", show_user);         // request.parameter("id")
///   router.post("/users", create_user);
///   router.get("/files/{path...}", send_file);    // the rest of the path
///   auto server = http::Server::listen(loop, at, std::move(router).handler());
///
/// Patterns: a path. A segment "{name}" matches one segment that is not empty, and a last segment
/// "{name...}" matches the rest of the path, which may be empty. Other segments match the same
/// text. Segments of requests are percent-decoded after the path was divided, so a parameter may
/// contain any byte, "/" and ".." too. "/a" and "/a/" are different paths. Of several patterns that
/// match, the first segment in which they differ decides: text precedes a parameter, and a
/// parameter precedes a rest.
///
/// The router answers by itself: 404 if no pattern matches; 405 with the Allow field if none has
/// the method; OPTIONS with 204 and Allow; HEAD with the handler for GET; CONNECT with 501. A route
/// for OPTIONS or HEAD replaces that. An extended CONNECT (RFC 8441), which opens a WebSocket over
/// HTTP/2, gets the handler for GET, as the request for a WebSocket over HTTP/1.1 does.
///
/// Checks: a malformed pattern, and a second handler for the same pattern and method, abort with a
/// message. All functions throw std::bad_alloc.
/// Thread: none of its own. The handler may be used by several threads.
class Router {
 public:
  Router();
  Router(Router&& other) noexcept;
  Router& operator=(Router&& other) noexcept;
  ~Router();

  /// All functions that add something return this router.
  Router& add(const Method& method, std::string_view pattern, Handler handler);
  /// add() with the method that is the name of the function.
  Router& get(std::string_view pattern, Handler handler) {
    return add(Method::get, pattern, std::move(handler));
  }
  Router& post(std::string_view pattern, Handler handler) {
    return add(Method::post, pattern, std::move(handler));
  }
  Router& put(std::string_view pattern, Handler handler) {
    return add(Method::put, pattern, std::move(handler));
  }
  Router& patch(std::string_view pattern, Handler handler) {
    return add(Method::patch, pattern, std::move(handler));
  }
  Router& delete_(std::string_view pattern,  // NOLINT(readability-identifier-naming): a keyword.
                  Handler handler) {
    return add(Method::delete_, pattern, std::move(handler));
  }
  /// For every method that has no handler of its own, except CONNECT.
  Router& any(std::string_view pattern, Handler handler);

  /// Adds the routes of another router below `prefix`, which must not end with "/": "/api" and
  /// "/users" become "/api/users". The middleware of `other` surrounds its routes only. Its virtual
  /// hosts and its handler for missing routes are ignored.
  Router& mount(std::string_view prefix, Router other);

  /// Surrounds all routes of this router, of its virtual hosts, and its own answers. The middleware
  /// that was added first is the outermost.
  Router& use(Middleware middleware);

  /// Replaces the answer 404.
  Router& not_found(Handler handler);

  /// The routes of a virtual host: a name, or "*.example.org" for all names below one. Ports are
  /// ignored. Requests for other hosts, or for none, use the routes of this router. The reference
  /// is valid until this router is moved from or destroyed. Call it for the outermost router only.
  [[nodiscard]] Router& host(std::string_view name);

  /// The handler. The router is empty afterwards. The stall detector names `at`.
  [[nodiscard]] Handler handler(std::source_location at = std::source_location::current()) &&;

 private:
  struct [[gnu::visibility("hidden")]] State;

  tambour::detail::OwnedPointer<State> state_;
};

}  // namespace tambour::http

#pragma GCC visibility pop
