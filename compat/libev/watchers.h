// The active watchers of one simple type: prepare, check, fork, cleanup, async, and idle per
// priority. `ev_watcher::active` is the position, counting from 1; removing a watcher moves the
// last one to its position.
#pragma once

#include <ev.h>

#include "array.h"
#include "pending.h"

namespace tambour::libev {

template <class Watcher>
class Watchers {
 public:
  [[nodiscard]] int count() const noexcept { return items_.count; }
  Watcher* operator[](int index) const noexcept { return items_[index]; }

  /// Returns the value for `active`.
  int add(Watcher* watcher) noexcept {
    items_.need(items_.count + 1);
    items_[items_.count] = watcher;
    return ++items_.count;
  }

  void remove(const Watcher* watcher) noexcept {
    Watcher* const last = items_[--items_.count];
    items_[watcher->active - 1] = last;
    last->active = watcher->active;
  }

  void feed_all(Pendings& pendings, int events) noexcept {
    for (int i = 0; i < items_.count; ++i) pendings.feed(base_of(items_[i]), events);
  }

 private:
  Array<Watcher*> items_;
};

}  // namespace tambour::libev
