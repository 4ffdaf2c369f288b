// Memory for the handles that programs have many of: cells of one size, without a header each.
#pragma once

#include "perl_api.h"

namespace tambour::perl {

/// Hands out cells for an FdWatcher or a Timer each. What is given back is handed out again; pages
/// are kept until the end, as Perl keeps the pages of its scalars.
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
  void* take() {
    if (free_ == nullptr) add_page();
    return std::exchange(free_, free_->next);
  }

  void give_back(void* cell) noexcept {
    auto* const freed = static_cast<Free*>(cell);
    freed->next = free_;
    free_ = freed;
  }

 private:
  struct Free {
    Free* next;
  };
  struct Page {
    // One allocation of the C library's, header included, fills whole pages.
    static constexpr std::size_t cells = (8 * 4096 - 4 * sizeof(void*)) / cell_size;
    Page* next;
    alignas(alignof(std::max_align_t)) std::byte memory[cells * cell_size];
  };

  void add_page();

  Free* free_ = nullptr;
  Page* pages_ = nullptr;
};

}  // namespace tambour::perl
