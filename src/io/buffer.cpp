#include <tambour/buffer.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/check.h"
#include "base/failure.h"
#include "io/buffer_blocks.h"
#include "io/read_size.h"

namespace tambour {

namespace {

// Separate functions, so that the callers save no registers for them.
[[noreturn, gnu::cold, gnu::noinline]] void fail_commit(std::size_t size,
                                                        std::size_t room) noexcept {
  base::fail_check(
      "Buffer::commit(%zu): prepare() returned %zu bytes; call prepare() before each commit() "
      "and commit no more than the size of the span that it returned",
      size, room);
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_consume(std::size_t size,
                                                         std::size_t held) noexcept {
  base::fail_check("Buffer::consume(%zu): the buffer holds %zu bytes; consume at most size()", size,
                   held);
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
                                          std::shared_ptr<const void> owner) {
  // Never written through: writable() is false for foreign blocks.
  auto* const data = const_cast<std::byte*>(bytes.data());  // NOLINT: see above.
  auto* const block = new Block{.capacity = bytes.size(),
                                .data = data,
                                .kind = Block::Kind::foreign,
                                .owner = std::move(owner)};
  block->own.end = block->end();
  return &block->own;
}

Buffer::Segment* Buffer::Segment::slice(std::byte* from, std::byte* to) const {
  void* const memory = Pool::mine.segments.take();
  block->owners.fetch_add(1, std::memory_order_relaxed);
  return new (memory) Segment{.next = nullptr, .block = block, .begin = from, .end = to};
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
    segment->next = last_ = segment;
  } else {
    segment->next = std::exchange(last_->next, segment);
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
  }
  lose_front(segment->size());
  return segment;
}

void Buffer::lose_front(std::size_t size) noexcept {
  size_ -= size;
  if (last_ == nullptr) return;
  auto& searched = last_->searched;
  searched.size = searched.size > size ? searched.size - size : 0;
}

void Buffer::clear() noexcept {
  while (last_ != nullptr) Segment::drop(pop_front());
  commit(0);
}

std::size_t Buffer::room_behind() const noexcept {
  return last_ != nullptr ? last_->room_behind() : 0;
}

std::span<std::byte> Buffer::prepare(std::size_t size) {
  check_sum(size_, size);
  size = std::max<std::size_t>(size, 1);
  if (prepared_ == nullptr && room_behind() >= size) return {last_->end, room_behind()};
  if (prepared_ != nullptr && prepared_->room_behind() < size) commit(0);
  if (prepared_ == nullptr) prepared_ = Segment::make(size);
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
  if (last_ != nullptr && size <= io::tiny_block_bytes && size <= room_behind()) {
    // A short read into a large block: one block for each such read would take many times the
    // memory of what the peer has sent.
    std::memcpy(last_->end, prepared_->begin, size);
    last_->end += size;
    size_ += size;
    return commit(0);
  }
  prepared_->end += size;
  push_back(std::exchange(prepared_, nullptr));
}

void Buffer::append(std::span<const std::byte> bytes) {
  check_sum(size_, bytes.size());
  commit(0);
  const std::size_t in_last = std::min(room_behind(), bytes.size());
  Segment* more = nullptr;
  if (in_last < bytes.size()) {
    // Blocks grow with the buffer, so that a long message received in short pieces occupies few
    // blocks.
    const std::size_t growth = std::min(size_, io::large_block_bytes);
    more = Segment::make(std::max(bytes.size() - in_last, growth));
  }
  if (in_last > 0) {
    std::memcpy(last_->end, bytes.data(), in_last);
    commit(in_last);
  }
  if (more == nullptr) return;
  const auto rest = bytes.subspan(in_last);
  std::memcpy(more->begin, rest.data(), rest.size());
  more->end += rest.size();
  push_back(more);
}

void Buffer::append(Buffer&& other) {
  if (&other == this || other.empty()) return;
  check_sum(size_, other.size_);
  commit(0);
  // Swapping the `next` pointers of the two last segments joins the two circular lists.
  if (last_ != nullptr) {
    std::swap(last_->next, other.last_->next);
    other.last_->searched = last_->searched;
  }
  last_ = std::exchange(other.last_, nullptr);
  size_ += std::exchange(other.size_, 0);
}

void Buffer::append_shared(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (bytes.empty()) return;
  check_sum(size_, bytes.size());
  commit(0);
  push_back(Segment::make_of(bytes, std::move(owner)));
}

void Buffer::prepend(std::span<const std::byte> bytes) {
  check_sum(size_, bytes.size());
  if (bytes.empty()) return;
  if (last_ == nullptr || first()->room_before() < bytes.size()) {
    Segment* const segment = Segment::make(bytes.size());
    // At the end of the block, so that later prepend() calls find space before it.
    segment->begin = segment->end = segment->block->end();
    push_front(segment);
  }
  std::byte*& begin = first()->begin;
  begin -= bytes.size();
  size_ += bytes.size();
  last_->searched = {};
  // `bytes` may be part of the same block, but do not overlap the target.
  std::memcpy(begin, bytes.data(), bytes.size());
}

void Buffer::prepend(Buffer&& other) {
  if (&other == this) return;
  other.append(std::move(*this));
  swap(other);
}

void Buffer::consume(std::size_t size) noexcept {
  if (size > size_) [[unlikely]]
    fail_consume(size, size_);
  while (size > 0) {
    Segment* const segment = first();
    if (size < segment->size()) {
      segment->begin += size;
      return lose_front(size);
    }
    size -= segment->size();
    Segment::drop(pop_front());
  }
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

Buffer Buffer::take(std::size_t size) {
  size = std::min(size, size_);
  Buffer taken;
  if (size > 0 && first()->block->is_copied_out(size)) {
    taken = copy_out(0, size);
    consume(size);
    return taken;
  }
  while (last_ != nullptr && size >= first()->size()) {
    size -= first()->size();
    taken.push_back(pop_front());
  }
  if (last_ == nullptr || size == 0) return taken;
  try {
    taken.push_back(first()->slice(first()->begin, first()->begin + size));
  } catch (...) {
    prepend(std::move(taken));
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

void Buffer::for_each_piece(std::size_t from, std::size_t size, auto&& each) const {
  for (const Segment* segment = first(); segment != nullptr && size > 0; segment = after(segment)) {
    const std::size_t skipped = std::min(from, segment->size());
    from -= skipped;
    const std::size_t here = std::min(size, segment->size() - skipped);
    if (here == 0) continue;
    each(segment->begin + skipped, here, *segment);
    size -= here;
  }
}

Buffer Buffer::slice(std::size_t from, std::size_t size) const {
  from = std::min(from, size_);
  size = std::min(size, size_ - from);
  Buffer shared;
  if (size == 0) return shared;
  const Block* block = nullptr;
  for_each_piece(from, 1,
                 [&](std::byte*, std::size_t, const Segment& segment) { block = segment.block; });
  if (block->is_copied_out(size)) return copy_out(from, size);
  for_each_piece(from, size, [&](std::byte* begin, std::size_t count, const Segment& segment) {
    shared.push_back(segment.slice(begin, begin + count));
  });
  return shared;
}

std::size_t Buffer::pieces(std::span<iovec> pieces, std::size_t size) const noexcept {
  std::size_t count = 0;
  for (const Segment* segment = first(); segment != nullptr; segment = after(segment)) {
    if (count == pieces.size() || size == 0) break;
    const std::size_t here = std::min(size, segment->size());
    pieces[count++] = {.iov_base = segment->begin, .iov_len = here};
    size -= here;
  }
  return count;
}

Result<std::size_t> Buffer::read_from(int fd, std::size_t size) {
  if (size == 0) return 0;
  // Bytes that do not fit into the current block are read onto the stack and appended, so that a
  // reader that receives little does not need a large block.
  std::array<std::byte, std::size_t{60} * 1024> overflow;
  const auto room = prepare(1);
  const std::size_t here = std::min(room.size(), size);
  const std::size_t beyond = std::min(overflow.size(), size - here);
  const std::array<iovec, 2> pieces{{{.iov_base = room.data(), .iov_len = here},
                                     {.iov_base = overflow.data(), .iov_len = beyond}}};
  const ssize_t got = ::readv(fd, pieces.data(), beyond > 0 ? 2 : 1);
  if (got < 0) {
    const Error error = system_error(errno);
    commit(0);
    return std::unexpected(error);
  }
  const auto count = static_cast<std::size_t>(got);
  commit(std::min(count, here));
  if (count > here) append(std::span(overflow).first(count - here));
  return count;
}

Result<std::size_t> Buffer::write_to(int fd) noexcept {
  std::array<iovec, 64> out;
  const std::size_t count = pieces(out);
  if (count == 0) return 0;
  const ssize_t written = ::writev(fd, out.data(), static_cast<int>(count));
  if (written < 0) return base::failure(errno);
  consume(static_cast<std::size_t>(written));
  return static_cast<std::size_t>(written);
}

}  // namespace tambour
