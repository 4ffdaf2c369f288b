// Tagged values in evbuffers (event2/tag.h).
//
// A tag is encoded in groups of 7 bits, the lowest first; the highest bit of a byte says that more
// follow. An integer is encoded in groups of 4 bits, the lowest first, after 4 bits with their
// number less one, and fills the last byte. A value is its tag, its length as an integer, and its
// bytes.

#include <event2/tag.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>

#include <event2/buffer.h>

#include "libevent/event/core.h"

extern "C" {
int evtag_decode_int(ev_uint32_t* pnumber, evbuffer* evbuf);
int evtag_decode_int64(ev_uint64_t* pnumber, evbuffer* evbuf);
int evtag_encode_tag(evbuffer* evbuf, ev_uint32_t tag);
int evtag_decode_tag(ev_uint32_t* ptag, evbuffer* evbuf);
}

namespace {

constexpr std::size_t tag_bytes_max = 5;
constexpr std::size_t int_bytes_max = 9;  // Of 64 bits.
constexpr unsigned nibble = 0xf;
constexpr unsigned nibble_bits = 4;
constexpr unsigned tag_bits = 7;
constexpr std::uint8_t more_follow = 0x80;

/// Returns the number of bytes.
std::size_t encode_int(std::uint8_t* into, std::uint64_t number) noexcept {
  unsigned count = 0;  // Of the groups.
  std::memset(into, 0, int_bytes_max);
  do {
    const unsigned place = count + 1;  // After the group with their number.
    const auto group = static_cast<std::uint8_t>(number & nibble);
    into[place / 2] |= static_cast<std::uint8_t>(place % 2 != 0 ? group : group << nibble_bits);
    number >>= nibble_bits;
    ++count;
  } while (number != 0);
  into[0] |= static_cast<std::uint8_t>((count - 1) << nibble_bits);
  return count / 2 + 1;
}

std::size_t encode_tag(std::uint8_t* into, std::uint32_t tag) noexcept {
  std::size_t count = 0;
  for (; tag >= more_follow; tag >>= tag_bits)
    into[count++] = static_cast<std::uint8_t>(tag | more_follow);
  into[count++] = static_cast<std::uint8_t>(tag);
  return count;
}

/// The first bytes of a buffer from an offset, at most `limit`. Returns null if there are none.
const std::uint8_t* bytes_at(evbuffer* buffer, std::size_t offset, std::size_t limit,
                             std::size_t& available) noexcept {
  const std::size_t length = evbuffer_get_length(buffer);
  if (length <= offset) return nullptr;
  available = std::min(length - offset, limit);
  const std::uint8_t* const bytes =
      evbuffer_pullup(buffer, static_cast<ev_ssize_t>(offset + available));
  return bytes != nullptr ? bytes + offset : nullptr;
}

/// Returns the number of bytes of the encoded integer, or -1 if there is none of so many groups.
int peek_int(evbuffer* buffer, std::size_t offset, unsigned groups_max,
             std::uint64_t& number) noexcept {
  std::size_t available = 0;
  const std::uint8_t* const bytes = bytes_at(buffer, offset, int_bytes_max, available);
  if (bytes == nullptr) return -1;
  const unsigned count = (unsigned{bytes[0]} >> nibble_bits) + 1;
  const std::size_t size = count / 2 + 1;
  if (count > groups_max || size > available) return -1;
  number = 0;
  for (unsigned place = count; place != 0; --place) {
    const unsigned byte = bytes[place / 2];
    number = number << nibble_bits | (place % 2 != 0 ? byte & nibble : byte >> nibble_bits);
  }
  return static_cast<int>(size);
}

template <class Number>
int peek_number(evbuffer* buffer, std::size_t offset, Number* number) noexcept {
  std::uint64_t found = 0;
  const int size = peek_int(buffer, offset, 2 * sizeof(Number), found);
  if (size != -1) *number = static_cast<Number>(found);
  return size;
}

/// Returns the number of bytes of the encoded tag, or -1.
int peek_tag(evbuffer* buffer, std::uint32_t* tag) noexcept {
  constexpr unsigned last_max = 15;  // The bits of the last byte that fit a tag.
  std::size_t available = 0;
  const std::uint8_t* const bytes = bytes_at(buffer, 0, tag_bytes_max, available);
  if (bytes == nullptr) return -1;
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < available; ++i) {
    const std::uint32_t group = bytes[i] & ~unsigned{more_follow};
    if (i == tag_bytes_max - 1 && group > last_max) return -1;
    found |= group << (tag_bits * i);
    if ((bytes[i] & more_follow) != 0) continue;
    if (tag != nullptr) *tag = found;
    return static_cast<int>(i + 1);
  }
  return -1;
}

