// The functions of event2/buffer.h that add, remove and move bytes.

#include "libevent/buffer/buffer.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>

using tambour::libevent::BothLocked;
using tambour::libevent::Chain;
using tambour::libevent::Locked;

evbuffer* evbuffer_new() {
  void* const memory = event_mm_calloc_(1, sizeof(evbuffer));
  if (memory == nullptr) return nullptr;
  auto* const buffer = new (memory) evbuffer{};
  buffer->references = 1;
  return buffer;
}

void evbuffer::destroy() noexcept {
  drop_chains();
  running = 0;  // Callbacks that are running cannot refer to their entries any more.
  remove_callbacks();
  if (deferred) {
    event_deferred_cb_cancel_(base, deferred_callback);
    event_mm_free_(deferred_callback);
  }
  tambour::libevent::unlock(lock);
  if (owns_lock) tambour::libevent::free_lock(lock, EVTHREAD_LOCKTYPE_RECURSIVE);
  event_mm_free_(this);
}

void evbuffer_free(evbuffer* buf) {
  tambour::libevent::lock(buf->lock);
  buf->release();
}

extern "C" {
void evbuffer_incref_(evbuffer* buf) {
  buf->acquire();
  tambour::libevent::unlock(buf->lock);
}
void evbuffer_incref_and_lock_(evbuffer* buf) { buf->acquire(); }
void evbuffer_decref_and_unlock_(evbuffer* buf) { buf->release(); }
}

int evbuffer_enable_locking(evbuffer* buf, void* lock) {
  if (buf->lock != nullptr) return -1;
  const bool local = lock == nullptr;
  if (local) lock = tambour::libevent::make_lock(EVTHREAD_LOCKTYPE_RECURSIVE);
  if (lock == nullptr) return -1;
  buf->lock = lock;
  buf->owns_lock = local;
  return 0;
}

void evbuffer_lock(evbuffer* buf) { tambour::libevent::lock(buf->lock); }
void evbuffer_unlock(evbuffer* buf) { tambour::libevent::unlock(buf->lock); }

int evbuffer_set_flags(evbuffer* buf, ev_uint64_t flags) {
  const Locked locked(buf);
  buf->flags |= static_cast<std::uint32_t>(flags);
  return 0;
}

int evbuffer_clear_flags(evbuffer* buf, ev_uint64_t flags) {
  const Locked locked(buf);
  buf->flags &= ~static_cast<std::uint32_t>(flags);
  return 0;
}

size_t evbuffer_get_length(const evbuffer* buf) {
  tambour::libevent::lock(buf->lock);
  const std::size_t length = buf->length;
  tambour::libevent::unlock(buf->lock);
  return length;
}

size_t evbuffer_get_contiguous_space(const evbuffer* buf) {
  tambour::libevent::lock(buf->lock);
  const std::size_t size = buf->first != nullptr ? buf->first->size : 0;
  tambour::libevent::unlock(buf->lock);
  return size;
}

int evbuffer_freeze(evbuffer* buf, int at_front) {
  const Locked locked(buf);
  (at_front != 0 ? buf->front_frozen : buf->back_frozen) = true;
  return 0;
}

int evbuffer_unfreeze(evbuffer* buf, int at_front) {
  const Locked locked(buf);
  (at_front != 0 ? buf->front_frozen : buf->back_frozen) = false;
  return 0;
}

int evbuffer_add(evbuffer* buf, const void* data, size_t datlen) {
  const Locked locked(buf);
  if (buf->back_frozen) return -1;
  Chain* const open = buf->tail;
  if (open != nullptr && open->space() >= datlen && datlen <= SIZE_MAX - buf->length) [[likely]] {
    if (datlen != 0) std::memcpy(open->end(), data, datlen);
    open->size += datlen;
    buf->length += datlen;
  } else if (!buf->add(data, datlen)) {
    return -1;
  }
  buf->changed(datlen, 0);
  return 0;
}

int evbuffer_prepend(evbuffer* buf, const void* data, size_t size) {
  const Locked locked(buf);
  if (size == 0) return 0;
  if (buf->front_frozen || !buf->prepend(data, size)) return -1;
  buf->changed(size, 0);
  return 0;
}

int evbuffer_drain(evbuffer* buf, size_t len) {
  const Locked locked(buf);
  if (buf->length == 0) return 0;
  if (buf->front_frozen) return -1;
  len = std::min(len, buf->length);
  buf->drain(len);
  buf->changed(0, len);
  return 0;
}

namespace {

/// Copies bytes from a position of a chain. Returns false if they cannot be read from their file.
bool copy(Chain* chain, std::size_t begin, unsigned char* into, std::size_t size) noexcept {
  for (; size != 0; chain = chain->next) {
    if (!make_readable(*chain)) return false;
    const std::size_t part = std::min(size, chain->size - begin);
    std::memcpy(into, chain->bytes() + begin, part);
    into += part;
    size -= part;
    begin = 0;
  }
  return true;
}

}  // namespace

