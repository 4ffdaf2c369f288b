// Searching, sorting and dividing the rows of a list.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tambour::inspector {

/// A part of a list that a client has chosen.
struct ListQuery {
  std::string text{};  ///< That a row must contain, in any column. Case is ignored in ASCII.
  std::string sort{};  ///< The name of a column.
  bool is_descending = false;
  std::size_t offset = 0;
  std::size_t limit = 100;
};

/// Ignores case in ASCII.
[[nodiscard]] inline bool contains(std::string_view text, std::string_view part) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
  return !std::ranges::search(text, part, {}, lower, lower).empty() || part.empty();
}

/// The rows of the chosen part, in the order of `is_before`, which compares pointers to rows. Takes
/// linear time. Throws std::bad_alloc.
template <class Row, class IsBefore>
[[nodiscard]] std::vector<const Row*> select_page(const std::vector<Row>& rows,
                                                  const ListQuery& query, IsBefore is_before) {
  std::vector<const Row*> chosen;
  chosen.reserve(rows.size());
  for (const Row& row : rows) chosen.push_back(&row);
  const auto begin =
      chosen.begin() + static_cast<std::ptrdiff_t>(std::min(query.offset, rows.size()));
  const auto end = begin + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(query.limit),
                                                    chosen.end() - begin);
  // Only the page is sorted, so that this takes linear time.
  if (begin != chosen.end()) std::nth_element(chosen.begin(), begin, chosen.end(), is_before);
  if (end != chosen.end()) std::nth_element(begin, end, chosen.end(), is_before);
  std::sort(begin, end, is_before);
  return {begin, end};
}

}  // namespace tambour::inspector
