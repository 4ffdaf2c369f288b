// How the connections of a test transfer their bytes: through sockets, or through TLS over them.
#pragma once

#include <tambour/tls/context.h>

namespace tambour::test {

/// The contexts of TLS; empty for sockets.
struct Transport {
  tls::ServerContext server{};  ///< With a certificate for "localhost".
  tls::ClientContext client{};  ///< Trusts it.
};

/// The transport of the running test, which OnEveryBackend sets. The helpers of streams.h use it.
Transport& transport();

}  // namespace tambour::test
