// The cells of series: one row for each group of threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <tambour/metrics/registry.h>

namespace tambour::metrics::detail {

inline constexpr std::size_t groups = 16;
/// Of a block: 512 bytes of cells for each group, so that no two groups share a cache line.
inline constexpr std::size_t cells_max = 64;

/// The number of the calling thread's group.
std::size_t group_of_thread() noexcept;

inline Cell& cell_of_group(Cell* first, std::size_t group, std::size_t index = 0) noexcept {
  return first[group * cells_max + index];
}
inline Cell& cell_of_thread(Cell* first, std::size_t index = 0) noexcept {
  return cell_of_group(first, group_of_thread(), index);
}

/// The sum over the groups.
std::uint64_t sum_of(Cell* first, std::size_t index = 0) noexcept;
/// The same for cells that hold a double.
double double_sum_of(Cell* first, std::size_t index) noexcept;
void add_double(Cell& cell, double amount) noexcept;

/// Owns cells, which never move.
class CellBlocks {
 public:
  /// Returns the first of `count` neighbouring cells, zero, in each group. At most cells_max.
  /// Throws std::bad_alloc.
  Cell* allocate(std::size_t count);

 private:
  struct alignas(64) Block {
    std::array<Cell, groups * cells_max> cells{};
  };
  std::vector<std::unique_ptr<Block>> blocks_;
  std::size_t used_ = cells_max;  ///< Of the last block.
};

}  // namespace tambour::metrics::detail
