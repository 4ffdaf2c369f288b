// Bytes of an evbuffer that are in memory of the user, in another buffer or in a file.

#include "libevent/buffer/buffer_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "base/system_call.h"
#include "libevent/buffer/buffer.h"

using tambour::detail::base::Call;
using tambour::libevent::Chain;
using tambour::libevent::Locked;
using tambour::libevent::make_foreign_chain;
namespace base = tambour::detail::base;

int evbuffer_add_reference(evbuffer* outbuf, const void* data, size_t datlen,
                           evbuffer_ref_cleanup_cb cleanupfn, void* cleanupfn_arg) {
  Chain* const chain = make_foreign_chain(Chain::Kind::reference, sizeof(Chain::Reference));
  if (chain == nullptr) return -1;
  chain->data = static_cast<unsigned char*>(const_cast<void*>(data));
  chain->size = chain->capacity = datlen;
  chain->extra<Chain::Reference>() = {cleanupfn, cleanupfn_arg};

  const Locked locked(outbuf);
  if (outbuf->back_frozen || datlen > SIZE_MAX - outbuf->length) {
    event_mm_free_(chain);  // The memory remains the caller's.
    return -1;
  }
  outbuf->append(chain);
  outbuf->length += datlen;
  outbuf->changed(datlen, 0);
  return 0;
}

namespace {

/// Makes a list of views of the chains of a buffer, linked by `next`. Returns null if there is no
/// memory.
Chain* make_views(const evbuffer& buffer) noexcept {
  Chain* views = nullptr;
  Chain** link = &views;
  for (Chain* chain = buffer.first; chain != nullptr && chain->size != 0; chain = chain->next) {
    Chain* const view = make_foreign_chain(Chain::Kind::view, sizeof(Chain*));
    if (view == nullptr) {
      tambour::libevent::drop_all(views);
      return nullptr;
    }
    view->data = chain->data;
    view->begin = chain->begin;
    view->size = chain->size;
    view->capacity = chain->capacity;
    view->extra<Chain*>() = chain;
    chain->writable = false;
    chain->shared = true;
    chain->references.fetch_add(1, std::memory_order_relaxed);
    *link = view;
    link = &view->next;
  }
  return views;
}

}  // namespace

int evbuffer_add_buffer_reference(evbuffer* outbuf, evbuffer* inbuf) {
  const tambour::libevent::BothLocked locked(outbuf, inbuf);
  if (inbuf->length == 0) return 0;
  if (outbuf->back_frozen || outbuf == inbuf) return -1;
  for (const Chain* chain = inbuf->first; chain != nullptr; chain = chain->next) {
    if (chain->kind == Chain::Kind::file || chain->kind == Chain::Kind::view) return -1;
  }
  if (inbuf->length > SIZE_MAX - outbuf->length) return -1;
  Chain* view = make_views(*inbuf);
  if (view == nullptr) {
    event_warn("%s: out of memory", __func__);
    return -1;
  }
  while (view != nullptr) {
    Chain* const next = view->next;
    outbuf->append(view);
    view = next;
  }
  outbuf->length += inbuf->length;
  outbuf->changed(inbuf->length, 0);
  return 0;
}

namespace {

constexpr unsigned segment_lock_type = 0;

std::size_t page_size() noexcept {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

bool map_contents(evbuffer_file_segment& segment) noexcept {
  const auto offset = static_cast<std::size_t>(segment.offset);
  const std::size_t skipped = offset % page_size();
  const std::size_t size = static_cast<std::size_t>(segment.length) + skipped;
  void* const mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, segment.fd,
                               static_cast<off_t>(offset - skipped));
  if (mapping == MAP_FAILED) {
    event_warn("%s: mmap(%d, %zu bytes at %zu) failed", "evbuffer_file_segment", segment.fd, size,
               offset - skipped);
    return false;
  }
  segment.mapping = mapping;
  segment.mapping_size = size;
  segment.contents = static_cast<unsigned char*>(mapping) + skipped;
  return true;
}

/// Reads the part of the file into memory, from files that cannot be mapped too.
bool read_contents(evbuffer_file_segment& segment) noexcept {
  const auto size = static_cast<std::size_t>(segment.length);
  auto* const memory = static_cast<unsigned char*>(event_mm_malloc_(size));
  if (memory == nullptr) return false;
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n =
        base::uninterrupted(Call::file_read, ::pread, segment.fd, static_cast<void*>(memory + done),
                            size - done, static_cast<off_t>(segment.offset + done));
    if (n <= 0) {
      const int error = errno;
      event_mm_free_(memory);
      errno = error;
      return false;
    }
    done += static_cast<std::size_t>(n);
  }
  segment.contents = memory;
  return true;
}

/// Brings the bytes into memory, once.
bool materialize(evbuffer_file_segment& segment) noexcept {
  tambour::libevent::lock(segment.lock);
  bool done = segment.contents != nullptr || segment.length == 0;
  if (!done && (segment.flags & EVBUF_FS_DISABLE_MMAP) == 0) done = map_contents(segment);
  if (!done) done = read_contents(segment);
  tambour::libevent::unlock(segment.lock);
  return done;
}

/// Returns false if no such part of a file can be in a buffer.
bool set_range(evbuffer_file_segment& segment, ev_off_t offset, ev_off_t length) noexcept {
  if (length == -1) {
    struct stat status{};
    if (base::system_call(Call::stat, ::fstat, segment.fd, &status) != 0) return false;
    length = status.st_size;
    // Only what follows the offset can be read.
    if (offset > 0) length = offset < length ? length - offset : 0;
  }
  if (offset < 0 || length < 0 || offset > EV_SSIZE_MAX - length) return false;
  segment.offset = offset;
  segment.length = length;
  return true;
}

}  // namespace

