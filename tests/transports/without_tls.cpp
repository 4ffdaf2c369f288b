#include "transports/tls.h"

namespace tambour::test {

const bool has_tls = false;

Transport tls() { return {}; }

}  // namespace tambour::test
