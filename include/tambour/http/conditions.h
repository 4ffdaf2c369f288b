// Conditional requests for the contents of a handler: ETag, If-Match, If-None-Match and the fields
// with dates (RFC 9110, section 13). serve_files() does the same for files.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>
#include <tambour/http/router.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// The state of a resource, before the request changes it.
struct ResourceVersion {
  /// Identifies the version, for example a counter or a hash. It becomes an entity tag; characters
  /// that a tag must not contain are percent-encoded. Empty: no tag.
  std::string tag{};
  /// Versions with the same tag are equivalent, but not identical bytes. A weak tag never matches
  /// If-Match.
  bool is_weak = false;
  /// With a precision of seconds: two changes within a second have the same time. Prefer tags.
  std::optional<std::chrono::sys_seconds> modified{};
  /// False: the resource does not exist yet. "If-None-Match: *" then allows its creation by PUT,
  /// and "If-Match: *" refuses it.
  bool exists = true;
};

/// Evaluates the conditions of a request. Returns true if it has sent the response: 304 (GET and
/// HEAD: the client has this version) or 412 (others: the resource is not as the client expects).
/// The handler must then return. Otherwise, the response to GET and HEAD has the fields ETag and
/// Last-Modified. Throws std::bad_alloc.
///
///   if (http::evaluate_preconditions(request, response, {.tag = note.version()})) return;
///
/// Between this call and the change there must be no co_await, or the change must be conditional in
/// the database too.
[[nodiscard]] bool evaluate_preconditions(const Request& request, Response& response,
                                          const ResourceVersion& version);

/// Middleware that computes an entity tag (SHA-1 of the body) for each response 200 to GET that has
/// none and is sent by Response::send(), and sends 304 if the client has that version. It saves the
/// transfer, not the work of the handler. Bodies of more than `bytes_max` bytes are not hashed.
/// Responses to HEAD have the tag if their handler makes the body. Use it inside compress().
[[nodiscard]] Middleware add_entity_tags(std::size_t bytes_max = std::size_t{1024} * 1024);

}  // namespace tambour::http

#pragma GCC visibility pop
