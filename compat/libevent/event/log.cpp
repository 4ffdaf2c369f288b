// Messages: event_set_log_callback(3), event_set_fatal_callback(3).

#include "libevent/event/log.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

ev_uint32_t event_debug_logging_mask_ = 0;

namespace {

event_log_cb log_callback = nullptr;
event_fatal_cb fatal_callback = nullptr;

const char* name_of(int severity) noexcept {
  switch (severity) {
    case EVENT_LOG_DEBUG:
      return "debug";
    case EVENT_LOG_MSG:
      return "msg";
    case EVENT_LOG_WARN:
      return "warn";
    case EVENT_LOG_ERR:
      return "err";
    default:
      return "???";
  }
}

[[noreturn]] void leave(int code) {
  if (fatal_callback != nullptr) {
    fatal_callback(code);
    std::exit(code);
  }
  if (code == EVENT_ERR_ABORT_) std::abort();
  std::exit(code);
}

}  // namespace

void event_enable_debug_logging(ev_uint32_t ev_uint32) { event_debug_logging_mask_ = ev_uint32; }
void event_set_log_callback(event_log_cb cb) { log_callback = cb; }
void event_set_fatal_callback(event_fatal_cb cb) { fatal_callback = cb; }

void event_logv_(int severity, const char* error, const char* format, std::va_list arguments) {
  if (severity == EVENT_LOG_DEBUG && event_debug_logging_mask_ == 0) return;
  char text[1024];
  text[0] = '\0';
  if (format != nullptr) std::vsnprintf(text, sizeof text, format, arguments);
  if (error != nullptr) {
    const std::size_t length = std::strlen(text);
    if (length < sizeof text - 3) {
      std::snprintf(text + length, sizeof text - length, ": %s", error);
    }
  }
  if (log_callback != nullptr) {
    log_callback(severity, text);
  } else {
    std::fprintf(stderr, "[%s] %s\n", name_of(severity), text);
  }
}

void event_err(int code, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  event_logv_(EVENT_LOG_ERR, std::strerror(errno), format, arguments);
  va_end(arguments);
  leave(code);
}

void event_errx(int code, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  event_logv_(EVENT_LOG_ERR, nullptr, format, arguments);
  va_end(arguments);
  leave(code);
}

void event_sock_err(int code, evutil_socket_t, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  event_logv_(EVENT_LOG_ERR, std::strerror(errno), format, arguments);
  va_end(arguments);
  leave(code);
}

void event_warn(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  event_logv_(EVENT_LOG_WARN, std::strerror(errno), format, arguments);
  va_end(arguments);
}

void event_sock_warn(evutil_socket_t, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  event_logv_(EVENT_LOG_WARN, std::strerror(errno), format, arguments);
  va_end(arguments);
}

void event_warnx(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  event_logv_(EVENT_LOG_WARN, nullptr, format, arguments);
  va_end(arguments);
}

void event_msgx(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  event_logv_(EVENT_LOG_MSG, nullptr, format, arguments);
  va_end(arguments);
}

void event_debugx_(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  event_logv_(EVENT_LOG_DEBUG, nullptr, format, arguments);
  va_end(arguments);
}
