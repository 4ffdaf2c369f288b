// The families of a registry.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/metrics/registry.h>

#include "metrics/family.h"

namespace tambour::metrics {

class Registry::State {
 public:
  /// Returns the family with this description, which it adds if there is none. Aborts if its name
  /// has another description.
  detail::Family& find(detail::Description description, std::string help, std::size_t series_max);
  /// `values` are those of the labels. Aborts if there is such a series.
  Registration add_function(detail::Description description, std::string help,
                            std::vector<std::string> values,
                            std::shared_ptr<detail::Registered> registered);

  /// The family with this number, in the order in which they were added; nullptr if there is none.
  [[nodiscard]] detail::Family* family(std::size_t index) const;

 private:
  detail::Family* find_name(std::string_view name) noexcept;
  detail::Family& add(std::unique_ptr<detail::Family> family);

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<detail::Family>> families_;
};

}  // namespace tambour::metrics
