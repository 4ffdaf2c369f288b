// The functions of the original that print messages. Besides those in core.h.
#pragma once

#include <cstdarg>

#include "libevent/event/core.h"

/// As the code of event_errx(): calls abort(3) instead of exit(3).
inline constexpr int EVENT_ERR_ABORT_ = static_cast<int>(0xdeaddeadU);  // NOLINT

extern "C" {

extern ev_uint32_t event_debug_logging_mask_;

void event_logv_(int severity, const char* error, const char* format, std::va_list arguments)
    __attribute__((format(printf, 3, 0)));
void event_err(int code, const char* format, ...) __attribute__((format(printf, 2, 3), noreturn));
void event_sock_err(int code, evutil_socket_t fd, const char* format, ...)
    __attribute__((format(printf, 3, 4), noreturn));
void event_sock_warn(evutil_socket_t fd, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
void event_msgx(const char* format, ...) __attribute__((format(printf, 1, 2)));
void event_debugx_(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // extern "C"
