// The internal namespaces: users must not name what is in a namespace `detail`.
//
// The parts of the library with a namespace of their own have internals of their own in
// `tambour::http::detail` and others. These see `tambour::detail`, so that `detail::X` means the
// same in all of the library.
#pragma once

#pragma GCC visibility push(default)

namespace tambour::detail {}

namespace tambour::dns::detail {
using namespace tambour::detail;  // NOLINT(google-build-using-namespace)
}
namespace tambour::http::detail {
using namespace tambour::detail;  // NOLINT(google-build-using-namespace)
}
namespace tambour::metrics::detail {
using namespace tambour::detail;  // NOLINT(google-build-using-namespace)
}
namespace tambour::sim::detail {
using namespace tambour::detail;  // NOLINT(google-build-using-namespace)
}
namespace tambour::tls::detail {
using namespace tambour::detail;  // NOLINT(google-build-using-namespace)
}

#pragma GCC visibility pop
