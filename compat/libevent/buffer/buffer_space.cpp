// Direct access to the memory of an evbuffer: space to write into, and bytes in place.

#include <algorithm>
#include <bit>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "libevent/buffer/buffer.h"

using tambour::libevent::Chain;
using tambour::libevent::Locked;
using tambour::libevent::make_chain;

int evbuffer_expand(evbuffer* buf, size_t datlen) {
  const Locked locked(buf);
  return buf->expand(datlen) != nullptr ? 0 : -1;
}

namespace {

evbuffer_iovec space_of(const Chain& chain) noexcept { return {chain.end(), chain.space()}; }

/// Provides space in up to `count` chains. Returns false if there is no memory.
bool expand_several(evbuffer& buffer, std::size_t size, int count) noexcept {
  std::size_t available = 0;
  int used = 0;
  for (Chain* chain = buffer.space_chain(); chain != nullptr && used < count; chain = chain->next) {
    available += chain->space();
    ++used;
    if (available >= size) return true;
  }
  if (used == count) {
    // One empty chain takes the place of all others.
    const Chain* const open = buffer.tail;
    available = open != nullptr ? open->space() : 0;
  }
  Chain* const chain = make_chain(size - available);
  if (chain == nullptr) return false;
  if (used == count) buffer.drop_spares();
  buffer.append_spare(chain);
  return true;
}

}  // namespace

int evbuffer_reserve_space(evbuffer* buf, ev_ssize_t size, evbuffer_iovec* vec, int n_vec) {
  const Locked locked(buf);
  if (buf->back_frozen || n_vec < 1 || size < 0) return -1;
  const auto bytes = static_cast<std::size_t>(size);
  if (n_vec == 1) {
    const Chain* const chain = buf->expand(bytes);
    if (chain == nullptr) return -1;
    vec[0] = space_of(*chain);
    return 1;
  }
  if (bytes == 0) return 0;
  if (!expand_several(*buf, bytes, n_vec)) return -1;
  std::size_t provided = 0;
  int used = 0;
  for (const Chain* chain = buf->space_chain(); provided < bytes; chain = chain->next) {
    vec[used] = space_of(*chain);
    provided += vec[used].iov_len;
    ++used;
  }
  return used;
}

int evbuffer_commit_space(evbuffer* buf, evbuffer_iovec* vec, int n_vecs) {
  const Locked locked(buf);
  if (buf->back_frozen || n_vecs < 0) return -1;
  if (n_vecs == 0) return 0;
  const auto fits = [](const Chain* chain, const evbuffer_iovec& extent) {
    return chain != nullptr && extent.iov_base == chain->end() && extent.iov_len <= chain->space();
  };
  // The space may begin after a chain that had too little.
  Chain* start = buf->space_chain();
  while (start != nullptr && !fits(start, vec[0])) start = start->next;
  const Chain* checked = start;
  std::size_t size = 0;
  for (int i = 0; i < n_vecs; ++i) {
    if (!fits(checked, vec[i])) return -1;
    checked = checked->next;
    size += vec[i].iov_len;
  }
  if (size > SIZE_MAX - buf->length) return -1;
  Chain* chain = start;
  for (int i = 0; i < n_vecs; ++i) {
    Chain* const next = chain->next;
    buf->commit(chain, vec[i].iov_len);
    chain = next;
  }
  buf->changed(size, 0);
  return 0;
}

size_t evbuffer_add_iovec(evbuffer* buffer, evbuffer_iovec* vec, int n_vec) {
  const Locked locked(buffer);
  std::size_t total = 0;
  for (int i = 0; i < n_vec; ++i) {
    if (vec[i].iov_len > SIZE_MAX - total) return 0;
    total += vec[i].iov_len;
  }
  if (total > SIZE_MAX - buffer->length) return 0;
  if (total != 0 && !expand_several(*buffer, total, 2)) return 0;
  std::size_t size = 0;
  for (int i = 0; i < n_vec; ++i) {
    if (evbuffer_add(buffer, vec[i].iov_base, vec[i].iov_len) != 0) break;
    size += vec[i].iov_len;
  }
  return size;
}

