// A timing wheel for timers in the program's memory, which have no room for links but an integer.
//
// It works as base::TimingWheel does and expires in the same order, but its slots are lists of
// pages (timer_pages.h). To arm and to remove a timer touch the timer and one page.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "base/timing_wheel.h"
#include "common/timer_pages.h"

namespace tambour::compat {

/// Timers in the order of their deadlines, then in the order in which they were armed. `Traits` are
/// those of TimerTable. Owns neither the timers nor the pages.
template <class Timer, class Traits>
class PagedWheel {
 public:
  using Pages = TimerPages<Timer, Traits>;

  explicit PagedWheel(Pages& pages) noexcept : pages_(pages) {}
  PagedWheel(const PagedWheel&) = delete;
  PagedWheel& operator=(const PagedWheel&) = delete;

  /// Puts a timer that is in no wheel behind those with the same deadline.
  void arm(Timer& timer, std::int64_t deadline) noexcept {
    if (deadline < bound_) {
      bound_ = deadline;
      earliest_ = &timer;
    }
    insert(timer, deadline);  // Last, so that the compiler needs no stack frame.
  }

  /// The timer must be in this wheel. Does not use its deadline, and leaves its position.
  void remove(Timer& timer) noexcept {
    if (&timer == earliest_) earliest_ = nullptr;
    Timer*& pointer = pages_.timer_at(static_cast<unsigned>(Traits::position(timer)));
    pointer = nullptr;
    Page& page = Pages::page_of(&pointer);
    if (--page.active == 0) close(page);
  }

  /// The earliest deadline. The wheel must not be empty. A lower bound if more than `search_max`
  /// timers share the earliest slot, were not armed in order, and the earliest was removed.
  [[nodiscard]] std::int64_t next() noexcept {
    if (earliest_ == nullptr) find_next();
    return bound_;
  }
  static constexpr int search_max = 32;

  /// Calls f(timer) for each timer whose deadline is at most `now`, in order. `f` must either
  /// remove the timer, or remove it and arm it with a deadline after `now`. `now` must not
  /// decrease.
  template <class F>
  void expire(std::int64_t now, F&& f) noexcept {
    if (now == end_of_time) --now;
    if (!is_empty(past)) expire_past(now, f);
    while (const Slot slot = first_slot()) {
      if (slot.begin > now) break;
      if (slot.end <= now && take_in_order(slot, now, f)) continue;
      calendar_.time = slot.begin;
      drain(slot.number, [this](Timer& timer) { insert(timer, Traits::deadline(timer)); });
    }
    if (calendar_.time < now) calendar_.time = now;
    if (bound_ > now) return;
    bound_ = now + 1;
    earliest_ = nullptr;
  }

  /// Call after the same amount was added to the deadlines of all timers.
  void rearm_all() noexcept {
    PagedWheel in_order(pages_);
    drain_all([&](Timer& timer) { in_order.append(past, timer); });
    bound_ = end_of_time;
    earliest_ = nullptr;
    in_order.drain(past, [this](Timer& timer) { arm(timer, Traits::deadline(timer)); });
  }

  /// Returns whether the position of a timer refers to it, and it is in the slot of its deadline.
  [[nodiscard]] bool contains(const Timer& timer) noexcept {
    const auto position = static_cast<unsigned>(Traits::position(timer));
    if (!pages_.is_position(position) || pages_.timer_at(position) != &timer) return false;
    const std::int64_t deadline = Traits::deadline(timer);
    const bool is_past = deadline < calendar_.time;
    return Pages::page_of(&pages_.timer_at(position)).slot ==
           (is_past ? past : calendar_.place_of(deadline).number());
  }

 private:
  using Page = typename Pages::Page;
  using WheelSlots = detail::base::WheelSlots;
  using Slot = WheelSlots::Slot;
  static constexpr std::int64_t end_of_time = std::numeric_limits<std::int64_t>::max();
  /// The slot of the timers that were armed with a deadline before the wheel's time.
  static constexpr unsigned past = WheelSlots::count;

  struct Tail {
    /// Where the next timer is stored. At the end of a page, a new page is needed: the address is
    /// then a multiple of the size of a page, and so is null, for a slot without pages.
    Timer** end = nullptr;
    std::int64_t latest = 0;  ///< The latest deadline since the slot was empty.
    [[nodiscard]] bool is_full() const noexcept {
      return reinterpret_cast<std::uintptr_t>(end) % alignof(Page) == 0;
    }
  };

