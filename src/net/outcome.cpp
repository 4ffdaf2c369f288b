// The ranges of numbers that categories of errors have in outcomes.
#include "net/outcome.h"

#include <array>
#include <atomic>
#include <cstddef>

#include "base/check.h"
#include "base/failure.h"

namespace tambour::detail::net {
namespace {

using Category = std::atomic<const std::error_category*>;

/// That of range 1 is the first.
constinit std::array<Category, 7> categories{};

}  // namespace

std::int32_t error_range_of(const std::error_category& category) noexcept {
  std::int32_t range = error_range;
  for (Category& assigned : categories) {
    const std::error_category* known = nullptr;
    if (assigned.compare_exchange_strong(known, &category) || *known == category) return range;
    range += error_range;
  }
  base::check(false, "more than seven categories of errors have ranges in outcomes");
  return 0;
}

Error error_of(std::int32_t outcome) noexcept {
  const std::int32_t number = outcome < 0 ? -outcome : outcome;
  if (number < error_range) return system_error(number);
  const auto index = static_cast<std::size_t>(number / error_range - 1);
  return {number % error_range, *categories[index].load()};
}

}  // namespace tambour::detail::net
