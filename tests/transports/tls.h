// TLS as the transport of tests; with_tls.cpp or without_tls.cpp is compiled.
#pragma once

#include "support/transport.h"

namespace tambour::test {

extern const bool has_tls;

/// Certificates are made by the first call.
Transport tls();

}  // namespace tambour::test
