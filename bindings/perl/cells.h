// A pool of fixed-size cells for the most frequent handles, without per-allocation overhead.
#pragma once

#include "perl_api.h"

namespace tambour::perl {

/// Allocates cells that each hold one FdWatcher or Timer. Deallocated cells are reused. Pages are
/// freed when the pool is destroyed, as with Perl's own memory for scalars.
class Cells {
 public:
  static constexpr std::size_t cell_size = std::max(sizeof(FdWatcher), sizeof(Timer));

  Cells() = default;
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;
  ~Cells() {
    while (pages_ != nullptr) delete std::exchange(pages_, pages_->next);
  }

  /// Throws std::bad_alloc.
  void* allocate() {
    if (free_ == nullptr) add_page();
    return std::exchange(free_, free_->next);
  }

  void deallocate(void* cell) noexcept {
    auto* const freed = static_cast<Free*>(cell);
    freed->next = free_;
    free_ = freed;
  }

 private:
  struct Free {
    Free* next;
  };
  struct Page {
    // Sized so that the allocation, including malloc's header, fills whole memory pages.
    static constexpr std::size_t cells = (8 * 4096 - 4 * sizeof(void*)) / cell_size;
    Page* next;
    alignas(alignof(std::max_align_t)) std::byte memory[cells * cell_size];
  };

  void add_page();

  Free* free_ = nullptr;
  Page* pages_ = nullptr;
};

}  // namespace tambour::perl
