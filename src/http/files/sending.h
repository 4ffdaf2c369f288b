// Responses with a file: preconditions and ranges.
#pragma once

#include <memory>

#include <tambour/detail/namespaces.h>
#include <tambour/http/request.h>
#include <tambour/http/response.h>
#include <tambour/task/task.h>

#include "http/files/static_file.h"

namespace tambour::http {

/// Answers GET and HEAD with a regular file. Returns an empty task if the response is complete.
[[nodiscard]] Task<> send_static_file(Request& request, Response& response,
                                      std::shared_ptr<const StaticFile> file);

/// Sends the response to an error, without what the fields say about the file.
void fail_with(Response& response, Status status);

}  // namespace tambour::http
