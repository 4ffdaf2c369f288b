// Replaces the random numbers of OpenSSL, so that a simulation is reproducible.
#include "tls/support/seeded_random.h"

#include <cstdlib>
#include <random>

#include <openssl/rand.h>

namespace tambour::test {
namespace {

std::mt19937_64& numbers() {
  static std::mt19937_64 generator;
  return generator;
}

int fill(unsigned char* into, int size) {
  for (int i = 0; i < size; ++i) into[i] = static_cast<unsigned char>(numbers()());
  return 1;
}

int is_ready() { return 1; }

// OpenSSL 3 prefers providers to replaced methods, and still supports both.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

void use(const RAND_METHOD* method) {
  if (RAND_set_rand_method(method) != 1) std::abort();
}

constexpr RAND_METHOD seeded{.seed = nullptr,
                             .bytes = &fill,
                             .cleanup = nullptr,
                             .add = nullptr,
                             .pseudorand = &fill,
                             .status = &is_ready};

#pragma GCC diagnostic pop

}  // namespace

SeededRandom::SeededRandom(std::uint64_t seed) {
  numbers().seed(seed);
  use(&seeded);
}

SeededRandom::~SeededRandom() { use(nullptr); }

}  // namespace tambour::test
