// TLS of builds that do not have it (TAMBOUR_TLS=OFF).
#include "transports/tls.h"

namespace tambour::test {

const bool has_tls = false;

Transport tls() { return {}; }

}  // namespace tambour::test
