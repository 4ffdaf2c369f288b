// The descriptors of a loop of a drop-in, which an EventLoop watches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <tambour/base/priority.h>
#include <tambour/base/result.h>
#include <tambour/detail/guest_calls.h>
#include <tambour/loop/control.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>

#pragma GCC visibility push(default)

namespace tambour::adapters::detail {

/// Watches descriptors for the guest of a DropInHost, and keeps what has become ready until the
/// guest takes it.
///
/// Thread: the loop's. Watchers have the highest priority, so that all events are noted before the
/// guest runs.
class GuestDescriptors {
 public:
  explicit GuestDescriptors(EventLoop& loop) noexcept : loop_(loop) {}
  GuestDescriptors(const GuestDescriptors&) = delete;
  GuestDescriptors& operator=(const GuestDescriptors&) = delete;
  ~GuestDescriptors() = default;

  /// As HostCalls::watch(). Throws std::bad_alloc.
  int watch(int fd, Events events, Trigger trigger, tambour::detail::FileIdentity identity) {
    const auto index = static_cast<std::size_t>(fd);
    if (index >= watched_.size()) watched_.resize(index + 1);
    if (watched_[index] == nullptr) watched_[index] = std::make_unique<Watched>(*this, fd);
    Watched& watched = *watched_[index];
    if (events == Events::none) {
      watched.result = 0;
      watched.watcher.stop();
      return 0;
    }
    if (identity != tambour::detail::FileIdentity::same) watched.result = 0;
    if (identity == tambour::detail::FileIdentity::probably_new) {
      watched.watcher.set(fd, events, trigger);
    } else {
      watched.watcher.set(events, trigger);
    }
    const auto started = watched.watcher.start();
    if (identity == tambour::detail::FileIdentity::probably_same) revalidate_fd(loop_, fd);
    return started ? 0 : started.error().value();
  }

  /// Whether no descriptor was ever watched.
  [[nodiscard]] bool is_empty() const noexcept { return watched_.empty(); }
  /// Whether take_event() may have an event.
  [[nodiscard]] bool has_event() const noexcept { return first_ready_ != nullptr; }
  /// As HostCalls::take_event().
  bool take_event(int& fd, std::int32_t& result) noexcept {
    while (Watched* const watched = first_ready_) {
      first_ready_ = watched->next;
      if (first_ready_ == nullptr) last_ready_ = nullptr;
      watched->is_queued = false;
      fd = watched->watcher.fd();
      result = std::exchange(watched->result, 0);
      if (result != 0) return true;
    }
    return false;
  }
  /// Watches nothing any more, and drops all events.
  void clear() noexcept {
    first_ready_ = last_ready_ = nullptr;
    watched_.clear();
  }

 private:
  /// A descriptor that the guest watches or has watched.
  struct Watched {
    Watched(GuestDescriptors& all, int fd)
        : watcher(all.loop_, fd, Events::none,
                  [this, &all](Events events) { all.note(*this, events); }) {
      watcher.set_priority(priority_max);
    }
    FdWatcher watcher;
    Watched* next = nullptr;
    std::int32_t result = 0;  ///< Events, or a negated errno value; 0: none.
    bool is_queued = false;
  };

  void note(Watched& watched, Events events) noexcept {
    if (const Error error = watched.watcher.error()) {
      watched.result = -error.value();
    } else {
      watched.result |= static_cast<std::int32_t>(events);
    }
    if (std::exchange(watched.is_queued, true)) return;
    watched.next = nullptr;
    (last_ready_ == nullptr ? first_ready_ : last_ready_->next) = &watched;
    last_ready_ = &watched;
  }

  EventLoop& loop_;
  std::vector<std::unique_ptr<Watched>> watched_;  ///< By descriptor.
  Watched* first_ready_ = nullptr;
  Watched* last_ready_ = nullptr;
};

}  // namespace tambour::adapters::detail

#pragma GCC visibility pop
