// Makes the bytes of a buffer writable, if no other buffer shares their block; commits in place;
// frees the pool.
#include "bytes/buffer_memory.h"

#include <utility>

#include "bytes/buffer_blocks.h"

namespace tambour::detail {
namespace {

/// With fewer bytes, a block of 4 KiB would take more memory than buffer.h promises.
constexpr std::size_t committed_bytes_min = 32;

}  // namespace

std::span<std::byte> BufferMemory::writable_front(Buffer& buffer) noexcept {
  Buffer::Segment* const first = buffer.first();
  if (first == nullptr || !first->block->writable()) return {};
  // The caller may write what a former search did not find.
  buffer.last_->searched = {};
  return {first->begin, first->end};
}

void BufferMemory::commit_in_place(Buffer& buffer, std::size_t size) noexcept {
  if (buffer.last_ != nullptr || buffer.prepared_ == nullptr || size < committed_bytes_min)
    return buffer.commit(size);
  Buffer::Segment* const segment = std::exchange(buffer.prepared_, nullptr);
  segment->end += size;
  segment->next = segment->previous = buffer.last_ = segment;
  buffer.size_ = size;
}

void BufferMemory::free_kept_blocks() noexcept {
  Buffer::Pool& pool = Buffer::Pool::mine;
  for (Buffer::Pool::FreeList& blocks : pool.blocks) blocks.drain();
  pool.segments.drain();
}

}  // namespace tambour::detail
