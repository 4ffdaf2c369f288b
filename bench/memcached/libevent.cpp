// memcached on libevent, or on the drop-in for it.
#include "memcached/memcached.h"

int main(int argc, char** argv) {
#ifdef TAMBOUR_DROP_INS
  return bench::run_memcached(argc, argv, {"tambour-libevent", TAMBOUR_DROP_INS});
#else
  return bench::run_memcached(argc, argv, {"libevent", nullptr});
#endif
}
