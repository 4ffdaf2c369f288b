// Positions in an evbuffer, searches, and lines.

#include <algorithm>
#include <cstring>

#include "libevent/buffer/buffer.h"

using tambour::libevent::Chain;
using tambour::libevent::Locked;

namespace {

/// A position: `offset` bytes into the chain, which is null at the end of the buffer.
struct Position {
  Chain* chain;
  std::size_t offset;
  std::size_t total;  ///< From the beginning of the buffer.

  [[nodiscard]] const unsigned char* bytes() const noexcept { return chain->bytes() + offset; }
  [[nodiscard]] std::size_t rest() const noexcept { return chain->size - offset; }
  [[nodiscard]] bool readable() const noexcept {
    return chain != nullptr && chain->size != 0 && make_readable(*chain);
  }
  /// Moves to the first byte of the next chain.
  void next_chain() noexcept {
    total += rest();
    chain = chain->next;
    if (chain != nullptr && chain->size == 0) chain = nullptr;
    offset = 0;
  }
  /// Moves by no more than the rest of the chain.
  void advance(std::size_t size) noexcept {
    if (size == rest()) return next_chain();
    offset += size;
    total += size;
  }
};

Position front(const evbuffer& buffer) noexcept {
  return {buffer.length != 0 ? buffer.first : nullptr, 0, 0};
}

Position from(const evbuffer_ptr& ptr) noexcept {
  return {static_cast<Chain*>(ptr.internal_.chain), ptr.internal_.pos_in_chain,
          static_cast<std::size_t>(ptr.pos)};
}

evbuffer_ptr to_ptr(const Position& position) noexcept {
  return {static_cast<ev_ssize_t>(position.total), {position.chain, position.offset}};
}

constexpr evbuffer_ptr not_found{-1, {nullptr, 0}};

/// Whether the bytes at a position are those given, in one chain or several.
bool equal(Position at, const unsigned char* text, std::size_t size) noexcept {
  while (size != 0) {
    if (!at.readable()) return false;
    const std::size_t part = std::min(size, at.rest());
    if (std::memcmp(at.bytes(), text, part) != 0) return false;
    text += part;
    size -= part;
    at.advance(part);
  }
  return true;
}

/// Moves to the first occurrence, of which the last byte is before `end`. Returns false if there is
/// none.
bool find(Position& at, const unsigned char* text, std::size_t size, std::size_t end) noexcept {
  while (at.readable()) {
    if (at.total > end || end - at.total < size) return false;
    if (at.rest() >= size) {
      const void* const hit = ::memmem(at.bytes(), at.rest(), text, size);
      if (hit != nullptr) {
        at.advance(static_cast<std::size_t>(static_cast<const unsigned char*>(hit) - at.bytes()));
        return at.total + size <= end;
      }
      at.advance(at.rest() - size + 1);
    }
    // What begins in the rest of this chain ends in another one.
    Chain* const chain = at.chain;
    while (at.chain == chain && chain != nullptr) {
      const void* const hit = std::memchr(at.bytes(), text[0], at.rest());
      if (hit == nullptr) {
        at.next_chain();
        break;
      }
      at.advance(static_cast<std::size_t>(static_cast<const unsigned char*>(hit) - at.bytes()));
      if (at.total > end || end - at.total < size) return false;
      if (equal(at, text, size)) return true;
      at.advance(1);
    }
  }
  return false;
}

/// Moves to the first of the bytes `one` and `other`. Returns false if there is none.
bool find_either(Position& at, unsigned char one, unsigned char other) noexcept {
  // Searched in parts, so that a byte that is far away or missing does not cost a search of
  // everything before each occurrence of the other.
  constexpr std::size_t part_max = 128;
  while (at.readable()) {
    const std::size_t part = std::min(part_max, at.rest());
    const auto* const begin = at.bytes();
    const auto* hit = static_cast<const unsigned char*>(std::memchr(begin, one, part));
    const std::size_t before = hit != nullptr ? static_cast<std::size_t>(hit - begin) : part;
    const void* const earlier = std::memchr(begin, other, before);
    if (earlier != nullptr) hit = static_cast<const unsigned char*>(earlier);
    if (hit != nullptr) {
      at.advance(static_cast<std::size_t>(hit - begin));
      return true;
    }
    at.advance(part);
  }
  return false;
}

bool find_byte(Position& at, unsigned char byte) noexcept {
  while (at.readable()) {
    const auto* const begin = at.bytes();
    const void* const hit = std::memchr(begin, byte, at.rest());
    if (hit != nullptr) {
      at.advance(static_cast<std::size_t>(static_cast<const unsigned char*>(hit) - begin));
      return true;
    }
    at.next_chain();
  }
  return false;
}

std::size_t count_line_ends(Position at) noexcept {
  std::size_t count = 0;
  for (; at.readable() && (*at.bytes() == '\r' || *at.bytes() == '\n'); at.advance(1)) ++count;
  return count;
}

/// The position one byte before, which must exist.
Position before(const Position& at) noexcept {
  if (at.offset != 0) return {at.chain, at.offset - 1, at.total - 1};
  Chain* const chain = at.chain->previous;
  return {chain, chain->size - 1, at.total - 1};
}

/// Moves to the next end of line. Returns its length, or 0 if there is none.
std::size_t find_line_end(Position& at, evbuffer_eol_style style) noexcept {
  constexpr unsigned char both[] = {'\r', '\n'};
  const std::size_t start = at.total;
  switch (style) {
    case EVBUFFER_EOL_ANY:
      return find_either(at, '\r', '\n') ? count_line_ends(at) : 0;
    case EVBUFFER_EOL_CRLF_STRICT:
      return find(at, both, sizeof both, SIZE_MAX) ? sizeof both : 0;
    case EVBUFFER_EOL_CRLF: {
      if (!find_byte(at, '\n')) return 0;
      if (at.total == start) return 1;
      const Position previous = before(at);
      if (!previous.readable() || *previous.bytes() != '\r') return 1;
      at = previous;
      return 2;
    }
    case EVBUFFER_EOL_LF:
      return find_byte(at, '\n') ? 1 : 0;
    case EVBUFFER_EOL_NUL:
      return find_byte(at, '\0') ? 1 : 0;
  }
  return 0;
}

}  // namespace

