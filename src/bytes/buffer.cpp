// Buffer: blocks and segments, appending and removing at both ends, sharing, and the pool of free
// blocks of a thread.
#include <tambour/bytes/buffer.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "base/check.h"
#include "bytes/buffer_blocks.h"
#include "bytes/read_size.h"

namespace tambour {

namespace {

// Separate functions, so that the callers save no registers for them.
[[noreturn, gnu::cold, gnu::noinline]] void fail_commit(std::size_t size,
                                                        std::size_t room) noexcept {
  detail::base::fail_check(
      "Buffer::commit(%zu): prepare() returned %zu bytes; call prepare() before each commit() "
      "and commit no more than the size of the span that it returned",
      size, room);
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_consume(std::size_t size,
                                                         std::size_t held) noexcept {
  detail::base::fail_check(
      "Buffer::consume(%zu): the buffer holds %zu bytes; consume at most size()", size, held);
}

}  // namespace

thread_local constinit Buffer::Pool Buffer::Pool::mine{};

Buffer::Pool::Closer::Closer() noexcept {
  for (FreeList& free_list : mine.blocks) free_list.kept_max = free_list.limit;
  mine.segments.kept_max = mine.segments.limit;
}

Buffer::Pool::Closer::~Closer() {
  for (FreeList& free_list : mine.blocks) free_list.close();
  mine.segments.close();
}

void Buffer::Pool::FreeList::free_excess(void* memory) noexcept {
  // Constructed on the first call in each thread.
  static thread_local const Closer closer;
  if (kept < kept_max) return give(memory);
  ::operator delete(memory);
}

Buffer::Segment* Buffer::Segment::make_of(std::span<const std::byte> bytes,
                                          std::shared_ptr<const void> owner, int fd) {
  // Never written through: writable() is false for foreign blocks.
  auto* const data = const_cast<std::byte*>(bytes.data());  // NOLINT: see above.
  auto* const block = new ForeignBlock{
      {.capacity = bytes.size(), .data = data, .kind = Block::Kind::foreign}, std::move(owner), fd};
  block->first.end = block->end();
  return &block->first;
}

Buffer::Segment* Buffer::Segment::slice(std::byte* from, std::byte* to) const {
  void* const memory = Pool::mine.segments.take();
  block->owners.fetch_add(1, std::memory_order_relaxed);
  return new (memory)
      Segment{.next = nullptr, .previous = nullptr, .block = block, .begin = from, .end = to};
}

void Buffer::check_sum(std::size_t size, std::size_t more) {
  if (more > max_size() - size) throw std::length_error("tambour::Buffer");
}

void Buffer::push_back(Segment* segment) noexcept {
  const auto searched = last_ != nullptr ? last_->searched : Segment::Searched();
  push_front(segment);
  last_ = segment;
  segment->searched = searched;
}

void Buffer::push_front(Segment* segment) noexcept {
  if (last_ == nullptr) {
    segment->next = segment->previous = last_ = segment;
  } else {
    segment->previous = last_;
    segment->next = std::exchange(last_->next, segment);
    segment->next->previous = segment;
  }
  last_->searched = {};
  size_ += segment->size();
}

Buffer::Segment* Buffer::pop_front() noexcept {
  Segment* const segment = last_->next;
  if (segment == last_) {
    last_ = nullptr;
  } else {
    last_->next = segment->next;
    segment->next->previous = last_;
  }
  lose_front(segment->size());
  return segment;
}

/// Puts `replacement` in the place of `segment`, and drops `segment`.
void Buffer::replace(Segment* segment, Segment* replacement) noexcept {
  if (segment->next == segment) {
    replacement->next = replacement->previous = replacement;
  } else {
    replacement->next = segment->next;
    replacement->previous = segment->previous;
    replacement->next->previous = replacement->previous->next = replacement;
  }
  if (segment == last_) last_ = replacement;
  replacement->searched = segment->searched;
  size_ += replacement->size() - segment->size();
  Segment::drop(segment);
}

/// Moves the bytes of a sparse segment to a block that fits. If there is no memory for that, the
/// segment stays as it is.
void Buffer::tighten(Segment* segment) noexcept {
  try {
    Segment* const compact = Segment::make_compact(segment->size());
    compact->append({segment->begin, segment->size()});
    replace(segment, compact);
  } catch (const std::bad_alloc&) {
    return;
  }
}

/// To be called before another segment follows the last one, which then gets no more bytes.
void Buffer::tighten_last() noexcept {
  if (last_ != nullptr && last_->is_sparse()) tighten(last_);
}

void Buffer::lose_front(std::size_t size) noexcept {
  size_ -= size;
  if (last_ == nullptr) return;
  auto& searched = last_->searched;
  searched.size = searched.size > size ? searched.size - size : 0;
}

void Buffer::clear() noexcept {
  drop_all();
  commit(0);
}

void Buffer::drop_all() noexcept {
  size_ = 0;
  Segment* const last = std::exchange(last_, nullptr);
  if (last == nullptr) return;
  for (Segment* segment = last->next; segment != last;)
    Segment::drop(std::exchange(segment, segment->next));
  Segment::drop(last);
}

std::size_t Buffer::room_behind() const noexcept {
  return last_ != nullptr ? last_->room_behind() : 0;
}

bool Buffer::is_last_merged() const noexcept { return last_ != nullptr && last_->is_merged(); }

std::span<std::byte> Buffer::prepare(std::size_t size) {
  check_sum(size_, size);
  if (prepared_ == nullptr && last_ != nullptr) {
    // A reader that accepts any size gets more than the rest of a tiny block.
    const bool is_enough =
        size > 0 ? room_behind() >= size
                 : last_->block->capacity > detail::bytes::tiny_block_bytes && room_behind() > 0;
    if (is_enough) return {last_->end, room_behind()};
  }
  if (prepared_ != nullptr && prepared_->room_behind() < std::max<std::size_t>(size, 1)) commit(0);
  // A reader that accepts any size gets a block for it; few bytes, one that they may keep.
  if (prepared_ == nullptr) prepared_ = size > 0 ? Segment::make_compact(size) : Segment::make(1);
  return {prepared_->end, prepared_->room_behind()};
}

void Buffer::commit(std::size_t size) noexcept {
  if (size == 0) {
    if (prepared_ != nullptr) Segment::drop(std::exchange(prepared_, nullptr));
    return;
  }
  if (prepared_ == nullptr) {
    if (size > room_behind()) [[unlikely]]
      fail_commit(size, room_behind());
    last_->end += size;
    size_ += size;
    return;
  }
  const auto room = static_cast<std::size_t>(prepared_->block->end() - prepared_->end);
  if (size > room) [[unlikely]]
    fail_commit(size, room);
  Segment* const segment = std::exchange(prepared_, nullptr);
  segment->end += size;
  if (last_ != nullptr) return push_back_compact(segment);
  Segment* only = segment;
  if (size <= detail::bytes::tiny_block_bytes && room > detail::bytes::tiny_block_bytes) {
    // A program may keep what it reads: see push_back_compact().
    if (Segment* const tiny = Segment::try_make_tiny()) {
      // All bytes of the tiny block: a copy of constant size takes fewer instructions.
      std::memcpy(tiny->begin, segment->begin, detail::bytes::tiny_block_bytes);
      tiny->end += size;
      only = tiny;
      Segment::drop(segment);
    }
  }
  only->next = only->previous = last_ = only;
  size_ = size;
  if (only->is_mostly_free()) [[unlikely]]
    tighten(only);
}

/// Appends a segment, or a copy of its bytes if they are few: one block for each short read would
/// take many times the memory of what the peer has sent.
void Buffer::push_back_compact(Segment* segment) noexcept {
  const std::span<const std::byte> bytes(segment->begin, segment->size());
  const bool fits =
      bytes.size() <= detail::bytes::copied_bytes_max && bytes.size() <= room_behind();
  if (!fits && !segment->is_short()) {
    tighten_last();
    push_back(segment);
    if (segment->is_mostly_free()) tighten(segment);
    return;
  }
  try {
    append(bytes);
  } catch (const std::exception&) {
    return push_back(segment);
  }
  Segment::drop(segment);
}

void Buffer::append(std::span<const std::byte> bytes) {
  check_sum(size_, bytes.size());
  commit(0);
  if (bytes.size() > room_behind()) return append_in_new_block(bytes);
  if (bytes.empty()) return;
  last_->append(bytes);
  size_ += bytes.size();
}

/// Returns a segment with room for `size` more bytes, to follow the last one. A short last segment
/// moves to the new block, so that short pieces do not take a block each: the segment begins with a
/// copy of it then. Link it with push_back_next().
Buffer::Segment* Buffer::make_next(std::size_t size) const {
  const std::size_t moved = is_last_merged() ? last_->size() : 0;
  // Blocks grow, so that a long message received in short pieces occupies few blocks. They grow
  // with the last segment rather than with the buffer, because larger pieces may follow and leave
  // the rest of the block unused.
  const std::size_t growth =
      last_ != nullptr ? std::min(2 * last_->size(), detail::bytes::large_block_bytes) : 0;
  Segment* const segment = Segment::make_compact(std::max(size + moved, growth));
  if (moved > 0) segment->append({last_->begin, moved});
  return segment;
}

void Buffer::push_back_next(Segment* segment) noexcept {
  if (is_last_merged()) return replace(last_, segment);
  tighten_last();
  push_back(segment);
}

void Buffer::append_in_new_block(std::span<const std::byte> bytes) {
  const std::size_t in_last = is_last_merged() ? 0 : room_behind();
  Segment* const segment = make_next(bytes.size() - in_last);
  segment->append(bytes.subspan(in_last));
  if (in_last > 0) {
    last_->append(bytes.first(in_last));
    size_ += in_last;
  }
  push_back_next(segment);
}

[[gnu::flatten]] std::span<std::byte> Buffer::extend(std::size_t size) {
  check_sum(size_, size);
  commit(0);
  if (size > room_behind()) push_back_next(make_next(size));
  std::byte* const bytes = last_->end;
  last_->end += size;
  size_ += size;
  return {bytes, size};
}

void Buffer::append(Buffer&& other) {
  if (&other == this || other.empty()) return;
  check_sum(size_, other.size_);
  commit(0);
  if (last_ != nullptr) {
    if (other.size_ <= detail::bytes::copied_bytes_max) {
      append_copy(other);
      return other.drop_all();
    }
    tighten_last();
  }
  link(other);
}

/// Moves the segments of `other` to the end. Allocates no memory.
void Buffer::link(Buffer& other) noexcept {
  if (last_ != nullptr) {
    // Swapping the `next` pointers of the two last segments joins the two circular lists.
    std::swap(last_->next, other.last_->next);
    std::swap(last_->next->previous, other.last_->next->previous);
    other.last_->searched = last_->searched;
  }
  last_ = std::exchange(other.last_, nullptr);
  size_ += std::exchange(other.size_, 0);
}

void Buffer::append_copy(const Buffer& piece) {
  const Segment& front = *piece.first();
  if (front.size() == piece.size_) return append({front.begin, front.size()});
  std::array<std::byte, detail::bytes::copied_bytes_max> bytes;
  append(std::span(bytes).first(piece.copy_to(bytes)));
}

void Buffer::append_shared(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (bytes.empty()) return;
  check_sum(size_, bytes.size());
  commit(0);
  Segment* const segment = Segment::make_of(bytes, std::move(owner));
  tighten_last();
  push_back(segment);
}

void Buffer::prepend(std::span<const std::byte> bytes) {
  check_sum(size_, bytes.size());
  if (bytes.empty()) return;
  Segment* const old = first();
  if (old != nullptr && old->room_before() >= bytes.size()) {
    // `bytes` may be part of the same block, but do not overlap the target.
    old->prepend(bytes);
    size_ += bytes.size();
    last_->searched = {};
    return;
  }
  // A short first segment moves to the new block: see append_in_new_block().
  const bool merges = old != nullptr && old->is_merged();
  Segment* const segment = Segment::make_compact(bytes.size() + (merges ? old->size() : 0));
  // At the end of the block, so that later prepend() calls find space before it.
  segment->begin = segment->end = segment->block->end();
  if (!merges) {
    segment->prepend(bytes);
    return push_front(segment);
  }
  segment->prepend({old->begin, old->size()});
  segment->prepend(bytes);
  replace(old, segment);
  last_->searched = {};
}

void Buffer::prepend(Buffer&& other) {
  if (&other == this || other.empty()) return;
  if (!empty() && other.size_ <= detail::bytes::copied_bytes_max) {
    prepend(other.peek(other.size_));
    return other.drop_all();
  }
  other.append(std::move(*this));
  swap(other);
}

void Buffer::consume(std::size_t size) noexcept {
  if (size > size_) [[unlikely]]
    fail_consume(size, size_);
  if (size == size_) return drop_all();
  while (size >= first()->size()) {
    size -= first()->size();
    Segment::drop(pop_front());
  }
  first()->begin += size;
  lose_front(size);
  tighten_ends();
}

/// To be called when bytes were removed from the front. Those that are left may be few, in a block
/// that was filled, or that was to be filled behind those that are gone.
void Buffer::tighten_ends() noexcept {
  if (last_ == nullptr) return;
  if (first() != last_ && first()->is_sparse()) [[unlikely]]
    tighten(first());
  tighten_last();
}

Buffer Buffer::copy_out(std::size_t from, std::size_t size) const {
  Buffer copy;
  Segment* const segment = Segment::make_for_keeping(size);
  for_each_piece(from, size, [segment](std::byte* begin, std::size_t count, const Segment&) {
    std::memcpy(segment->end, begin, count);
    segment->end += count;
  });
  copy.push_back(segment);
  return copy;
}

/// Returns whether a part of `size` bytes, of which the first `here` are in `block`, is copied
/// rather than shared.
bool Buffer::is_copied_out(const Block& block, std::size_t here, std::size_t size) noexcept {
  // Short parts of several segments would need a segment each.
  const bool is_scattered = size <= detail::bytes::tiny_block_bytes && size > here;
  return is_scattered || block.is_copied_out(size);
}

/// Appends a part of a segment of another buffer.
void Buffer::push_back_part(const Segment& segment, std::byte* begin, std::size_t size) {
  if (segment.block->is_copied_out(size)) return append({begin, size});
  push_back(segment.slice(begin, begin + size));
}

Buffer Buffer::take(std::size_t size) {
  size = std::min(size, size_);
  Buffer taken;
  if (size > 0 && is_copied_out(*first()->block, first()->size(), size)) {
    taken = copy_out(0, size);
    consume(size);
    return taken;
  }
  while (last_ != nullptr && size >= first()->size()) {
    size -= first()->size();
    taken.push_back(pop_front());
  }
  if (last_ == nullptr || size == 0) {
    tighten_ends();
    return taken;
  }
  try {
    taken.push_back_part(*first(), first()->begin, size);
  } catch (...) {
    taken.link(*this);
    link(taken);
    throw;
  }
  consume(size);
  return taken;
}

Buffer Buffer::slice() const {
  Buffer shared;
  for (const Segment* segment = first(); segment != nullptr; segment = after(segment))
    shared.push_back(segment->slice(segment->begin, segment->end));
  return shared;
}

void Buffer::for_each_piece(std::size_t from, std::size_t size, auto&& entry) const {
  for (const Segment* segment = first(); segment != nullptr && size > 0; segment = after(segment)) {
    const std::size_t skipped = std::min(from, segment->size());
    from -= skipped;
    const std::size_t here = std::min(size, segment->size() - skipped);
    if (here == 0) continue;
    entry(segment->begin + skipped, here, *segment);
    size -= here;
  }
}

Buffer Buffer::slice(std::size_t from, std::size_t size) const {
  from = std::min(from, size_);
  size = std::min(size, size_ - from);
  Buffer shared;
  if (size == 0) return shared;
  bool is_copied = false;
  for_each_piece(from, 1, [&](const std::byte* begin, std::size_t, const Segment& segment) {
    const auto here = static_cast<std::size_t>(segment.end - begin);
    is_copied = is_copied_out(*segment.block, here, size);
  });
  if (is_copied) return copy_out(from, size);
  for_each_piece(from, size, [&](std::byte* begin, std::size_t count, const Segment& segment) {
    shared.push_back_part(segment, begin, count);
  });
  return shared;
}

}  // namespace tambour
