// Masks payloads, several bytes at a time.
#include "http_message/ws/masking.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "http_message/ws/processor.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tambour::http::detail::ws {
namespace {

/// Masks whole vectors and returns the number of masked bytes. Vectors of 16 bytes are SSE2 or
/// NEON, which every processor of these architectures has.
std::size_t mask_vectors(const std::byte* from, std::byte* to, std::size_t size,
                         std::uint32_t key) noexcept {
  using Vector [[gnu::vector_size(16)]] = std::uint32_t;
  const Vector keys = key - Vector{};
  std::size_t at = 0;
  const auto load = [&](std::size_t index) {
    Vector vector;
    std::memcpy(&vector, from + at + index * sizeof vector, sizeof vector);
    return vector;
  };
  const auto store = [&](std::size_t index, const Vector& vector) {
    std::memcpy(to + at + index * sizeof vector, &vector, sizeof vector);
  };
  for (; size - at >= 4 * sizeof(Vector); at += 4 * sizeof(Vector)) {
    // No array: GCC 12 would write it to memory.
    const Vector first = load(0);
    const Vector second = load(1);
    const Vector third = load(2);
    const Vector fourth = load(3);
    store(0, first ^ keys);
    store(1, second ^ keys);
    store(2, third ^ keys);
    store(3, fourth ^ keys);
  }
  for (; size - at >= sizeof(Vector); at += sizeof(Vector)) store(0, load(0) ^ keys);
  return at;
}

#ifdef __x86_64__
// With intrinsics: GCC 12 splits generic vectors of 32 bytes before it sees the target.
[[gnu::target("avx2")]] std::size_t mask_with_avx2(const std::byte* from, std::byte* to,
                                                   std::size_t size, std::uint32_t key) noexcept {
  const __m256i keys = _mm256_set1_epi32(static_cast<int>(key));
  constexpr std::size_t step = 4 * sizeof(__m256i);
  std::size_t at = 0;
  for (; size - at >= step; at += step) {
    const auto* const source = reinterpret_cast<const __m256i*>(from + at);
    auto* const target = reinterpret_cast<__m256i*>(to + at);
    // All are read before the first is written, so that the loads need not wait for the stores.
    const __m256i first = _mm256_loadu_si256(source);
    const __m256i second = _mm256_loadu_si256(source + 1);
    const __m256i third = _mm256_loadu_si256(source + 2);
    const __m256i fourth = _mm256_loadu_si256(source + 3);
    _mm256_storeu_si256(target, _mm256_xor_si256(first, keys));
    _mm256_storeu_si256(target + 1, _mm256_xor_si256(second, keys));
    _mm256_storeu_si256(target + 2, _mm256_xor_si256(third, keys));
    _mm256_storeu_si256(target + 3, _mm256_xor_si256(fourth, keys));
  }
  return at;
}
#else
std::size_t mask_with_avx2(const std::byte*, std::byte*, std::size_t, std::uint32_t) noexcept {
  return 0;
}
#endif

}  // namespace

void mask_copy(std::span<const std::byte> from, std::byte* to, MaskKey key,
               std::size_t offset) noexcept {
  /// Shorter payloads gain less than the call costs.
  constexpr std::size_t avx2_bytes_min = 512;
  if (offset % key.size() != 0)
    std::ranges::rotate(key, key.begin() + static_cast<std::ptrdiff_t>(offset % key.size()));
  std::uint32_t word = 0;
  std::memcpy(&word, key.data(), sizeof word);
  std::size_t at = from.size() >= avx2_bytes_min && has_avx2()
                       ? mask_with_avx2(from.data(), to, from.size(), word)
                       : 0;
  at += mask_vectors(from.data() + at, to + at, from.size() - at, word);
  if (from.size() - at >= sizeof(std::uint64_t)) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, from.data() + at, sizeof bytes);
    bytes ^= std::uint64_t{word} << 32U | word;
    std::memcpy(to + at, &bytes, sizeof bytes);
    at += sizeof bytes;
  }
  for (; at < from.size(); ++at) to[at] = from[at] ^ key[at % key.size()];
}

}  // namespace tambour::http::detail::ws
