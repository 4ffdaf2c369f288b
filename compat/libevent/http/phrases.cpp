// Reason phrases.

#include <sys/queue.h>

#include <span>

#include <event2/http.h>
#include <event2/http_struct.h>

#include "libevent/event/core.h"
#include "libevent/http/connection.h"

namespace {

constexpr const char* informational[] = {"Continue", "Switching Protocols"};
constexpr const char* success[] = {
    "OK",         "Created",       "Accepted",       "Non-Authoritative Information",
    "No Content", "Reset Content", "Partial Content"};
// As in libevent, 306 has the phrase of 307.
constexpr const char* redirection[] = {"Multiple Choices",  "Moved Permanently", "Found",
                                       "See Other",         "Not Modified",      "Use Proxy",
                                       "Temporary Redirect"};
constexpr const char* client_error[] = {"Bad Request",
                                        "Unauthorized",
                                        "Payment Required",
                                        "Forbidden",
                                        "Not Found",
                                        "Method Not Allowed",
                                        "Not Acceptable",
                                        "Proxy Authentication Required",
                                        "Request Time-out",
                                        "Conflict",
                                        "Gone",
                                        "Length Required",
                                        "Precondition Failed",
                                        "Request Entity Too Large",
                                        "Request-URI Too Large",
                                        "Unsupported Media Type",
                                        "Requested range not satisfiable",
                                        "Expectation Failed"};
constexpr const char* server_error[] = {"Internal Server Error", "Not Implemented",
                                        "Bad Gateway",           "Service Unavailable",
                                        "Gateway Time-out",      "HTTP Version not supported"};

struct StatusClass {
  const char* name;
  std::span<const char* const> phrases;
};
constexpr StatusClass classes[] = {{"Informational", informational},
                                   {"Success", success},
                                   {"Redirection", redirection},
                                   {"Client Error", client_error},
                                   {"Server Error", server_error}};

/// The name of the class, if the status is not known.
const char* phrase_of(int status) noexcept {
  const int status_class = status / 100 - 1;
  if (status_class < 0 || status_class >= static_cast<int>(std::size(classes)))
    return "Unknown Status Class";
  const StatusClass& found = classes[status_class];
  const int index = status % 100;
  if (index < 0 || index >= static_cast<int>(found.phrases.size())) return found.name;
  return found.phrases[static_cast<std::size_t>(index)];
}

}  // namespace

void tambour::libevent::set_status(evhttp_request& request, int status,
                                   const char* reason) noexcept {
  if (reason == nullptr) reason = phrase_of(status);
  request.kind = EVHTTP_RESPONSE;
  request.response_code = status;
  char* const copy = event_mm_strdup_(reason);
  if (copy == nullptr) event_warn("evhttp: no memory");
  if (request.response_code_line != nullptr) event_mm_free_(request.response_code_line);
  request.response_code_line = copy;
}

extern "C" void evhttp_response_code_(evhttp_request* req, int code, const char* reason) {
  tambour::libevent::set_status(*req, code, reason);
}
