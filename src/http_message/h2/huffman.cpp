// Decodes and encodes the Huffman code of HPACK.
//
// The decoder looks up the next 11 bits in a table, each entry of which has up to two symbols.
// Longer codes, which belong to rare characters, are found by their length: the code is canonical,
// so that the codes of one length are consecutive numbers.
#include "http_message/h2/huffman.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace tambour::http::detail::h2 {
namespace {

constexpr unsigned symbol_count = 257;
constexpr unsigned end_of_string = 256;
constexpr unsigned length_max = 30;
/// The bits that are looked up at once.
constexpr unsigned table_bits = 11;

/// The length of the code of each symbol, in bits: RFC 7541, appendix B.
constexpr std::array<std::uint8_t, symbol_count> code_lengths = {
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,  //
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,  //
    6,  10, 10, 12, 13, 6,  8,  11, 10, 10, 8,  11, 8,  6,  6,  6,   //
    5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8,  15, 6,  12, 10,  //
    13, 6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,   //
    7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8,  13, 19, 13, 14, 6,   //
    15, 5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,   //
    6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7,  15, 11, 14, 13, 28,  //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,  //
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,  //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,  //
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,  //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,  //
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,  //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,  //
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,  //
    30};

struct Code {
  std::uint32_t bits = 0;
  std::uint32_t length = 0;
};

/// The codes of one length.
struct Length {
  std::uint32_t end = 0;       ///< After the last code, as the first bits of a word of 32 bits.
  std::uint16_t first_at = 0;  ///< The index of the symbol of its first code in `symbols`.
  std::uint32_t first = 0;     ///< Its first code.
};

struct Codes {
  std::array<Code, symbol_count> of_symbol{};
  std::array<std::uint16_t, symbol_count> symbols{};  ///< In the order of their codes.
  std::array<Length, length_max + 1> of_length{};
};

consteval Codes make_codes() noexcept {
  Codes codes;
  std::uint32_t next = 0;
  unsigned count = 0;
  for (unsigned length = 1; length <= length_max; ++length) {
    next <<= 1;
    codes.of_length[length].first = next;
    codes.of_length[length].first_at = static_cast<std::uint16_t>(count);
    for (unsigned symbol = 0; symbol < symbol_count; ++symbol) {
      if (code_lengths[symbol] != length) continue;
      codes.of_symbol[symbol] = {.bits = next++, .length = length};
      codes.symbols[count++] = static_cast<std::uint16_t>(symbol);
    }
    // The code that consists of ones only is that of EOS, after which there is none.
    codes.of_length[length].end = length == length_max ? 0xFFFFFFFF : next << (32 - length);
  }
  return codes;
}

constexpr Codes codes = make_codes();
static_assert(codes.of_symbol[end_of_string].bits == 0x3FFFFFFF);

/// The symbols whose codes are completely contained in some bits; none if the first code is longer.
struct Entry {
  std::array<char, 2> symbols{};
  std::uint8_t count = 0;
  std::uint8_t bits = 0;  ///< Of the codes of all symbols.
};

constexpr unsigned entry_count = 1U << table_bits;

consteval std::array<Entry, entry_count> make_table() noexcept {
  std::array<Entry, entry_count> table{};
  const auto fill = [&table](std::uint32_t code, unsigned bits, Entry entry) {
    entry.bits = static_cast<std::uint8_t>(bits);
    const unsigned free_bits = table_bits - bits;
    for (std::uint32_t i = 0; i < 1U << free_bits; ++i) table[(code << free_bits) + i] = entry;
  };
  for (unsigned i = 0; i < symbol_count; ++i) {
    const unsigned first = codes.symbols[i];
    const Code code = codes.of_symbol[first];
    if (code.length > table_bits) break;
    fill(code.bits, code.length, {{static_cast<char>(first), 0}, 1, 0});
    for (unsigned j = 0; j < symbol_count; ++j) {
      const unsigned second = codes.symbols[j];
      const Code other = codes.of_symbol[second];
      const unsigned bits = code.length + other.length;
      if (bits > table_bits) break;
      fill(code.bits << other.length | other.bits, bits,
           {{static_cast<char>(first), static_cast<char>(second)}, 2, 0});
    }
  }
  return table;
}

constexpr std::array<Entry, entry_count> table = make_table();

/// Converts between big-endian byte order and that of the machine.
template <class T>
constexpr T big_endian(T word) noexcept {
  return std::endian::native == std::endian::big ? word : std::byteswap(word);
}

std::uint64_t load_be(const char* from) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return big_endian(word);
}

/// The next bits of a text, from the highest bit on.
class Bits {
 public:
  /// refill() provides so many bits if the text has them.
  static constexpr unsigned refilled = 56;

  explicit Bits(std::string_view coded) noexcept
      : begin_(coded.data()), at_(begin_), end_(begin_ + coded.size()) {}

