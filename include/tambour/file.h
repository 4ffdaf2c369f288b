// Files.
// Includes all headers of <tambour/file/>.
#pragma once

#include <tambour/file/file.h>  // IWYU pragma: export
