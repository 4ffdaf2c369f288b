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
  /// What differs between versions: a counter or a hash, for example. Becomes an entity tag;
  /// characters that a tag must not contain are percent-encoded. Empty: no tag.
  std::string tag{};
  /// The tag names contents that are only equivalent, not the same bytes: a weak one never matches
  /// If-Match.
  bool is_weak = false;
  /// In seconds: two changes within a second have the same. Prefer tags.
  std::optional<std::chrono::sys_seconds> modified{};
  /// False: there is no such resource yet. "If-None-Match: *" then allows its creation by PUT, and
  /// "If-Match: *" refuses it.
  bool exists = true;
};

/// Evaluates the conditions of a request. Returns true if it has sent the response: 304 (GET and
/// HEAD: the client has this version) or 412 (others: the resource is not as the client expects).
/// The handler ends then. Otherwise, the response to GET and HEAD has the fields ETag and
/// Last-Modified. Throws std::bad_alloc.
///
///   if (http::answer_conditions(request, response, {.tag = note.version()})) return;
///
/// Between this call and the change there must be no co_await, or the change must be conditional in
/// the database too.
[[nodiscard]] bool answer_conditions(const Request& request, Response& response,
                                     const ResourceVersion& version);

/// Middleware that makes an entity tag of the body (SHA-1) of each response 200 to GET that has
/// none and is sent by Response::send(), and answers 304 if the client has it. It saves the
/// transfer, not the work of the handler. Bodies of more than `bytes_max` bytes are not hashed.
/// Responses to HEAD have the tag if their handler makes the body. Use it inside of compress().
[[nodiscard]] Middleware entity_tags(std::size_t bytes_max = std::size_t{1024} * 1024);

}  // namespace tambour::http

#pragma GCC visibility pop
