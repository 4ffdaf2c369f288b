// Stops the compiler with one message if it compiles an older C++ than C++23. Every public header
// without includes of Tambour's own includes this, so that all others do.
#pragma once

#if __cplusplus <= 202002L
#error "Tambour needs C++23: compile with -std=c++23, or set CMAKE_CXX_STANDARD to 23"
// No compiler goes on after a header that does not exist: hundreds of errors would follow.
#include <compilation ends here>
#endif
