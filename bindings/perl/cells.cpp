// Allocates pages of cells.
#include "cells.h"

namespace tambour::perl {

void Cells::add_page() {
  auto* const page = new Page;
  page->next = std::exchange(pages_, page);
  for (std::size_t i = Page::cells; i-- > 0;) deallocate(page->memory + i * cell_size);
}

}  // namespace tambour::perl
