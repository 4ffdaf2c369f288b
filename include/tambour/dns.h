// DNS: names, records, messages, the resolver and the server.
// Includes all headers of <tambour/dns/>.
#pragma once

#include <tambour/dns/error.h>     // IWYU pragma: export
#include <tambour/dns/message.h>   // IWYU pragma: export
#include <tambour/dns/name.h>      // IWYU pragma: export
#include <tambour/dns/over_tls.h>  // IWYU pragma: export
#include <tambour/dns/record.h>    // IWYU pragma: export
#include <tambour/dns/resolver.h>  // IWYU pragma: export
#include <tambour/dns/server.h>    // IWYU pragma: export
