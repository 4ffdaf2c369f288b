// Random numbers that are the same on every machine, compiler and standard library.
//
// xoshiro256** by David Blackman and Sebastiano Vigna, seeded by SplitMix64, both in the public
// domain: https://prng.di.unimi.it/. The standard library's engines would do; its distributions,
// which everybody writes differently, would not.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace tambour::backend::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15;
      std::uint64_t mixed = seed;
      mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
      word = mixed ^ (mixed >> 31);
    }
  }

  std::uint64_t next() noexcept {
    const std::uint64_t drawn = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return drawn;
  }

  /// From 0 to below `end`, which is at least 1; each as likely as the other.
  std::uint64_t below(std::uint64_t end) noexcept {
    // The first few would come once more often than the rest: they are drawn anew.
    const std::uint64_t uneven = (0 - end) % end;
    std::uint64_t drawn = next();
    while (drawn < uneven) drawn = next();
    return drawn % end;
  }

  /// From `least` to `most`, both included.
  std::int64_t between(std::int64_t least, std::int64_t most) noexcept {
    if (most <= least) return least;
    return least + std::int64_t(below(std::uint64_t(most - least) + 1));
  }

  bool chance(double probability) noexcept {
    // What never happens costs nothing, and leaves the run as it was without the knob.
    if (!(probability > 0)) return false;
    return double(next() >> 11) * 0x1p-53 < probability;
  }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace tambour::backend::sim
