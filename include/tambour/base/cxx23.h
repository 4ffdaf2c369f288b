// Makes compilation fail with a single message if the language is older than C++23. Every public
// header that includes no other Tambour header includes this one, so it takes effect with any
// header.
#pragma once

#if __cplusplus <= 202002L
#error "Tambour needs C++23: compile with -std=c++23, or set CMAKE_CXX_STANDARD to 23"
// A missing header is fatal for every compiler, so that hundreds of follow-up errors are avoided.
#include <compilation ends here>
#endif
