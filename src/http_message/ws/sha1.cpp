// The rounds of SHA-1.
#include "http_message/ws/sha1.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace tambour::http::detail::ws {
namespace {

constexpr std::size_t block_bytes = 64;
using State = std::array<std::uint32_t, 5>;

void put_be(std::uint64_t value, std::span<std::byte> target) noexcept {
  for (std::size_t i = 0; i < target.size(); ++i)
    target[i] = static_cast<std::byte>(value >> 8 * (target.size() - 1 - i));
}

void add_block(State& state, const std::byte* block) noexcept {
  std::array<std::uint32_t, 80> words;
  for (std::size_t i = 0; i < 16; ++i) {
    words[i] = 0;
    for (std::size_t j = 0; j < 4; ++j)
      words[i] = words[i] << 8U | std::to_integer<std::uint32_t>(block[4 * i + j]);
  }
  for (std::size_t i = 16; i < words.size(); ++i)
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  auto [a, b, c, d, e] = state;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::uint32_t mixed = 0;
    if (i < 20) {
      mixed = ((b & c) | (~b & d)) + 0x5A827999;
    } else if (i < 40) {
      mixed = (b ^ c ^ d) + 0x6ED9EBA1;
    } else if (i < 60) {
      mixed = ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC;
    } else {
      mixed = (b ^ c ^ d) + 0xCA62C1D6;
    }
    mixed += std::rotl(a, 5) + e + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = mixed;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
}

}  // namespace

std::array<std::byte, 20> sha1(std::string_view text) noexcept {
  State state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  for (; bytes.size() >= block_bytes; bytes = bytes.subspan(block_bytes))
    add_block(state, bytes.data());
  // The rest, a one, zeros, and the number of bits: in one block or in two.
  std::array<std::byte, 2 * block_bytes> rest{};
  std::ranges::copy(bytes, rest.begin());
  rest[bytes.size()] = std::byte{0x80};
  const std::size_t size = bytes.size() + 9 <= block_bytes ? block_bytes : 2 * block_bytes;
  put_be(std::uint64_t{text.size()} * 8, std::span(rest).subspan(size - 8, 8));
  for (std::size_t at = 0; at < size; at += block_bytes) add_block(state, rest.data() + at);
  std::array<std::byte, 20> digest;
  for (std::size_t i = 0; i < state.size(); ++i)
    put_be(state[i], std::span(digest).subspan(4 * i, 4));
  return digest;
}

}  // namespace tambour::http::detail::ws
