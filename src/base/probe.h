// Static probes for perf(1) and bpftrace(8): a no-op instruction each while no tracer is attached.
// See docs/observing.md. The CMake option TAMBOUR_PROBES=OFF removes them.
#pragma once

#if !defined(TAMBOUR_NO_PROBES) && __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define TAMBOUR_PROBE1(name, a) DTRACE_PROBE1(tambour, name, a)
#define TAMBOUR_PROBE2(name, a, b) DTRACE_PROBE2(tambour, name, a, b)
#define TAMBOUR_PROBE3(name, a, b, c) DTRACE_PROBE3(tambour, name, a, b, c)
#else
#define TAMBOUR_PROBE1(name, a) ((void)(a))
#define TAMBOUR_PROBE2(name, a, b) ((void)(a), (void)(b))
#define TAMBOUR_PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#endif
