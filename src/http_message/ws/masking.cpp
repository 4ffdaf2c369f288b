// Masks payloads, several bytes at a time.
#include "http_message/ws/masking.h"

#include <cstdint>
#include <cstring>

#include "http_message/ws/processor.h"

namespace tambour::http::ws {
namespace {

/// Masks whole vectors and returns the number of masked bytes. Vectors of 16 bytes are SSE2 or
/// NEON, which every processor of these architectures has.
template <std::size_t vector_bytes>
[[gnu::always_inline]] inline std::size_t mask_vectors(const std::byte* from, std::byte* to,
                                                       std::size_t size,
                                                       std::uint32_t key) noexcept {
  using Vector [[gnu::vector_size(vector_bytes)]] = std::uint32_t;
  constexpr std::size_t step = 4 * vector_bytes;
  const Vector keys = key - Vector{};
  std::size_t at = 0;
  for (; size - at >= step; at += step) {
    Vector vectors[4];
    std::memcpy(&vectors, from + at, step);
    for (Vector& vector : vectors) vector ^= keys;
    std::memcpy(to + at, &vectors, step);
  }
  for (; size - at >= vector_bytes; at += vector_bytes) {
    Vector vector;
    std::memcpy(&vector, from + at, vector_bytes);
    vector ^= keys;
    std::memcpy(to + at, &vector, vector_bytes);
  }
  return at;
}

#ifdef __x86_64__
[[gnu::target("avx2")]] std::size_t mask_with_avx2(const std::byte* from, std::byte* to,
                                                   std::size_t size, std::uint32_t key) noexcept {
  return mask_vectors<32>(from, to, size, key);
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
  MaskKey rotated;
  for (std::size_t i = 0; i < key.size(); ++i) rotated[i] = key[(offset + i) % key.size()];
  std::uint32_t word = 0;
  std::memcpy(&word, rotated.data(), sizeof word);
  std::size_t at = from.size() >= avx2_bytes_min && has_avx2()
                       ? mask_with_avx2(from.data(), to, from.size(), word)
                       : 0;
  at += mask_vectors<16>(from.data() + at, to + at, from.size() - at, word);
  for (; at < from.size(); ++at) to[at] = from[at] ^ rotated[at % key.size()];
}

}  // namespace tambour::http::ws