ev_ssize_t evbuffer_copyout_from(evbuffer* buf, const evbuffer_ptr* pos, void* data_out,
                                 size_t datlen) {
  const Locked locked(buf);
  Chain* chain = buf->first;
  std::size_t begin = 0;
  std::size_t available = buf->length;
  if (pos != nullptr) {
    if (pos->pos < 0 || static_cast<std::size_t>(pos->pos) > buf->length ||
        datlen > static_cast<std::size_t>(EV_SSIZE_MAX - pos->pos))
      return -1;
    chain = static_cast<Chain*>(pos->internal_.chain);
    begin = pos->internal_.pos_in_chain;
    available -= static_cast<std::size_t>(pos->pos);
  }
  datlen = std::min({datlen, available, static_cast<std::size_t>(EV_SSIZE_MAX)});
  if (datlen == 0) return 0;
  if (buf->front_frozen) return -1;
  if (!copy(chain, begin, static_cast<unsigned char*>(data_out), datlen)) return -1;
  return static_cast<ev_ssize_t>(datlen);
}

ev_ssize_t evbuffer_copyout(evbuffer* buf, void* data_out, size_t datlen) {
  return evbuffer_copyout_from(buf, nullptr, data_out, datlen);
}

int evbuffer_remove(evbuffer* buf, void* data, size_t datlen) {
  const Locked locked(buf);
  datlen = std::min({datlen, buf->length, std::size_t{INT_MAX}});
  if (datlen == 0) return 0;
  if (buf->front_frozen) return -1;
  if (!copy(buf->first, 0, static_cast<unsigned char*>(data), datlen)) return -1;
  buf->drain(datlen);
  buf->changed(0, datlen);
  return static_cast<int>(datlen);
}

namespace {

/// Invokes the callbacks of both buffers after bytes were moved.
void moved(evbuffer& from, evbuffer& into, std::size_t size) noexcept {
  into.added += into.callbacks != nullptr ? size : 0;
  from.changed(0, size);
  into.changed(0, 0);
}

/// Moves all bytes. Returns 0, or -1 if the buffers do not allow it.
int move_all(evbuffer& from, evbuffer& into, bool to_front) noexcept {
  if (from.length == 0 || &from == &into) return 0;
  if ((to_front ? into.front_frozen : into.back_frozen) || from.front_frozen) return -1;
  const std::size_t size = from.length;
  if (size > SIZE_MAX - into.length) return -1;
  if (to_front) {
    into.take_front(from);
  } else {
    into.take_back(from);
  }
  moved(from, into, size);
  return 0;
}

}  // namespace

int evbuffer_add_buffer(evbuffer* outbuf, evbuffer* inbuf) {
  const BothLocked locked(outbuf, inbuf);
  return move_all(*inbuf, *outbuf, false);
}

int evbuffer_prepend_buffer(evbuffer* dst, evbuffer* src) {
  const BothLocked locked(dst, src);
  return move_all(*src, *dst, true);
}

namespace {

/// Moves the first `size` bytes, less than all. Returns false if there is no memory, and then has
/// moved none.
bool move_first(evbuffer& from, evbuffer& into, std::size_t size) noexcept {
  std::size_t rest = size;
  Chain* split = from.first;
  for (; split->size <= rest; split = split->next) rest -= split->size;
  if (rest != 0 && !make_readable(*split)) return false;
  if (size > SIZE_MAX - into.length) return false;

  if (split == from.first) {
    if (!into.add(split->bytes(), rest)) return false;
  } else {
    Chain* piece = nullptr;
    if (rest != 0) {
      piece = tambour::libevent::make_chain(rest);
      if (piece == nullptr) return false;
      std::memcpy(piece->data, split->bytes(), rest);
      piece->size = rest;
    }
    while (from.first != split) into.append(from.unlink_first());
    if (piece != nullptr) into.append(piece);
    into.length += size;
  }
  split->begin += rest;
  split->size -= rest;
  from.length -= size;
  return true;
}

}  // namespace

int evbuffer_remove_buffer(evbuffer* src, evbuffer* dst, size_t datlen) {
  const BothLocked locked(src, dst);
  if (datlen == 0 || src == dst) return 0;
  if (dst->back_frozen || src->front_frozen) return -1;
  datlen = std::min(datlen, src->length);
  if (datlen == src->length) {
    if (move_all(*src, *dst, false) != 0) return -1;
  } else {
    if (!move_first(*src, *dst, datlen)) return -1;
    src->deleted += src->callbacks != nullptr ? datlen : 0;
    dst->changed(datlen, 0);
    src->changed(0, 0);
  }
  return static_cast<int>(std::min(datlen, std::size_t{INT_MAX}));
}
