// The series of a metric, and what updates them.
#include "metrics/family.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace tambour::metrics {

using detail::add_double;
using detail::cell_of_group;
using detail::cell_of_thread;

void Counter::add(std::uint64_t amount) noexcept {
  cell_of_thread(cells_).fetch_add(amount, std::memory_order_relaxed);
}

std::uint64_t Counter::value() const noexcept { return detail::sum_of(cells_); }

/// A gauge is set as a whole, so it uses the cell of one group.
void Gauge::set(double value) noexcept {
  cell_of_group(cells_, 0).store(std::bit_cast<std::uint64_t>(value), std::memory_order_relaxed);
}

void Gauge::add(double amount) noexcept { add_double(cell_of_group(cells_, 0), amount); }

double Gauge::value() const noexcept {
  return std::bit_cast<double>(cell_of_group(cells_, 0).load(std::memory_order_relaxed));
}

/// The cells of a histogram: the buckets, and the sum of the values.
void Histogram::observe(double value) noexcept {
  std::size_t bucket = 0;
  while (bucket < bounds_.size() && !(value <= bounds_[bucket])) ++bucket;
  Cell* const cells = &cell_of_thread(cells_);
  cells[bucket].fetch_add(1, std::memory_order_relaxed);
  add_double(cells[bounds_.size() + 1], value);
}

std::uint64_t Histogram::count(std::size_t bucket) const noexcept {
  return bucket <= bounds_.size() ? detail::sum_of(cells_, bucket) : 0;
}

double Histogram::sum() const noexcept { return detail::double_sum_of(cells_, bounds_.size() + 1); }

namespace detail {

std::string label_text(const std::vector<std::string>& names,
                       const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) text += ',';
    text.append(names[i]).append("=\"");
    append_escaped(text, values[i], true);
    text += '"';
  }
  return text;
}

void Registered::remove() noexcept {
  const std::lock_guard lock(mutex_);
  number_ = nullptr;
  buckets_ = nullptr;
  is_removed_.store(true, std::memory_order_relaxed);
}

bool Registered::compute(HistogramValue& value) {
  const std::lock_guard lock(mutex_);
  if (number_) {
    value.sum = number_();
    return true;
  }
  if (!buckets_) return false;
  value = buckets_();
  return true;
}

bool Family::add_function(Computed computed) {
  computed.labels = label_text(description_.labels, computed.values);
  const std::lock_guard lock(mutex_);
  computed.number = functions_added_;
  auto added = std::make_shared<const Computed>(std::move(computed));
  // An exposition in progress counts the functions that it has passed, so they keep their places.
  std::shared_ptr<const Computed>* removed = nullptr;
  for (std::shared_ptr<const Computed>& entry : functions_) {
    if (entry->function->is_removed()) {
      if (removed == nullptr) removed = &entry;
    } else if (entry->values == added->values) {
      return false;
    }
  }
  if (removed != nullptr) {
    *removed = std::move(added);
  } else {
    functions_.push_back(std::move(added));
  }
  ++functions_added_;
  return true;
}

std::uint64_t Family::functions_added() const {
  const std::lock_guard lock(mutex_);
  return functions_added_;
}

std::shared_ptr<const Computed> Family::computed(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return index < functions_.size() ? functions_[index] : nullptr;
}

const Series& Family::find(std::span<const std::string_view> values) {
  const std::size_t names = description_.labels.size();
  if (values.size() != names)
    base::fail_check("metrics::Family::with() called with %zu values for the %zu labels of %s",
                     values.size(), names, description_.name.c_str());
  std::vector<std::string> copies(values.begin(), values.end());
  const std::lock_guard lock(mutex_);
  if (const auto found = by_values_.find(copies); found != by_values_.end()) return *found->second;
  // The series of the other values is one more.
  if (!copies.empty() && series_.size() >= series_max_) {
    std::ranges::fill(copies, "(other)");
    if (const auto found = by_values_.find(copies); found != by_values_.end())
      return *found->second;
  }
  return add(std::move(copies));
}

const Series& Family::add(std::vector<std::string> values) {
  const bool is_histogram = description_.kind == Kind::histogram;
  Cell* const cells = cells_.allocate(is_histogram ? description_.bounds.size() + 2 : 1);
  std::string labels = label_text(description_.labels, values);
  auto added = std::make_unique<Series>(
      Series{.values = std::move(values), .cells = cells, .labels = std::move(labels)});
  // So that nothing has changed if there is no memory for the map.
  if (series_.size() == series_.capacity()) series_.reserve(2 * series_.size() + 1);
  by_values_.emplace(added->values, added.get());
  return *series_.emplace_back(std::move(added));
}

const Series* Family::series(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return index < series_.size() ? series_[index].get() : nullptr;
}

}  // namespace detail
}  // namespace tambour::metrics
