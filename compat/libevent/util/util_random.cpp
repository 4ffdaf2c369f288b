// event2/util.h: random numbers. The kernel's generator needs no seed.

#include <sys/random.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>

#include <event2/util.h>

#include "libevent/event/log.h"

void evutil_secure_rng_get_bytes(void* buffer, std::size_t size) {
  auto* bytes = static_cast<unsigned char*>(buffer);
  while (size != 0) {
    const ssize_t got = ::getrandom(bytes, size, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      event_err(1, "getrandom");
    }
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
}

int evutil_secure_rng_init() { return 0; }
int evutil_secure_rng_set_urandom_device_file(char*) { return 0; }
void evutil_secure_rng_add_bytes(const char*, std::size_t) {}

extern "C" {

// The state of evutil_weakrand_(), in memory of the caller.
struct evutil_weakrand_state {
  ev_uint32_t seed;
};

int evutil_secure_rng_global_setup_locks_(int) { return 0; }
void evutil_free_secure_rng_globals_() {}

ev_uint32_t evutil_weakrand_seed_(evutil_weakrand_state* state, ev_uint32_t seed) {
  if (seed == 0) {
    timeval now;
    ::gettimeofday(&now, nullptr);
    seed = static_cast<ev_uint32_t>(now.tv_sec + now.tv_usec + ::getpid());
  }
  return state->seed = seed;
}

ev_int32_t evutil_weakrand_(evutil_weakrand_state* state) {
  state->seed = (state->seed * 1103515245U + 12345U) & 0x7fffffffU;
  return static_cast<ev_int32_t>(state->seed);
}

/// The result is at least 0 and less than `top`.
ev_int32_t evutil_weakrand_range_(evutil_weakrand_state* state, ev_int32_t top) {
  const ev_int32_t divisor = 0x7fffffff / top;
  ev_int32_t result;
  do {
    result = evutil_weakrand_(state) / divisor;
  } while (result >= top);
  return result;
}

}  // extern "C"