  [[nodiscard]] bool is_empty(unsigned number) const noexcept { return firsts_[number] == 0; }
  [[nodiscard]] Slot first_slot() noexcept {
    return calendar_.first([this](unsigned number) { return is_empty(number); });
  }

  void insert(Timer& timer, std::int64_t deadline) noexcept {
    if (deadline < calendar_.time) [[unlikely]]
      return insert_past(timer, deadline);
    const WheelSlots::Place place = calendar_.place_of(deadline);
    Tail& tail = tails_[place.number()];
    if (tail.is_full()) [[unlikely]]
      return insert_in_new_page(timer, deadline);
    if (deadline < tail.latest) {
      calendar_.note_unsorted(place);
    } else {
      tail.latest = deadline;
    }
    store(tail, timer);
  }

  [[gnu::noinline]] void insert_in_new_page(Timer& timer, std::int64_t deadline) noexcept {
    const WheelSlots::Place place = calendar_.place_of(deadline);
    Tail& tail = tails_[place.number()];
    if (is_empty(place.number())) {
      calendar_.note_used(place);
      tail.latest = deadline;
    } else if (deadline < tail.latest) {
      calendar_.note_unsorted(place);
    } else {
      tail.latest = deadline;
    }
    append(place.number(), timer);
  }

  [[gnu::noinline]] void insert_past(Timer& timer, std::int64_t deadline) noexcept {
    Tail& tail = tails_[past];
    if (is_empty(past)) past_is_sorted_ = true;
    if (!is_empty(past) && deadline < tail.latest) {
      past_is_sorted_ = false;
    } else {
      tail.latest = deadline;
    }
    append(past, timer);
  }

  /// Puts a timer at the end of a slot.
  void append(unsigned number, Timer& timer) noexcept {
    Tail& tail = tails_[number];
    if (tail.is_full()) {
      Page& page = pages_.take();
      page.slot = static_cast<std::uint16_t>(number);
      page.active = 0;
      page.next = 0;
      page.previous = 0;
      if (is_empty(number)) {
        firsts_[number] = page.position;
      } else {
        Page& last = Pages::page_of(tail.end - 1);
        last.next = page.position;
        page.previous = last.position;
      }
      tail.end = page.timers.data();
    }
    store(tail, timer);
  }
  static void store(Tail& tail, Timer& timer) noexcept {
    Timer** const pointer = tail.end++;
    *pointer = &timer;
    Page& page = Pages::page_of(pointer);
    ++page.active;
    Traits::set_position(timer, static_cast<int>(Pages::position_of(page, pointer)));
  }

  /// Removes a page without timers from its slot.
  void close(Page& page) noexcept {
    if (page.next != 0) {
      pages_.at(page.next).previous = page.previous;
    } else {
      // All pages but the last one are full.
      tails_[page.slot].end = page.previous == 0 ? nullptr : pages_.at(page.previous).timers.end();
    }
    if (page.previous != 0) {
      pages_.at(page.previous).next = page.next;
    } else {
      firsts_[page.slot] = page.next;
    }
    pages_.release(page);
  }

  /// Each step waits for the memory of timers, so the next ones are loaded meanwhile.
  void prefetch_timers(unsigned position) noexcept {
    if (position == 0) return;
    for (Timer* const timer : pages_.at(position).timers) {
      if (timer != nullptr) Traits::prefetch(*timer);
    }
  }

  /// Calls f(timer) for each timer of a slot, in order, until `f` returns false. Returns whether
  /// there were no more. `f` may remove the timer.
  template <class F>
  bool walk(unsigned number, F&& f) noexcept {
    for (unsigned position = firsts_[number]; position != 0;) {
      const Page page = pages_.at(position);
      position = page.next;
      prefetch_timers(position);
      for (Timer* const timer : page.timers) {
        if (timer != nullptr && !f(*timer)) return false;
      }
    }
    return true;
  }

  /// Empties a slot and then calls f(timer) for each of its timers, in order; `f` may arm it.
  template <class F>
  void drain(unsigned number, F&& f) noexcept {
    unsigned position = firsts_[number];
    firsts_[number] = 0;
    tails_[number].end = nullptr;
    while (position != 0) {
      Page& page = pages_.at(position);
      const auto timers = page.timers;
      position = page.next;
      page.timers = {};
      pages_.release(page);  // So that `f` can take it, and the capacity suffices.
      prefetch_timers(position);
      for (Timer* const timer : timers) {
        if (timer != nullptr) f(*timer);
      }
    }
  }
  template <class F>
  void drain_all(F&& f) noexcept {
    drain(past, f);
    while (const Slot slot = first_slot()) drain(slot.number, f);
  }

