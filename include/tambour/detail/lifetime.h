// An attribute of functions whose result refers to their object or argument.
#pragma once

#include <tambour/base/cxx23.h>

/// clang warns if the result of such a function outlives a temporary that it refers to. GCC 12
/// warns about the attribute.
#if defined(__clang__)
#define TAMBOUR_LIFETIME_BOUND [[clang::lifetimebound]]
#else
#define TAMBOUR_LIFETIME_BOUND
#endif
