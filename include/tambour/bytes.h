// Buffers of bytes.
// Includes all headers of <tambour/bytes/>.
#pragma once

#include <tambour/bytes/buffer.h>  // IWYU pragma: export
