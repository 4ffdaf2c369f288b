// Unpredictable numbers: ids of queries and cookies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <tambour/detail/namespaces.h>

#include "backend/backend.h"

namespace tambour::dns::detail {

/// From getrandom(2); in a simulation, from its seed.
class Entropy {
 public:
  explicit Entropy(backend::Backend& backend) noexcept : backend_(backend) {}

  [[nodiscard]] std::uint64_t next() noexcept;
  /// In a forked child: drops the numbers that the parent has, too.
  void reopen() noexcept { left_ = 0; }

 private:
  backend::Backend& backend_;
  std::array<std::uint64_t, 32> numbers_{};
  std::size_t left_ = 0;
};

}  // namespace tambour::dns::detail
