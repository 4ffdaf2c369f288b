// The variants of tests of streams and servers: each backend and a simulated host, over sockets and
// over TLS.
//
// A test that makes system calls on its descriptors, counts them, or is about what only sockets
// have, cannot run over TLS or in a simulation. It belongs to a suite that uses
// TAMBOUR_ON_EVERY_BACKEND.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "support/on_every_backend.h"

namespace tambour::test {

const std::vector<Variant>& every_transport();

/// Sockets and TLS, on the default backend.
const std::vector<Variant>& both_transports();

}  // namespace tambour::test

#define TAMBOUR_ON_EVERY_TRANSPORT(suite)                                            \
  INSTANTIATE_TEST_SUITE_P(Every, suite, testing::ValuesIn(test::every_transport()), \
                           &test::name_of_variant)
#define TAMBOUR_ON_BOTH_TRANSPORTS(suite)                                           \
  INSTANTIATE_TEST_SUITE_P(Both, suite, testing::ValuesIn(test::both_transports()), \
                           &test::name_of_variant)
