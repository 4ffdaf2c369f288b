// Perl's headers, included after all headers that their macros would break.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tambour/events/child.h>
#include <tambour/events/file_status.h>
#include <tambour/events/signal.h>
#include <tambour/events/wall_timer.h>
#include <tambour/loop/async.h>
#include <tambour/loop/control.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>
#include <tambour/loop/hooks.h>
#include <tambour/loop/timer.h>

// Perl's headers are C code that causes warnings in C++23.
#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wdeprecated-volatile"
#else
#pragma GCC diagnostic ignored "-Wvolatile"
#endif
#define PERL_NO_GET_CONTEXT
#include <EXTERN.h>
#include <perl.h>
// Requires perl.h.
#include <XSUB.h>
#pragma GCC diagnostic pop
