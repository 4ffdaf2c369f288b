// The certificate of the servers.
#pragma once

#include <string>

namespace bench {

/// Writes a self-signed certificate for "localhost" with a P-256 key, and the key, in PEM format.
void write_certificate(const std::string& path);

}  // namespace bench
