// TLS of builds that have it: contexts with certificates of the tests.
#include "tls/support/certificates.h"
#include "transports/tls.h"

namespace tambour::test {

const bool has_tls = true;

Transport tls() {
  static const Contexts contexts;
  return {.server = contexts.server, .client = contexts.client};
}

}  // namespace tambour::test
