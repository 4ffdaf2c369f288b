// Names of functions of the process.
#pragma once

#include <string>

namespace tambour::inspect {

/// "function", or if the file that contains it has no such symbol, "file+0x1234", which
/// addr2line(1) accepts. Throws std::bad_alloc.
[[nodiscard]] std::string text_of_function(const void* function);

}  // namespace tambour::inspect
