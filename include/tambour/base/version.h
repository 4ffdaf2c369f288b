// The version of the library. The build reads its version number from this file.
#pragma once

#include <string_view>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour {

/// The version of the headers that the program was compiled with.
inline constexpr std::string_view version = "0.1.0";

}  // namespace tambour

#pragma GCC visibility pop
