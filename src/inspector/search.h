// Searching, sorting and dividing the rows of a list.
//
// A list may have 100,000 rows, so nothing is done with all of them in one iteration of the loop,
// not even destroying them: a task adds them one after the other, in slices of its time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/loop/event_loop.h>
#include <tambour/task/sleep.h>
#include <tambour/task/task.h>

#include "loop/core.h"

namespace tambour::inspector {

/// A part of a list that a client has chosen.
struct ListQuery {
  std::string text{};  ///< That a row must contain, in any column. Case is ignored in ASCII.
  std::string sort{};  ///< The name of a column.
  bool is_descending = false;
  std::size_t offset = 0;
  std::size_t limit = 100;
};

/// Divides the work of a task into slices, between which its loop runs other callbacks. Thread:
/// that of the loop.
class Slices {
 public:
  /// The first slice begins.
  explicit Slices(EventLoop& loop) noexcept
      : core_(tambour::detail::loop::core_of(loop)), began_ns_(core_.clock_ns()) {}

  /// Called after each of several units of work, of some microseconds each. Returns true if the
  /// task should await next().
  [[nodiscard]] bool is_over() noexcept {
    constexpr std::size_t units_of_reading = 8;  // Of the clock.
    constexpr std::size_t units_of_slice = 64;   // Of simulations, whose time stands still.
    constexpr std::int64_t slice_ns = 250'000;
    ++units_;
    return units_ % units_of_reading == 0 &&
           (units_ >= units_of_slice || core_.clock_ns() - began_ns_ >= slice_ns);
  }
  /// Ends a slice, and begins the next one in the next iteration. Fails if the task is cancelled.
  [[nodiscard]] Task<Result<>> next() {
    const Result<> resumed = co_await sleep_for(Duration::zero());
    units_ = 0;
    began_ns_ = core_.clock_ns();
    co_return resumed;
  }

 private:
  tambour::detail::loop::Core& core_;
  std::int64_t began_ns_;
  std::size_t units_ = 0;
};

/// Ignores case in ASCII.
[[nodiscard]] inline bool contains(std::string_view text, std::string_view part) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
  return !std::ranges::search(text, part, {}, lower, lower).empty() || part.empty();
}

/// Selects the rows of one page: keeps the first `offset` + `limit` of those that were added, so
/// that each takes logarithmic time.
template <class Row>
class PageSelector {
 public:
  /// True if the first row comes before the second one; no two rows are equal.
  using IsBefore = std::function<bool(const Row&, const Row&)>;

  PageSelector(std::size_t offset, std::size_t limit, IsBefore is_before)
      : offset_(offset), limit_(limit), is_before_(std::move(is_before)) {}

  /// Throws std::bad_alloc.
  void add(Row row) {
    ++added_;
    if (kept_.size() == offset_ + limit_) {
      // The last one of those that are kept is at the front.
      if (kept_.empty() || !is_before_(row, *kept_.front())) return;
      std::pop_heap(kept_.begin(), kept_.end(), order());
      *kept_.back() = std::move(row);
    } else {
      kept_.push_back(std::make_unique<Row>(std::move(row)));
    }
    std::push_heap(kept_.begin(), kept_.end(), order());
  }
  /// Rows of the page or not.
  [[nodiscard]] std::size_t added() const noexcept { return added_; }

  /// The rows of the page that are left.
  [[nodiscard]] std::size_t page_size() const noexcept {
    return kept_.size() - std::min(kept_.size(), offset_);
  }
  /// Moves the last row of the page to the end of `page`. Throws std::bad_alloc.
  void take_last(std::vector<Row>& page) {
    std::pop_heap(kept_.begin(), kept_.end(), order());
    page.push_back(std::move(*kept_.back()));
    kept_.pop_back();
  }
  /// Moves one of the rows that are kept to the end of `rows`, in no order. Returns false if there
  /// is none. Throws std::bad_alloc.
  bool move_row(std::vector<Row>& rows) {
    if (kept_.empty()) return false;
    rows.push_back(std::move(*kept_.back()));
    kept_.pop_back();
    return true;
  }
  /// Destroys one of the rows before the page. Returns false if there is none.
  bool drop_row() noexcept {
    if (kept_.empty()) return false;
    kept_.pop_back();
    return true;
  }

 private:
  [[nodiscard]] auto order() const noexcept {
    return [this](const auto& a, const auto& b) { return is_before_(*a, *b); };
  }

  const std::size_t offset_;
  const std::size_t limit_;
  const IsBefore is_before_;
  std::vector<std::unique_ptr<Row>> kept_;  ///< A heap.
  std::size_t added_ = 0;
};

/// Moves the rows of the page to `page`, and destroys the others, in slices. Throws std::bad_alloc.
template <class Row>
[[nodiscard]] Task<> finish_page(PageSelector<Row>& selector, std::vector<Row>& page,
                                 Slices& slices) {
  constexpr int rows_of_unit = 16;  // Destroying one takes less than 100 ns.
  page.reserve(selector.page_size());
  while (selector.page_size() != 0) {
    selector.take_last(page);
    if (!slices.is_over()) continue;
    const Result<> resumed = co_await slices.next();
    if (!resumed) co_return;
  }
  std::ranges::reverse(page);
  for (bool has_more = true; has_more;) {
    for (int i = 0; has_more && i < rows_of_unit; ++i) has_more = selector.drop_row();
    if (!slices.is_over()) continue;
    const Result<> resumed = co_await slices.next();
    if (!resumed) co_return;
  }
}

}  // namespace tambour::inspector
