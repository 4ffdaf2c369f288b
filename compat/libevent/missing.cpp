// What a function that is not implemented yet does. Each library has its own copy, because the
// libraries export only what the original exports.

#include <cstdio>
#include <cstdlib>

extern "C" [[noreturn]] void tambour_libevent_missing(const char* name) {
  std::fprintf(stderr, "libevent on Tambour: %s is not implemented\n", name);
  std::abort();
}
