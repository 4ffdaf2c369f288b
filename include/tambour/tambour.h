// All public headers.
#pragma once

#include <tambour/base.h>       // IWYU pragma: export
#include <tambour/bytes.h>      // IWYU pragma: export
#include <tambour/dns.h>        // IWYU pragma: export
#include <tambour/events.h>     // IWYU pragma: export
#include <tambour/file.h>       // IWYU pragma: export
#include <tambour/fs.h>         // IWYU pragma: export
#include <tambour/http.h>       // IWYU pragma: export
#include <tambour/inspector.h>  // IWYU pragma: export
#include <tambour/loop.h>       // IWYU pragma: export
#include <tambour/metrics.h>    // IWYU pragma: export
#include <tambour/net.h>        // IWYU pragma: export
#include <tambour/process.h>    // IWYU pragma: export
#include <tambour/sim.h>        // IWYU pragma: export
#include <tambour/task.h>       // IWYU pragma: export
#include <tambour/threads.h>    // IWYU pragma: export
#include <tambour/tls.h>        // IWYU pragma: export
#include <tambour/udp.h>        // IWYU pragma: export
