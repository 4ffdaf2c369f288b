// Middleware that limits the bodies of the requests of a router or a route.
#pragma once

#include <cstdint>

#include <tambour/detail/namespaces.h>
#include <tambour/http/router.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// Middleware that replaces MessageLimits::body_bytes_max, with a smaller or a larger limit. A
/// request that states a larger body is answered with 413 before the handler is started; another
/// one fails when the handler reads it. IncomingBody::read_all() has a limit of its own. Throws
/// std::bad_alloc.
///
///   router.use(http::body_limit(100'000));
///   router.post("/photos", http::with_middleware({http::body_limit(1 << 24)}, store_photo));
[[nodiscard]] Middleware body_limit(std::uint64_t bytes_max);

}  // namespace tambour::http

#pragma GCC visibility pop