int evbuffer_peek(evbuffer* buffer, ev_ssize_t len, evbuffer_ptr* start_at, evbuffer_iovec* vec_out,
                  int n_vec) {
  if (start_at != nullptr && start_at->internal_.chain == nullptr) return 0;
  const Locked locked(buffer);
  auto* chain =
      start_at != nullptr ? static_cast<Chain*>(start_at->internal_.chain) : buffer->first;
  std::size_t skip = start_at != nullptr ? start_at->internal_.pos_in_chain : 0;
  const bool all = len < 0;
  const bool count_only = n_vec <= 0;
  const auto wanted = static_cast<std::size_t>(len);
  std::size_t so_far = 0;
  int count = 0;
  for (; chain != nullptr && chain->size != 0; chain = chain->next) {
    // With a position, the rest of its chain is always counted.
    const bool forced = count == 0 && start_at != nullptr;
    if (!forced && !all && so_far >= wanted) break;
    const std::size_t size = chain->size - skip;
    if (count < n_vec) {
      if (!make_readable(*chain)) break;
      vec_out[count] = {chain->bytes() + skip, size};
    } else if (all && !count_only) {
      break;
    }
    ++count;
    so_far += size;
    skip = 0;
  }
  return count;
}

namespace {

/// Brings the first `size` bytes into memory, if they are in files.
bool make_front_readable(evbuffer& buffer, std::size_t size) noexcept {
  Chain* chain = buffer.first;
  for (; size > chain->size; chain = chain->next) {
    if (!make_readable(*chain)) return false;
    size -= chain->size;
  }
  return make_readable(*chain);
}

}  // namespace

unsigned char* evbuffer_pullup(evbuffer* buf, ev_ssize_t size) {
  const Locked locked(buf);
  const std::size_t wanted = size < 0 ? buf->length : static_cast<std::size_t>(size);
  if (wanted == 0 || wanted > buf->length) return nullptr;
  Chain* front = buf->first;
  if (!make_front_readable(*buf, wanted)) return nullptr;
  if (front->size >= wanted) return front->bytes();

  if (!front->writable || front->capacity < wanted) {
    // Doubled, so that a program that pulls up what it has after each read does not copy
    // quadratically.
    const std::size_t room = wanted <= tambour::libevent::chain_size_max / 4
                                 ? std::bit_ceil(wanted + sizeof(Chain)) - sizeof(Chain)
                                 : wanted;
    Chain* const larger = make_chain(room);
    if (larger == nullptr) {
      event_warn("%s: out of memory", __func__);
      return nullptr;
    }
    std::memcpy(larger->data, front->bytes(), front->size);
    larger->size = front->size;
    buf->replace(front, larger);
    front = larger;
  } else if (front->capacity - front->begin < wanted) {
    front->align();
  }
  while (front->size < wanted) {
    Chain* const next = front->next;
    const std::size_t part = std::min(next->size, wanted - front->size);
    std::memcpy(front->end(), next->bytes(), part);
    front->size += part;
    next->begin += part;
    next->size -= part;
    if (next->size != 0) break;
    if (buf->tail == next) buf->tail = front;
    buf->drop_spare(next);
  }
  return front->bytes();
}

int evbuffer_add_vprintf(evbuffer* buf, const char* fmt, va_list ap) {
  constexpr std::size_t space_min = 64;
  const Locked locked(buf);
  if (buf->back_frozen) return -1;
  Chain* chain = buf->expand(space_min);
  while (chain != nullptr) {
    const std::size_t space = chain->space();
    std::va_list copy;
    va_copy(copy, ap);
    const int size = std::vsnprintf(reinterpret_cast<char*>(chain->end()), space, fmt, copy);
    va_end(copy);
    if (size < 0) return -1;
    const auto bytes = static_cast<std::size_t>(size);
    if (bytes < space) {
      if (bytes > SIZE_MAX - buf->length) return -1;
      buf->commit(chain, bytes);
      buf->changed(bytes, 0);
      return size;
    }
    chain = buf->expand(bytes + 1);
  }
  return -1;
}

int evbuffer_add_printf(evbuffer* buf, const char* fmt, ...) {
  std::va_list arguments;
  va_start(arguments, fmt);
  const int size = evbuffer_add_vprintf(buf, fmt, arguments);
  va_end(arguments);
  return size;
}
