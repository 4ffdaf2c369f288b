// Which Tambour this is. The build reads its own version from here.
#pragma once

#include <string_view>

#include <tambour/cxx23.h>

namespace tambour {

/// Of the headers that a program was compiled with.
inline constexpr std::string_view version = "0.1.0";

}  // namespace tambour
