// Begins TLS on an open connection, for layer tls.
#pragma once

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/detail/transport_filter.h>
#include <tambour/net/connection.h>

namespace tambour::detail::net {

struct ConnectionUpgrade {
  /// From now on the connection sends nothing but the handshake of `filter`, until it is complete
  /// or `limit` has passed; zero: no limit. `done` is invoked in a later iteration. If it gets an
  /// error, on_close follows. Throws std::bad_alloc; the connection is unchanged then.
  static void begin(Connection& connection, OwnedPointer<io::TransportFilter> filter,
                    Duration limit, Callback<void(Connection&, Error)> done);
};

}  // namespace tambour::detail::net
