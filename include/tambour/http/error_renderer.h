// Renders error responses in one format for the server, the router, middleware and handlers.
//
// A status from 400 on without a body of the program's own is an error: 404 of the router, 400 of
// the parser, 500 after an exception, Response::send_error(). ServerOptions::error_renderer renders
// all of them:
//
//   options.error_renderer = http::render_negotiated;
#pragma once

#include <functional>
#include <string_view>

#include <tambour/detail/namespaces.h>
#include <tambour/http/status.h>

#pragma GCC visibility push(default)

namespace tambour::http {

class Request;
class Response;

/// The argument of a renderer.
struct ErrorDescription {
  Status status = Status::internal_server_error;
  /// The cause of the error, for the client; may be empty. May contain text that the client has
  /// sent.
  std::string_view detail{};
};

/// Sets the fields that describe the body, Content-Type for example, and calls Response::send(). It
/// must not wait. The response has the status already, and the fields that middleware has set. The
/// head of a request that the parser has rejected may be incomplete: then its target is empty.
///
/// If the renderer throws, or sends nothing, the response is that of render_plain(). A server over
/// a group of loops invokes it on several threads.
using ErrorRenderer = std::function<void(const Request&, Response&, const ErrorDescription& error)>;

/// "404 Not Found: no such note", as text/plain. The default.
void render_plain(const Request& request, Response& response, const ErrorDescription& error);
/// {"status":404,"error":"Not Found","detail":"no such note"}, as application/json. Bytes that are
/// not UTF-8 become U+FFFD.
void render_json(const Request& request, Response& response, const ErrorDescription& error);
/// Problem details (RFC 9457), as application/problem+json:
/// {"title":"Not Found","status":404,"detail":"no such note"}. The type is "about:blank", which is
/// not sent.
void render_problem_details(const Request& request, Response& response,
                            const ErrorDescription& error);
/// A short page for browsers, as text/html. The text is escaped.
void render_html(const Request& request, Response& response, const ErrorDescription& error);
/// The format that the client prefers (Accept: RFC 9110, section 12.5.1): problem details, JSON,
/// HTML or plain text, in this order if it prefers none of them. Adds "Vary: Accept".
void render_negotiated(const Request& request, Response& response, const ErrorDescription& error);

}  // namespace tambour::http

#pragma GCC visibility pop
