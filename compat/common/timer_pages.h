// The memory of a drop-in's timing wheel: pages of one cache line with pointers to six timers.
//
// A slot of the wheel is a list of pages, to whose end timers are added. A timer knows its place in
// a page, so removing it clears one pointer and touches no other timer; a page without timers is
// free at once. With a list of nodes, removing a timer would touch its two neighbours, which a
// million timers do not have in the cache.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace tambour::compat {

/// The pages of one table of timers. `Traits` are those of TimerTable. Positions are the numbers of
/// the words of all pages: a timer's position, and the position of a page, which is that of its
/// first word. 0 is no position.
template <class Timer, class Traits>
class TimerPages {
 public:
  static constexpr unsigned words = 8;  ///< In a page.
  static constexpr unsigned timers_per_page = 6;
  struct alignas(words * sizeof(std::uint64_t)) Page {
    unsigned position = 0;
    unsigned next = 0;         ///< In the slot, or among the free pages.
    unsigned previous = 0;     ///< In the slot.
    std::uint16_t slot = 0;    ///< The number of the slot.
    std::uint16_t active = 0;  ///< The number of timers.
    std::array<Timer*, timers_per_page> timers{};
  };
  static_assert(sizeof(Page) == words * sizeof(std::uint64_t));

  TimerPages() = default;
  TimerPages(const TimerPages&) = delete;
  TimerPages& operator=(const TimerPages&) = delete;
  ~TimerPages() {
    for (void* const memory : allocated_) {
      if (memory != nullptr) Traits::free(memory);
    }
  }

  /// No used page is without timers, so this number of pages suffices for as many timers.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  /// Doubles the capacity. Returns false if there is no memory. Pages do not move.
  [[nodiscard]] [[gnu::noinline]] bool grow() noexcept {
    const unsigned chunk = next_chunk_;
    const std::size_t bytes = (std::size_t{1} << chunk) * sizeof(std::uint64_t);
    std::size_t space = bytes + alignof(Page);
    void* start = Traits::allocate(space);
    if (start == nullptr) return false;
    allocated_[chunk] = start;
    chunks_[chunk] = static_cast<std::byte*>(std::align(alignof(Page), bytes, start, space));
    capacity_ += bytes / sizeof(Page);
    ++next_chunk_;
    return true;
  }

  /// The capacity must suffice.
  [[nodiscard]] Page& take() noexcept {
    unsigned position = free_;
    if (position != 0) {
      Page& page = at(position);
      free_ = page.next;
      return page;
    }
    position = end_;
    end_ += words;
    Page& page = *::new (word(position)) Page;
    page.position = position;
    return page;
  }
  /// The page must be in no slot, and without timers.
  void release(Page& page) noexcept {
    page.next = free_;
    free_ = page.position;
  }
  /// Call when no page is used: pages that are taken in a row are then adjacent in memory again.
  void release_all() noexcept {
    free_ = 0;
    end_ = first_position;
  }

  [[nodiscard]] Page& at(unsigned position) noexcept {
    return *static_cast<Page*>(static_cast<void*>(word(position)));
  }
  /// The pointer to the timer with this position.
  [[nodiscard]] Timer*& timer_at(unsigned position) noexcept {
    return *static_cast<Timer**>(static_cast<void*>(word(position)));
  }
  /// Returns whether timer_at() may be called.
  [[nodiscard]] bool is_position(unsigned position) const noexcept {
    return position >= first_position && position < end_ &&
           position % words >= words - timers_per_page;
  }
  static Page& page_of(Timer** pointer) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return *reinterpret_cast<Page*>(address - address % alignof(Page));
  }
  static unsigned position_of(const Page& page, Timer** pointer) noexcept {
    return page.position +
           static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(pointer) / sizeof *pointer) %
               words;
  }

  /// Calls f(timer) for each timer, in no order. `f` may remove timers.
  template <class F>
  void for_each(F&& f) {
    for (unsigned position = first_position; position < end_; position += words) {
      const auto timers = at(position).timers;
      for (unsigned i = 0; i < timers_per_page; ++i) {
        // Unless `f` has removed it.
        if (timers[i] != nullptr && at(position).timers[i] == timers[i]) f(*timers[i]);
      }
    }
  }

 private:
  // Pages must not move, so there are chunks of them, each twice as large as the one before. Chunk
  // k holds the positions whose highest bit is bit k.
  static constexpr unsigned first_chunk = 8;
  static constexpr unsigned first_position = 1U << first_chunk;
  [[nodiscard]] std::byte* word(unsigned position) noexcept {
    const auto chunk = static_cast<unsigned>(std::bit_width(position)) - 1;
    return chunks_[chunk] + (position ^ 1U << chunk) * sizeof(std::uint64_t);
  }

  unsigned end_ = first_position;  ///< The position of the first page that was never used.
  unsigned free_ = 0;              ///< The page that was released last.
  std::size_t capacity_ = 0;
  unsigned next_chunk_ = first_chunk;
  std::array<std::byte*, 31> chunks_{};
  std::array<void*, 31> allocated_{};
};

}  // namespace tambour::compat