/// Drains the bytes of what was decoded. Returns the same number.
int drained(evbuffer* buffer, int size) noexcept {
  if (size > 0) evbuffer_drain(buffer, static_cast<std::size_t>(size));
  return size;
}

template <class Number>
void marshal_number(evbuffer* buffer, std::uint32_t tag, Number number) noexcept {
  std::uint8_t bytes[int_bytes_max];
  const std::size_t size = encode_int(bytes, number);
  evtag_marshal(buffer, tag, bytes, static_cast<ev_uint32_t>(size));
}

template <class Number>
int unmarshal_number(evbuffer* buffer, std::uint32_t wanted, Number* number) noexcept {
  std::uint32_t tag = 0;
  if (drained(buffer, peek_tag(buffer, &tag)) == -1 || tag != wanted) return -1;
  std::uint32_t length = 0;
  if (evtag_decode_int(&length, buffer) == -1 || evbuffer_get_length(buffer) < length) return -1;
  const int size = peek_number(buffer, 0, number);
  evbuffer_drain(buffer, length);
  return size < 0 || static_cast<std::uint32_t>(size) > length ? -1 : size;
}

}  // namespace

void evtag_init() {}

void evtag_encode_int(evbuffer* evbuf, ev_uint32_t number) { evtag_encode_int64(evbuf, number); }

void evtag_encode_int64(evbuffer* evbuf, ev_uint64_t number) {
  std::uint8_t bytes[int_bytes_max];
  const std::size_t size = encode_int(bytes, number);
  evbuffer_add(evbuf, bytes, size);
}

int evtag_encode_tag(evbuffer* evbuf, ev_uint32_t tag) {
  std::uint8_t bytes[tag_bytes_max];
  const std::size_t size = encode_tag(bytes, tag);
  if (evbuf != nullptr) evbuffer_add(evbuf, bytes, size);
  return static_cast<int>(size);
}

int evtag_decode_tag(ev_uint32_t* ptag, evbuffer* evbuf) {
  return drained(evbuf, peek_tag(evbuf, ptag));
}
int evtag_decode_int(ev_uint32_t* pnumber, evbuffer* evbuf) {
  return drained(evbuf, peek_number(evbuf, 0, pnumber)) == -1 ? -1 : 0;
}
int evtag_decode_int64(ev_uint64_t* pnumber, evbuffer* evbuf) {
  return drained(evbuf, peek_number(evbuf, 0, pnumber)) == -1 ? -1 : 0;
}
int evtag_peek(evbuffer* evbuf, ev_uint32_t* ptag) { return peek_tag(evbuf, ptag); }

int evtag_payload_length(evbuffer* evbuf, ev_uint32_t* plength) {
  const int tag_size = peek_tag(evbuf, nullptr);
  if (tag_size == -1) return -1;
  return peek_number(evbuf, static_cast<std::size_t>(tag_size), plength) == -1 ? -1 : 0;
}

int evtag_peek_length(evbuffer* evbuf, ev_uint32_t* plength) {
  const int tag_size = peek_tag(evbuf, nullptr);
  if (tag_size == -1) return -1;
  const int size = peek_number(evbuf, static_cast<std::size_t>(tag_size), plength);
  if (size == -1) return -1;
  *plength += static_cast<ev_uint32_t>(size + tag_size);
  return 0;
}

void evtag_marshal(evbuffer* evbuf, ev_uint32_t tag, const void* data, ev_uint32_t len) {
  evtag_encode_tag(evbuf, tag);
  evtag_encode_int(evbuf, len);
  evbuffer_add(evbuf, data, len);
}

void evtag_marshal_buffer(evbuffer* evbuf, ev_uint32_t tag, evbuffer* data) {
  evtag_encode_tag(evbuf, tag);
  evtag_encode_int(evbuf, static_cast<ev_uint32_t>(evbuffer_get_length(data)));
  evbuffer_add_buffer(evbuf, data);
}

