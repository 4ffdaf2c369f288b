// Inputs without a fuzzer: bytes derived from a seed, the same on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace tambour::fuzz {

inline std::vector<std::uint8_t> random_input(std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<std::uint8_t> bytes(16 + generator() % 400);
  for (std::uint8_t& byte : bytes) byte = std::uint8_t(generator());
  return bytes;
}

}  // namespace tambour::fuzz