  void find_next() noexcept {
    if (!is_empty(past)) return;  // Any bound of them is due.
    const Slot slot = first_slot();
    if (!slot) {
      bound_ = end_of_time;
      return;
    }
    int count = 0;
    Timer* earliest = nullptr;
    std::int64_t least = end_of_time;
    const bool is_exact = walk(slot.number, [&](Timer& timer) {
      if (++count > search_max) return false;
      const std::int64_t deadline = Traits::deadline(timer);
      if (earliest == nullptr || deadline < least) {
        earliest = &timer;
        least = deadline;
      }
      return !slot.is_sorted;
    });
    if (!is_exact && !slot.is_sorted) {
      bound_ = std::max(bound_, slot.begin);
      return;
    }
    bound_ = least;
    earliest_ = earliest;
  }

  /// Expires a timer of a slot that is due. If the program has changed the deadline meanwhile,
  /// which is not allowed, the timer may be due later.
  template <class F>
  void take(Timer& timer, std::int64_t now, F&& f) noexcept {
    const std::int64_t deadline = Traits::deadline(timer);
    if (deadline <= now) [[likely]]
      return f(timer);
    remove(timer);
    arm(timer, deadline);
  }

  template <class F>
  void expire_past(std::int64_t now, F&& f) noexcept {
    if (!past_is_sorted_) sort_past();
    walk(past, [&](Timer& timer) {
      take(timer, now, f);
      return true;
    });
  }

  [[gnu::noinline]] void sort_past() noexcept {
    // A second wheel, whose time is before these deadlines, sorts them.
    PagedWheel sorter(pages_);
    drain(past, [&](Timer& timer) { sorter.insert(timer, Traits::deadline(timer)); });
    sorter.expire(calendar_.time, [&](Timer& timer) {
      sorter.remove(timer);
      insert(timer, Traits::deadline(timer));
    });
    // The deadlines that the program has changed.
    sorter.drain_all([&](Timer& timer) { insert(timer, Traits::deadline(timer)); });
  }

  /// The timers of one slot in order.
  struct Sorted {
    static constexpr unsigned position_bits = 6;
    static constexpr unsigned max = 1U << position_bits;
    std::array<Timer*, max> timers;
    /// The offset in the slot, followed by the position in the slot, which makes the order stable.
    std::array<std::uint64_t, max> keys;
    unsigned count = 0;
  };
  /// Returns false, without any effect, if the timers are too many.
  bool sort(const Slot& slot, Sorted& sorted) noexcept {
    // The key has room for the offset in a slot of these levels.
    if (slot.level * WheelSlots::bits + Sorted::position_bits > 64) return false;
    const bool is_complete = walk(slot.number, [&](Timer& timer) {
      if (sorted.count == Sorted::max) return false;
      const auto offset = static_cast<std::uint64_t>(Traits::deadline(timer) - slot.begin);
      sorted.keys[sorted.count] = offset << Sorted::position_bits | sorted.count;
      sorted.timers[sorted.count++] = &timer;
      return true;
    });
    std::sort(sorted.keys.begin(), sorted.keys.begin() + sorted.count);
    return is_complete;
  }

  /// Expires the timers of a slot that is due, in order. Returns false, without any effect, if they
  /// are too many to be sorted at once.
  template <class F>
  bool take_in_order(const Slot& slot, std::int64_t now, F&& f) noexcept {
    if (slot.is_sorted) {
      walk(slot.number, [&](Timer& timer) {
        take(timer, now, f);
        return true;
      });
      return true;
    }
    Sorted sorted;
    if (!sort(slot, sorted)) return false;
    for (unsigned i = 0; i < sorted.count; ++i)
      take(*sorted.timers[sorted.keys[i] % Sorted::max], now, f);
    return true;
  }

  Pages& pages_;
  WheelSlots calendar_;               ///< Its time is at most every deadline, except in `past`.
  std::int64_t bound_ = end_of_time;  ///< At most every deadline.
  Timer* earliest_ = nullptr;         ///< A timer whose deadline is `bound_`; null: unknown.
  bool past_is_sorted_ = true;
  std::array<Tail, WheelSlots::count + 1> tails_{};
  std::array<unsigned, WheelSlots::count + 1> firsts_{};  ///< The positions of the first pages.
};

}  // namespace tambour::compat