void evtag_marshal_int(evbuffer* evbuf, ev_uint32_t tag, ev_uint32_t integer) {
  marshal_number(evbuf, tag, integer);
}
void evtag_marshal_int64(evbuffer* evbuf, ev_uint32_t tag, ev_uint64_t integer) {
  marshal_number(evbuf, tag, integer);
}
void evtag_marshal_string(evbuffer* buf, ev_uint32_t tag, const char* string) {
  evtag_marshal(buf, tag, string, static_cast<ev_uint32_t>(std::strlen(string)));
}

void evtag_marshal_timeval(evbuffer* evbuf, ev_uint32_t tag, timeval* tv) {
  // Two integers of 32 bits.
  std::uint8_t bytes[2 * int_bytes_max];
  std::size_t size = encode_int(bytes, static_cast<std::uint32_t>(tv->tv_sec));
  size += encode_int(bytes + size, static_cast<std::uint32_t>(tv->tv_usec));
  evtag_marshal(evbuf, tag, bytes, static_cast<ev_uint32_t>(size));
}

int evtag_unmarshal_header(evbuffer* evbuf, ev_uint32_t* ptag) {
  if (evtag_decode_tag(ptag, evbuf) == -1) return -1;
  ev_uint32_t length = 0;
  if (evtag_decode_int(&length, evbuf) == -1) return -1;
  if (length > INT_MAX || evbuffer_get_length(evbuf) < length) return -1;
  return static_cast<int>(length);
}

int evtag_consume(evbuffer* evbuf) {
  const int size = evtag_unmarshal_header(evbuf, nullptr);
  return drained(evbuf, size) == -1 ? -1 : 0;
}

int evtag_unmarshal(evbuffer* src, ev_uint32_t* ptag, evbuffer* dst) {
  const int size = evtag_unmarshal_header(src, ptag);
  if (size == -1) return -1;
  const void* const bytes = evbuffer_pullup(src, size);
  if ((bytes == nullptr && size != 0) ||
      evbuffer_add(dst, bytes, static_cast<std::size_t>(size)) == -1)
    return -1;
  return drained(src, size);
}

int evtag_unmarshal_int(evbuffer* evbuf, ev_uint32_t need_tag, ev_uint32_t* pinteger) {
  return unmarshal_number(evbuf, need_tag, pinteger);
}
int evtag_unmarshal_int64(evbuffer* evbuf, ev_uint32_t need_tag, ev_uint64_t* pinteger) {
  return unmarshal_number(evbuf, need_tag, pinteger);
}

int evtag_unmarshal_fixed(evbuffer* src, ev_uint32_t need_tag, void* data, size_t len) {
  ev_uint32_t tag = 0;
  const int size = evtag_unmarshal_header(src, &tag);
  if (size < 0 || tag != need_tag || static_cast<std::size_t>(size) != len) return -1;
  evbuffer_remove(src, data, len);
  return 0;
}

int evtag_unmarshal_string(evbuffer* evbuf, ev_uint32_t need_tag, char** pstring) {
  ev_uint32_t tag = 0;
  const int size = evtag_unmarshal_header(evbuf, &tag);
  if (size == -1 || tag != need_tag) return -1;
  const auto length = static_cast<std::size_t>(size);
  *pstring = static_cast<char*>(event_mm_malloc_(length + 1));
  if (*pstring == nullptr) {
    event_warn("%s: malloc", __func__);
    return -1;
  }
  evbuffer_remove(evbuf, *pstring, length);
  (*pstring)[length] = '\0';
  return 0;
}

namespace {

/// Reads two integers of `size` bytes in total.
bool decode_timeval(evbuffer* buffer, int size, timeval& time) noexcept {
  std::uint32_t seconds = 0;
  std::uint32_t micros = 0;
  const int seconds_size = peek_number(buffer, 0, &seconds);
  if (seconds_size == -1) return false;
  const int micros_size = peek_number(buffer, static_cast<std::size_t>(seconds_size), &micros);
  if (micros_size == -1 || seconds_size + micros_size > size) return false;
  time = {static_cast<time_t>(seconds), static_cast<suseconds_t>(micros)};
  return true;
}

}  // namespace

int evtag_unmarshal_timeval(evbuffer* evbuf, ev_uint32_t need_tag, timeval* ptv) {
  ev_uint32_t tag = 0;
  const int size = evtag_unmarshal_header(evbuf, &tag);
  if (size == -1) return -1;
  const bool decoded = tag == need_tag && decode_timeval(evbuf, size, *ptv);
  drained(evbuf, size);
  return decoded ? 0 : -1;
}
