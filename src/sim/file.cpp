// File: queues the watches of a file when its readiness changes.
#include "sim/file.h"

#include <utility>

namespace tambour::sim::detail {

void File::changed() noexcept {
  for (const Entry& entry : watches_) entry.watcher->file_changed(*entry.watch);
}

void File::attach(Watcher& watcher, Watch& watch) {
  watches_.push_back({&watcher, &watch});
  watch.file = this;
}

void File::detach(Watch& watch) noexcept {
  std::erase_if(watches_, [&](const Entry& entry) { return entry.watch == &watch; });
  watch.file = nullptr;
}

bool File::drop_descriptor() noexcept {
  if (--descriptors_ > 0) return false;
  for (const Entry& entry : std::exchange(watches_, {})) entry.watch->file = nullptr;
  return true;
}

}  // namespace tambour::sim::detail
