// The cells of series, and the groups of threads.
#include "metrics/cells.h"

#include <bit>

namespace tambour::metrics::detail {

std::size_t group_of_thread() noexcept {
  static constinit std::atomic<std::size_t> threads{0};
  // The numbers begin with 1, so that the variable needs no initialization at run time.
  constinit thread_local std::size_t number = 0;
  if (number == 0) [[unlikely]]
    number = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return number % groups;
}

std::uint64_t sum_of(Cell* first, std::size_t index) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t group = 0; group < groups; ++group)
    sum += cell_of_group(first, group, index).load(std::memory_order_relaxed);
  return sum;
}

double double_sum_of(Cell* first, std::size_t index) noexcept {
  double sum = 0;
  for (std::size_t group = 0; group < groups; ++group)
    sum +=
        std::bit_cast<double>(cell_of_group(first, group, index).load(std::memory_order_relaxed));
  return sum;
}

void add_double(Cell& cell, double amount) noexcept {
  std::uint64_t bits = cell.load(std::memory_order_relaxed);
  while (!cell.compare_exchange_weak(
      bits, std::bit_cast<std::uint64_t>(std::bit_cast<double>(bits) + amount),
      std::memory_order_relaxed)) {
  }
}

Cell* CellBlocks::allocate(std::size_t count) {
  if (used_ + count > cells_max) {
    blocks_.push_back(std::make_unique<Block>());
    used_ = 0;
  }
  Cell* const first = &blocks_.back()->cells[used_];
  used_ += count;
  return first;
}

}  // namespace tambour::metrics::detail