int evbuffer_ptr_set(evbuffer* buffer, evbuffer_ptr* ptr, size_t position, evbuffer_ptr_how mode) {
  const Locked locked(buffer);
  Position at = front(*buffer);
  if (mode == EVBUFFER_PTR_ADD) {
    if (ptr->pos < 0 || SIZE_MAX - position < static_cast<std::size_t>(ptr->pos)) return -1;
    at = from(*ptr);
  }
  while (at.chain != nullptr && position >= at.rest()) {
    position -= at.rest();
    at.next_chain();
  }
  if (at.chain == nullptr && position != 0) {
    *ptr = not_found;
    return -1;
  }
  at.offset += position;
  at.total += position;
  *ptr = to_ptr(at);
  return 0;
}

evbuffer_ptr evbuffer_search_range(evbuffer* buffer, const char* text, size_t len,
                                   const evbuffer_ptr* start, const evbuffer_ptr* end) {
  const Locked locked(buffer);
  Position at = start != nullptr ? from(*start) : front(*buffer);
  if (len == 0 || len > EV_SSIZE_MAX) return to_ptr(at);
  const std::size_t limit =
      end == nullptr ? SIZE_MAX : (end->pos < 0 ? 0 : static_cast<std::size_t>(end->pos));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text);
  return find(at, bytes, len, std::min(limit, buffer->length)) ? to_ptr(at) : not_found;
}

evbuffer_ptr evbuffer_search(evbuffer* buffer, const char* text, size_t len,
                             const evbuffer_ptr* start) {
  return evbuffer_search_range(buffer, text, len, start, nullptr);
}

unsigned char* evbuffer_find(evbuffer* buffer, const unsigned char* text, size_t len) {
  const Locked locked(buffer);
  const evbuffer_ptr at =
      evbuffer_search(buffer, reinterpret_cast<const char*>(text), len, nullptr);
  if (at.pos < 0) return nullptr;
  unsigned char* const bytes = evbuffer_pullup(buffer, at.pos + static_cast<ev_ssize_t>(len));
  return bytes != nullptr ? bytes + at.pos : nullptr;
}

evbuffer_ptr evbuffer_search_eol(evbuffer* buffer, evbuffer_ptr* start, size_t* eol_len_out,
                                 evbuffer_eol_style eol_style) {
  const Locked locked(buffer);
  Position at = start != nullptr ? from(*start) : front(*buffer);
  const std::size_t size = find_line_end(at, eol_style);
  if (eol_len_out != nullptr) *eol_len_out = size;
  return size != 0 ? to_ptr(at) : not_found;
}

char* evbuffer_readln(evbuffer* buffer, size_t* n_read_out, evbuffer_eol_style eol_style) {
  const Locked locked(buffer);
  if (n_read_out != nullptr) *n_read_out = 0;
  if (buffer->front_frozen) return nullptr;
  Position end = front(*buffer);
  const std::size_t end_size = find_line_end(end, eol_style);
  if (end_size == 0) return nullptr;
  const std::size_t size = end.total;
  auto* const line = static_cast<char*>(event_mm_malloc_(size + 1));
  if (line == nullptr) {
    event_warn("%s: out of memory", __func__);
    return nullptr;
  }
  evbuffer_copyout(buffer, line, size);
  line[size] = '\0';
  // The callbacks are invoked for the line and for its end.
  if (size != 0) evbuffer_drain(buffer, size);
  evbuffer_drain(buffer, end_size);
  if (n_read_out != nullptr) *n_read_out = size;
  return line;
}

char* evbuffer_readline(evbuffer* buffer) {
  return evbuffer_readln(buffer, nullptr, EVBUFFER_EOL_ANY);
}
