// Allocates and releases the chains of an evbuffer: blocks of memory of its own, memory of the
// caller, and parts of files.
#include "libevent/buffer/buffer_chain.h"

#include <bit>
#include <cstring>
#include <new>

#include "libevent/event/core.h"

namespace tambour::libevent {
namespace {

// With less, the header would be a large part of the allocation.
constexpr std::size_t allocation_min = 1024;
// Above, doubling would waste more memory than it saves allocations.
constexpr std::size_t doubling_max = std::size_t{64} * 1024;
constexpr std::size_t page = 4096;

std::size_t rounded(std::size_t bytes) noexcept {
  if (bytes <= allocation_min) return allocation_min;
  if (bytes <= doubling_max) return std::bit_ceil(bytes);
  return (bytes + page - 1) & ~(page - 1);
}

Chain* allocate(std::size_t bytes, Chain::Kind kind) noexcept {
  void* const memory = event_mm_malloc_(bytes);
  if (memory == nullptr) return nullptr;
  auto* const chain = new (memory) Chain{};
  chain->kind = kind;
  chain->references.store(1, std::memory_order_relaxed);
  return chain;
}

Chain* allocate_memory(std::size_t bytes) noexcept {
  Chain* const chain = allocate(bytes, Chain::Kind::memory);
  if (chain == nullptr) return nullptr;
  chain->data = reinterpret_cast<unsigned char*>(chain + 1);
  chain->capacity = bytes - sizeof(Chain);
  chain->writable = true;
  return chain;
}

void release(Chain& chain) noexcept {
  switch (chain.kind) {
    case Chain::Kind::memory:
      return;
    case Chain::Kind::reference: {
      const auto& reference = chain.extra<Chain::Reference>();
      if (reference.cleanup != nullptr)
        reference.cleanup(chain.data, chain.capacity, reference.argument);
      return;
    }
    case Chain::Kind::file:
      evbuffer_file_segment_free(chain.extra<Chain::FilePart>().segment);
      return;
    case Chain::Kind::view:
      drop(chain.extra<Chain*>());
      return;
  }
}

}  // namespace

void Chain::align() noexcept {
  std::memmove(data, bytes(), size);
  begin = 0;
}

Chain* make_chain(std::size_t capacity) noexcept {
  if (capacity > chain_size_max - sizeof(Chain) - page) return nullptr;
  return allocate_memory(rounded(capacity + sizeof(Chain)));
}

Chain* make_exact_chain(std::size_t capacity) noexcept {
  if (capacity > chain_size_max - sizeof(Chain)) return nullptr;
  return allocate_memory(capacity + sizeof(Chain));
}

Chain* make_foreign_chain(Chain::Kind kind, std::size_t extra) noexcept {
  Chain* const chain = allocate(sizeof(Chain) + extra, kind);
  if (chain != nullptr) std::memset(static_cast<void*>(chain + 1), 0, extra);
  return chain;
}

void drop(Chain* chain) noexcept {
  // The views of a chain may belong to buffers with other locks.
  if (chain->shared && chain->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (chain->kind != Chain::Kind::memory) [[unlikely]]
    release(*chain);
  event_mm_free_(chain);
}

void drop_all(Chain* chain) noexcept {
  while (chain != nullptr) {
    Chain* const next = chain->next;
    drop(chain);
    chain = next;
  }
}

}  // namespace tambour::libevent
