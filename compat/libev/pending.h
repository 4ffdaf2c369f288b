// The pending watchers, whose callbacks are to be invoked.
//
// As documented, they are invoked by priority, and within a priority latest first.
// `ev_watcher::pending` holds the position of a pending watcher, so that it can be removed in
// constant time: a watcher may be stopped and its memory freed while it is pending.
#pragma once

#include <ev.h>

#include "array.h"

namespace tambour::libev {

inline constexpr int priority_count = EV_MAXPRI - EV_MINPRI + 1;

/// A watcher of any type, converted as the macros of ev.h do.
template <class Watcher>
ev_watcher* base_of(Watcher* watcher) noexcept {
  return reinterpret_cast<ev_watcher*>(watcher);
}

class Pendings {
 public:
  Pendings() noexcept { ev_init(&placeholder_, &do_nothing); }

  /// Makes a watcher pending, or adds events to those that are already pending.
  void feed(ev_watcher* watcher, int events) noexcept {
    Row& row = rows_[watcher->priority - EV_MINPRI];
    current_ = priority_count - 1;
    if (watcher->pending != 0) {
      row[watcher->pending - 1].events |= events;
      return;
    }
    // Only this slow path needs a stack frame.
    if (row.full()) [[unlikely]]
      return make_room_and_feed(row, watcher, events);
    row[row.count] = {watcher, events};
    watcher->pending = ++row.count;
  }

  /// Removes a watcher. Returns its pending events, or 0 if it was not pending.
  int take_back(ev_watcher* watcher) noexcept {
    if (watcher->pending == 0) return 0;
    Item& item = rows_[watcher->priority - EV_MINPRI][watcher->pending - 1];
    item.watcher = &placeholder_;
    watcher->pending = 0;
    return item.events;
  }

  /// Invokes callbacks until nothing is pending, always in order of priority.
  void invoke(struct ev_loop* loop) {
    invoke_by([loop](ev_watcher* watcher, int events) { watcher->cb(loop, watcher, events); });
  }
  /// The same: calls call(watcher, events) instead of the callback.
  template <class Call>
  void invoke_by(Call call) {
    current_ = priority_count;
    do {
      --current_;
      // feed() resets `current_`, so that higher priorities come first.
      while (rows_[current_].count != 0) {
        Row& row = rows_[current_];
        const Item item = row[--row.count];
        item.watcher->pending = 0;
        call(item.watcher, item.events);
      }
    } while (current_ > 0);
  }

  /// For a pending watcher: returns whether it is invoked first within its priority.
  [[nodiscard]] bool is_last(const ev_watcher* watcher) const noexcept {
    return rows_[watcher->priority - EV_MINPRI].count == watcher->pending;
  }

  [[nodiscard]] bool any(int priority) const noexcept {
    return rows_[priority - EV_MINPRI].count != 0;
  }
  [[nodiscard]] unsigned count() const noexcept {
    int sum = 0;
    for (const Row& row : rows_) sum += row.count;
    return static_cast<unsigned>(sum);
  }

  /// Calls f(watcher, index, priority) for each pending watcher.
  template <class F>
  void for_each(F&& f) const {
    for (int priority = EV_MINPRI; priority <= EV_MAXPRI; ++priority) {
      const Row& row = rows_[priority - EV_MINPRI];
      for (int i = 0; i < row.count; ++i) {
        if (row[i].watcher != &placeholder_) f(*row[i].watcher, i, priority);
      }
    }
  }

 private:
  struct Item {
    ev_watcher* watcher;
    int events;
  };
  using Row = Array<Item>;

  [[gnu::noinline]] void make_room_and_feed(Row& row, ev_watcher* watcher, int events) noexcept {
    row.need(row.count + 1);
    feed(watcher, events);
  }

  static void do_nothing(struct ev_loop*, ev_watcher*, int) {}

  Row rows_[priority_count];
  int current_ = 0;
  ev_watcher placeholder_;  ///< Replaces a removed watcher.
};

}  // namespace tambour::libev
