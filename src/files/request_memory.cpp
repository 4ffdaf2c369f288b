// The memory of file requests: a list of free blocks for each thread.
//
// A request may outlive the task that awaits it, so it needs memory of its own. Programs with many
// operations in flight allocate and release the same blocks over and over.
#include <cstddef>
#include <new>
#include <utility>

#include "files/file_request.h"

namespace tambour::detail::files {
namespace {

// Sanitizers find the use of a request that has ended only if its memory is released, and tests of
// failing allocations expect one for each request.
#if defined(__has_feature)
#define TAMBOUR_FILES_HAS_FEATURE(feature) __has_feature(feature)
#else
#define TAMBOUR_FILES_HAS_FEATURE(feature) 0
#endif
#if defined(TAMBOUR_FAULTS) || defined(__SANITIZE_ADDRESS__) || \
    TAMBOUR_FILES_HAS_FEATURE(address_sanitizer)
constexpr std::size_t limit = 0;
#else
constexpr std::size_t limit = FileRequest::kept_max;
#endif
#undef TAMBOUR_FILES_HAS_FEATURE

struct Block {
  Block* next;
};

struct Kept {
  Block* first = nullptr;
  std::size_t count = 0;
  /// `limit` once the thread's Closer exists, which releases them; else 0.
  std::size_t max = 0;
};

// constinit: access needs no check for initialization.
[[gnu::tls_model("initial-exec")]] constinit thread_local Kept kept;

/// Releases the blocks when the thread ends. A request may end later, for example one of a loop
/// that is another thread_local object.
struct Closer {
  Closer() noexcept { kept.max = limit; }
  ~Closer() {
    kept.max = 0;
    while (kept.first != nullptr) ::operator delete(std::exchange(kept.first, kept.first->next));
    kept.count = 0;
  }
};

/// Called when the list is full, or when the thread has no Closer yet.
[[gnu::noinline]] void release_excess(void* memory) noexcept {
  static thread_local const Closer closer;
  if (kept.count < kept.max) {
    FileRequest::operator delete(memory);
  } else {
    ::operator delete(memory);
  }
}

}  // namespace

void* FileRequest::operator new(std::size_t size) {
  if (kept.first == nullptr) return ::operator new(size);
  --kept.count;
  return std::exchange(kept.first, kept.first->next);
}

void FileRequest::operator delete(void* memory) noexcept {
  if (kept.count == kept.max) return release_excess(memory);
  ++kept.count;
  kept.first = new (memory) Block{kept.first};
}

}  // namespace tambour::detail::files