  void refill() noexcept {
    // Bits after count_ are those of the text already: adding them again does not change them.
    unsigned bytes = (63 - count_) / 8;
    const auto left = static_cast<std::size_t>(end_ - at_);
    if (left >= 8) {
      bits_ |= load_be(at_) >> count_;
    } else if (left == 0) {
      return;
    } else if (end_ - begin_ >= 8) {
      bits_ |= load_be(end_ - 8) << (64 - 8 * left) >> count_;
      bytes = std::min(bytes, static_cast<unsigned>(left));
    } else {
      // All of a short text fits. It is read once.
      bytes = static_cast<unsigned>(left);
      for (unsigned i = 0; i < bytes; ++i)
        bits_ |= std::uint64_t{static_cast<unsigned char>(at_[i])} << (56 - 8 * i);
    }
    at_ += bytes;
    count_ += 8 * bytes;
  }
  void remove(unsigned count) noexcept {
    bits_ <<= count;
    count_ -= count;
  }
  [[nodiscard]] std::uint32_t next(unsigned count) const noexcept {
    return static_cast<std::uint32_t>(bits_ >> (64 - count));
  }
  /// How many bits are known. Zeros follow them at the end of the text.
  [[nodiscard]] unsigned count() const noexcept { return count_; }
  /// True if less than 8 bits are left, and all are 1.
  [[nodiscard]] bool are_padding() const noexcept {
    return count_ < 8 && bits_ == ~(~std::uint64_t{0} >> count_);
  }

 private:
  std::uint64_t bits_ = 0;
  unsigned count_ = 0;
  const char* begin_;
  const char* at_;
  const char* end_;
};

/// The length of the code with which `bits` begin, and which is not in the table.
unsigned length_of_long(std::uint32_t bits) noexcept {
  unsigned length = table_bits + 1;
  while (length < length_max && bits >= codes.of_length[length].end) ++length;
  return length;
}

/// The symbol of the code of `length` bits with which `bits` begin.
unsigned symbol_of(std::uint32_t bits, unsigned length) noexcept {
  const Length& found = codes.of_length[length];
  return codes.symbols[found.first_at + (bits >> (32 - length)) - found.first];
}

/// Decodes while Bits::refilled bits are left. Returns the end of the text, or null after EOS.
char* decode_long_text(Bits& bits, char* to) noexcept {
  constexpr unsigned lookups = Bits::refilled / table_bits;
  while (true) {
    bits.refill();
    if (bits.count() < Bits::refilled) return to;
    Entry entry;
    for (unsigned i = 0; i < lookups; ++i) {
      entry = table[bits.next(table_bits)];
      std::memcpy(to, entry.symbols.data(), entry.symbols.size());
      to += entry.count;
      bits.remove(entry.bits);
      if (entry.count == 0) [[unlikely]]
        break;
    }
    if (entry.count != 0) continue;
    bits.refill();
    if (bits.count() < length_max) return to;
    const std::uint32_t next = bits.next(32);
    const unsigned length = length_of_long(next);
    const unsigned symbol = symbol_of(next, length);
    if (symbol == end_of_string) return nullptr;
    *to++ = static_cast<char>(symbol);
    bits.remove(length);
  }
}

}  // namespace

std::expected<std::size_t, Violation> decode_huffman(std::string_view coded, char* to) noexcept {
  char* const begin = to;
  Bits bits(coded);
  to = decode_long_text(bits, to);
  // All bits that are left are known now.
  while (to != nullptr && bits.count() > 0) {
    const Entry entry = table[bits.next(table_bits)];
    if (entry.count != 0 && entry.bits <= bits.count()) {
      std::memcpy(to, entry.symbols.data(), entry.symbols.size());
      to += entry.count;
      bits.remove(entry.bits);
    } else {
      // The second symbol, or the code, may consist of zeros after the end.
      const std::uint32_t next = bits.next(32);
      const unsigned length = entry.count != 0
                                  ? code_lengths[static_cast<unsigned char>(entry.symbols[0])]
                                  : length_of_long(next);
      if (length > bits.count()) break;
      const unsigned symbol = symbol_of(next, length);
      if (symbol == end_of_string) return std::unexpected(Violation::bad_huffman_code);
      *to++ = static_cast<char>(symbol);
      bits.remove(length);
    }
  }
  if (to == nullptr) return std::unexpected(Violation::bad_huffman_code);
  if (!bits.are_padding()) return std::unexpected(Violation::bad_huffman_padding);
  return static_cast<std::size_t>(to - begin);
}

char* encode_huffman(std::string_view text, char* to) noexcept {
  if (text.empty()) return nullptr;
  // The coded text must end before it.
  char* const end = to + text.size();
  std::uint64_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const Code code = codes.of_symbol[static_cast<unsigned char>(c)];
    bits = bits << code.length | code.bits;
    count += code.length;
    if (count < 32) continue;
    if (end - to <= 4) return nullptr;
    count -= 32;
    const std::uint32_t word = big_endian(static_cast<std::uint32_t>(bits >> count));
    std::memcpy(to, &word, sizeof word);
    to += sizeof word;
  }
  const unsigned padding = (8 - count % 8) % 8;
  bits = bits << padding | ((1U << padding) - 1);
  count += padding;
  if (end - to <= static_cast<std::ptrdiff_t>(count / 8)) return nullptr;
  while (count > 0) {
    count -= 8;
    *to++ = static_cast<char>(bits >> count);
  }
  return to;
}

}  // namespace tambour::http::detail::h2
