// TLS: contexts, handshakes and sessions.
// Includes all headers of <tambour/tls/>.
#pragma once

#include <tambour/tls/context.h>     // IWYU pragma: export
#include <tambour/tls/early_data.h>  // IWYU pragma: export
#include <tambour/tls/error.h>       // IWYU pragma: export
#include <tambour/tls/handshake.h>   // IWYU pragma: export
#include <tambour/tls/session.h>     // IWYU pragma: export
#include <tambour/tls/stats.h>       // IWYU pragma: export
