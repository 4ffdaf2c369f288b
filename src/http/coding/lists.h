// Lists in field values, and qualities: RFC 9110, sections 5.6.1 and 12.4.2.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include <tambour/detail/namespaces.h>

#include "http_message/characters.h"

namespace tambour::http::detail::coding {

/// The elements of a comma-separated list, without white space around them. Empty elements are
/// ignored. Not for lists with quoted strings.
class ListElements {
 public:
  explicit ListElements(std::string_view list) noexcept : list_(list) {}

  class Iterator {
   public:
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    explicit Iterator(std::string_view rest) noexcept : rest_(rest) { next(); }
    std::string_view operator*() const noexcept { return element_; }
    Iterator& operator++() noexcept {
      next();
      return *this;
    }
    void operator++(int) noexcept { next(); }
    bool operator==(std::default_sentinel_t) const noexcept { return element_.empty(); }

   private:
    void next() noexcept {
      element_ = {};
      while (element_.empty() && !rest_.empty()) {
        const std::size_t comma = std::min(rest_.find(','), rest_.size());
        element_ = trim(rest_.substr(0, comma));
        rest_.remove_prefix(std::min(comma + 1, rest_.size()));
      }
    }

    std::string_view rest_;
    std::string_view element_;
  };
  [[nodiscard]] Iterator begin() const noexcept { return Iterator(list_); }
  [[nodiscard]] static std::default_sentinel_t end() noexcept { return {}; }

 private:
  std::string_view list_;
};

/// An element of a list of preferences: "gzip;q=0.5". Other parameters than "q" are ignored.
struct Preference {
  std::string_view name{};
  int quality = 1000;  ///< In thousandths.
};

/// No value if the quality is malformed.
[[nodiscard]] std::optional<Preference> parse_preference(std::string_view element) noexcept;

}  // namespace tambour::http::detail::coding
