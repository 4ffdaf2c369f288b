// Registry: names, and the families that they stand for.
#include <tambour/metrics/registry.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/ascii.h"
#include "base/check.h"
#include "metrics/state.h"

namespace tambour::metrics {
namespace {

using detail::Description;
using detail::Kind;
using tambour::detail::base::is_digit;
using tambour::detail::base::is_letter;

constexpr std::span<const std::string_view> no_labels;
constexpr std::size_t bounds_max = 60;
static_assert(bounds_max + 2 <= detail::cells_max);

/// `colons` are for names of metrics only.
bool is_name(std::string_view text, bool colons) noexcept {
  if (text.empty() || is_digit(text[0])) return false;
  return std::ranges::all_of(text, [colons](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || (colons && c == ':');
  });
}

void check_label(const Description& description, const std::string& label) noexcept {
  const bool is_reserved =
      label.starts_with("__") || (description.kind == Kind::histogram && label == "le");
  if (is_name(label, false) && !is_reserved) return;
  detail::base::fail_check("metrics::Registry: \"%s\" is not a label that %s may have",
                           label.c_str(), description.name.c_str());
}

void check_labels(const Description& description) noexcept {
  const std::vector<std::string>& labels = description.labels;
  for (auto label = labels.begin(); label != labels.end(); ++label) {
    check_label(description, *label);
    if (std::find(labels.begin(), label, *label) != label)
      detail::base::fail_check("metrics::Registry: %s has the label \"%s\" twice",
                               description.name.c_str(), label->c_str());
  }
}

void check(const Description& description) noexcept {
  const char* const name = description.name.c_str();
  if (!is_name(description.name, true))
    detail::base::fail_check("metrics::Registry: \"%s\" is not a name of a metric", name);
  if (description.kind == Kind::counter && !description.name.ends_with("_total"))
    detail::base::fail_check("metrics::Registry: the name of the counter %s must end in _total",
                             name);
  check_labels(description);
  if (description.kind != Kind::histogram) return;
  const std::vector<double>& bounds = description.bounds;
  const bool is_ascending =
      std::ranges::adjacent_find(bounds, std::greater_equal<>()) == bounds.end();
  if (bounds.empty() || bounds.size() > bounds_max || !is_ascending ||
      !std::ranges::all_of(bounds, [](double bound) { return std::isfinite(bound); }))
    detail::base::fail_check(
        "metrics::Registry: the histogram %s must have 1 to %zu finite bounds in ascending order",
        name, bounds_max);
}

[[noreturn]] void fail_for_name(const std::string& name) noexcept {
  detail::base::fail_check("metrics::Registry: %s is registered already, with another meaning",
                           name.c_str());
}

Description describe_histogram(std::string name, std::vector<std::string> labels,
                               std::span<const double> bounds) {
  return {.name = std::move(name),
          .kind = Kind::histogram,
          .labels = std::move(labels),
          .bounds = {bounds.begin(), bounds.end()}};
}

/// The names and the values.
std::pair<std::vector<std::string>, std::vector<std::string>> split(Labels labels) {
  std::pair<std::vector<std::string>, std::vector<std::string>> parts;
  for (auto& [name, value] : labels) {
    parts.first.push_back(std::move(name));
    parts.second.push_back(std::move(value));
  }
  return parts;
}

std::shared_ptr<detail::Registered> computed_by(auto function) {
  return std::make_shared<detail::Registered>(std::move(function));
}

}  // namespace

detail::Family* Registry::State::find_name(std::string_view name) noexcept {
  const auto found = std::ranges::find(families_, name, [](const auto& family) {
    return std::string_view(family->description().name);
  });
  return found != families_.end() ? found->get() : nullptr;
}

detail::Family& Registry::State::add(std::unique_ptr<detail::Family> family) {
  return *families_.emplace_back(std::move(family));
}

detail::Family& Registry::State::find(Description description, std::string help,
                                      std::size_t series_max) {
  check(description);
  const std::lock_guard lock(mutex_);
  detail::Family* const found = find_name(description.name);
  if (found == nullptr)
    return add(std::make_unique<detail::Family>(std::move(description), std::move(help), series_max,
                                                false));
  if (found->description() != description || found->is_computed()) fail_for_name(description.name);
  return *found;
}

Registration Registry::State::add_function(Description description, std::string help,
                                           std::vector<std::string> values,
                                           std::shared_ptr<detail::Registered> registered) {
  check(description);
  const std::string name = description.name;
  const std::lock_guard lock(mutex_);
  detail::Family* found = find_name(name);
  if (found == nullptr) {
    found =
        &add(std::make_unique<detail::Family>(std::move(description), std::move(help), 0, true));
  } else if (!found->is_computed() || found->description() != description) {
    fail_for_name(name);
  }
  if (!found->add_function({.values = std::move(values), .function = registered}))
    fail_for_name(name);
  return Registration(std::move(registered));
}

detail::Family* Registry::State::family(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return index < families_.size() ? families_[index].get() : nullptr;
}

Registration::Registration(std::shared_ptr<detail::Registered> registered) noexcept
    : registered_(std::move(registered)) {}

Registration& Registration::operator=(Registration&& other) noexcept {
  Registration removed(std::exchange(registered_, std::exchange(other.registered_, nullptr)));
  return *this;
}

Registration::~Registration() {
  if (registered_ != nullptr) registered_->remove();
}

Registry::Registry() : state_(std::make_unique<State>()) {}
Registry::~Registry() = default;

Counter Registry::counter(std::string name, std::string help) {
  return counters(std::move(name), std::move(help), {}).with(no_labels);
}

Gauge Registry::gauge(std::string name, std::string help) {
  return gauges(std::move(name), std::move(help), {}).with(no_labels);
}

Histogram Registry::histogram(std::string name, std::string help, std::span<const double> bounds) {
  return histograms(std::move(name), std::move(help), {}, bounds).with(no_labels);
}

Family<Counter> Registry::counters(std::string name, std::string help,
                                   std::vector<std::string> labels, LabelOptions options) {
  Description description{
      .name = std::move(name), .kind = Kind::counter, .labels = std::move(labels)};
  return Family<Counter>(state_->find(std::move(description), std::move(help), options.series_max));
}

Family<Gauge> Registry::gauges(std::string name, std::string help, std::vector<std::string> labels,
                               LabelOptions options) {
  Description description{
      .name = std::move(name), .kind = Kind::gauge, .labels = std::move(labels)};
  return Family<Gauge>(state_->find(std::move(description), std::move(help), options.series_max));
}

Family<Histogram> Registry::histograms(std::string name, std::string help,
                                       std::vector<std::string> labels,
                                       std::span<const double> bounds, LabelOptions options) {
  Description description = describe_histogram(std::move(name), std::move(labels), bounds);
  return Family<Histogram>(
      state_->find(std::move(description), std::move(help), options.series_max));
}

Registration Registry::counter_function(std::string name, std::string help,
                                        std::function<double()> function) {
  return counter_function(std::move(name), std::move(help), {}, std::move(function));
}

Registration Registry::gauge_function(std::string name, std::string help,
                                      std::function<double()> function) {
  return gauge_function(std::move(name), std::move(help), {}, std::move(function));
}

Registration Registry::counter_function(std::string name, std::string help, Labels labels,
                                        std::function<double()> function) {
  auto [names, values] = split(std::move(labels));
  return state_->add_function(
      {.name = std::move(name), .kind = Kind::counter, .labels = std::move(names)}, std::move(help),
      std::move(values), computed_by(std::move(function)));
}

Registration Registry::gauge_function(std::string name, std::string help, Labels labels,
                                      std::function<double()> function) {
  auto [names, values] = split(std::move(labels));
  return state_->add_function(
      {.name = std::move(name), .kind = Kind::gauge, .labels = std::move(names)}, std::move(help),
      std::move(values), computed_by(std::move(function)));
}

Registration Registry::histogram_function(std::string name, std::string help, Labels labels,
                                          std::span<const double> bounds,
                                          std::function<HistogramValue()> function) {
  auto [names, values] = split(std::move(labels));
  return state_->add_function(describe_histogram(std::move(name), std::move(names), bounds),
                              std::move(help), std::move(values), computed_by(std::move(function)));
}

template <>
Counter Family<Counter>::with(std::span<const std::string_view> values) const {
  return detail::Family::counter(family_->find(values));
}
template <>
Gauge Family<Gauge>::with(std::span<const std::string_view> values) const {
  return detail::Family::gauge(family_->find(values));
}
template <>
Histogram Family<Histogram>::with(std::span<const std::string_view> values) const {
  return family_->histogram(family_->find(values));
}

}  // namespace tambour::metrics