evbuffer_file_segment* evbuffer_file_segment_new(int fd, ev_off_t offset, ev_off_t length,
                                                 unsigned flags) {
  void* const memory = event_mm_calloc_(1, sizeof(evbuffer_file_segment));
  if (memory == nullptr) return nullptr;
  auto* const segment = new (memory) evbuffer_file_segment{};
  segment->references.store(1, std::memory_order_relaxed);
  segment->fd = fd;
  segment->flags = flags;
  segment->sendfile = (flags & EVBUF_FS_DISABLE_SENDFILE) == 0;
  if (!set_range(*segment, offset, length) || (!segment->sendfile && !materialize(*segment))) {
    event_mm_free_(segment);
    return nullptr;
  }
  if ((flags & EVBUF_FS_DISABLE_LOCKING) == 0)
    segment->lock = tambour::libevent::make_lock(segment_lock_type);
  return segment;
}

void evbuffer_file_segment_add_cleanup_cb(evbuffer_file_segment* seg,
                                          evbuffer_file_segment_cleanup_cb cb, void* arg) {
  seg->cleanup = cb;
  seg->cleanup_argument = arg;
}

void evbuffer_file_segment_free(evbuffer_file_segment* seg) {
  if (seg->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (seg->mapping != nullptr) {
    ::munmap(seg->mapping, seg->mapping_size);
  } else if (seg->contents != nullptr) {
    event_mm_free_(seg->contents);
  }
  if ((seg->flags & EVBUF_FS_CLOSE_ON_FREE) != 0 && seg->fd >= 0) ::close(seg->fd);
  if (seg->cleanup != nullptr)
    seg->cleanup(seg, static_cast<int>(seg->flags), seg->cleanup_argument);
  tambour::libevent::free_lock(seg->lock, segment_lock_type);
  event_mm_free_(seg);
}

namespace {

/// Makes a chain of a part of a segment. Returns null if the part is not in the segment or there is
/// no memory.
Chain* make_part(evbuffer_file_segment& segment, ev_off_t offset, ev_off_t length,
                 bool sendfile) noexcept {
  if (offset < 0 || offset > segment.length) return nullptr;
  if (length < 0) length = segment.length - offset;
  if (length > segment.length - offset) return nullptr;
  Chain* const chain = make_foreign_chain(Chain::Kind::file, sizeof(Chain::FilePart));
  if (chain == nullptr) return nullptr;
  const auto size = static_cast<std::size_t>(length);
  chain->extra<Chain::FilePart>() = {&segment, static_cast<std::size_t>(offset)};
  if (sendfile) {
    chain->begin = static_cast<std::size_t>(segment.offset + offset);
  } else {
    chain->data = segment.contents + offset;
  }
  chain->size = size;
  chain->capacity = chain->begin + size;
  tambour::libevent::retain(segment);
  return chain;
}

}  // namespace

namespace {

enum class Outcome : std::uint8_t { added, unreadable, refused };

Outcome add_part(evbuffer& buffer, evbuffer_file_segment& segment, ev_off_t offset,
                 ev_off_t length) noexcept {
  const bool sendfile = (buffer.flags & EVBUFFER_FLAG_DRAINS_TO_FD) != 0 && segment.sendfile;
  if (!sendfile && !materialize(segment)) return Outcome::unreadable;
  if (buffer.back_frozen) return Outcome::refused;
  Chain* const chain = make_part(segment, offset, length, sendfile);
  if (chain == nullptr) return Outcome::refused;
  const std::size_t size = chain->size;
  if (size > SIZE_MAX - buffer.length) {
    tambour::libevent::drop(chain);
    return Outcome::refused;
  }
  buffer.append(chain);
  buffer.length += size;
  buffer.changed(size, 0);
  return Outcome::added;
}

}  // namespace

int evbuffer_add_file_segment(evbuffer* buf, evbuffer_file_segment* seg, ev_off_t offset,
                              ev_off_t length) {
  const Locked locked(buf);
  const Outcome outcome = add_part(*buf, *seg, offset, length);
  // As in libevent, the caller loses its reference on this error, but not on the other one.
  if (outcome == Outcome::refused) evbuffer_file_segment_free(seg);
  return outcome == Outcome::added ? 0 : -1;
}

int evbuffer_add_file(evbuffer* outbuf, int fd, ev_off_t offset, ev_off_t length) {
  evbuffer_file_segment* const segment =
      evbuffer_file_segment_new(fd, offset, length, EVBUF_FS_CLOSE_ON_FREE);
  if (segment == nullptr) return -1;
  const Locked locked(outbuf);
  const Outcome outcome = add_part(*outbuf, *segment, 0, -1);
  evbuffer_file_segment_free(segment);
  return outcome == Outcome::added ? 0 : -1;
}

namespace tambour::libevent {

void retain(evbuffer_file_segment& segment) noexcept {
  segment.references.fetch_add(1, std::memory_order_relaxed);
}

bool make_readable(Chain& chain) noexcept {
  if (!chain.in_file() || chain.size == 0) return true;
  evbuffer_file_segment& segment = *chain.extra<Chain::FilePart>().segment;
  if (!materialize(segment)) return false;
  // The file offset becomes an offset in the memory.
  chain.data = segment.contents;
  chain.begin -= static_cast<std::size_t>(segment.offset);
  chain.capacity -= static_cast<std::size_t>(segment.offset);
  return true;
}

}  // namespace tambour::libevent
