// Makes the bytes of a buffer writable, if no other buffer shares their block; commits in place;
// finds parts of files; frees the pool.
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

Buffer BufferMemory::make_of_file(std::span<const std::byte> bytes, int fd,
                                  std::shared_ptr<const void> owner) {
  Buffer buffer;
  if (!bytes.empty()) buffer.push_back(Buffer::Segment::make_of(bytes, std::move(owner), fd));
  return buffer;
}

BufferMemory::FilePart BufferMemory::find_file_part(const Buffer& buffer, std::size_t size_min,
                                                    std::size_t count_max) noexcept {
  FilePart part;
  const Buffer::Segment* segment = buffer.first();
  for (; segment != nullptr && count_max > 0; segment = buffer.after(segment), --count_max) {
    const Buffer::Block& block = *segment->block;
    part.size = segment->size();
    if (block.kind == Buffer::Block::Kind::foreign && part.size >= size_min) {
      part.fd = static_cast<const Buffer::ForeignBlock&>(block).fd;
      part.offset = static_cast<std::uint64_t>(segment->begin - block.data);
      if (part.fd >= 0) return part;
    }
    part.bytes_before += part.size;
  }
  return {};
}

void BufferMemory::free_kept_blocks() noexcept {
  Buffer::Pool& pool = Buffer::Pool::mine;
  for (Buffer::Pool::FreeList& blocks : pool.blocks) blocks.drain();
  pool.segments.drain();
}

}  // namespace tambour::detail
