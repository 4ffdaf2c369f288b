// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of untrusted texts. Without the key,
// an attacker cannot find texts with the same hash.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tambour::detail::bytes {

struct SipKey {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

class SipState {
 public:
  explicit constexpr SipState(const SipKey& key) noexcept
      : v0_(key.first ^ 0x736F6D6570736575U),
        v1_(key.second ^ 0x646F72616E646F6DU),
        v2_(key.first ^ 0x6C7967656E657261U),
        v3_(key.second ^ 0x7465646279746573U) {}

  constexpr void add(std::uint64_t word) noexcept {
    v3_ ^= word;
    mix();
    mix();
    v0_ ^= word;
  }
  [[nodiscard]] constexpr std::uint64_t finish() noexcept {
    v2_ ^= 0xFFU;
    for (int i = 0; i < 4; ++i) mix();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  constexpr void mix() noexcept {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v1_;
    v0_ += v3_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_;
  std::uint64_t v1_;
  std::uint64_t v2_;
  std::uint64_t v3_;
};

[[nodiscard]] constexpr std::uint64_t siphash(const SipKey& key, std::string_view text) noexcept {
  constexpr std::size_t word_size = 8;
  SipState state(key);
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    word |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * (i % word_size));
    if (i % word_size != word_size - 1) continue;
    state.add(word);
    word = 0;
  }
  state.add(word | std::uint64_t{text.size() & 0xFFU} << 56U);
  return state.finish();
}

}  // namespace tambour::detail::bytes
