// Makes the bytes of a buffer writable, if no other buffer shares their block; frees the pool.
#include "bytes/buffer_memory.h"

#include "bytes/buffer_blocks.h"

namespace tambour::detail {

std::span<std::byte> BufferMemory::writable_front(Buffer& buffer) noexcept {
  Buffer::Segment* const first = buffer.first();
  if (first == nullptr || !first->block->writable()) return {};
  // The caller may write what a former search did not find.
  buffer.last_->searched = {};
  return {first->begin, first->end};
}

void BufferMemory::free_kept_blocks() noexcept {
  Buffer::Pool& pool = Buffer::Pool::mine;
  for (Buffer::Pool::FreeList& blocks : pool.blocks) blocks.drain();
  pool.segments.drain();
}

}  // namespace tambour::detail
