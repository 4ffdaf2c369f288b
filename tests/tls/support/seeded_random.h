// Random numbers of OpenSSL that depend on a seed, so that a simulation with TLS is reproducible:
// the sizes of signatures and tickets depend on random numbers.
#pragma once

#include <cstdint>

namespace tambour::test {

/// Replaces the random numbers of the process for its lifetime. Only one may exist, in a process
/// in which one thread uses OpenSSL.
class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed);
  SeededRandom(const SeededRandom&) = delete;
  SeededRandom& operator=(const SeededRandom&) = delete;
  ~SeededRandom();
};

}  // namespace tambour::test
