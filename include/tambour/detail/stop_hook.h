// The waits of tasks that end early when their tasks are asked to stop. Not part of the public
// interface: it is visible only because a TaskContext and some awaitables contain it.
//
// A std::stop_callback takes 56 bytes and several atomic operations per wait. All waits of one
// context share one instead, which is on the thread of the loop, like everything else here.
#pragma once

#include <optional>
#include <stop_token>
#include <utility>

#include <tambour/detail/intrusive_list.h>

#pragma GCC visibility push(default)

namespace tambour::detail {

/// Cancelling a wait may destroy the owner of `source`.
inline void request_stop_of(const std::stop_source& source) noexcept {
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): keeps the state.
  const std::stop_source copy(source);
  copy.request_stop();
}

/// A wait in the list of a context. Destroying it removes it.
class StopHook : private HlistHook<StopHook> {
 public:
  using Cancel = void (*)(StopHook&) noexcept;

  StopHook(const StopHook&) = delete;
  StopHook& operator=(const StopHook&) = delete;

  /// From now on, stop requests have no effect.
  void ignore_stop() noexcept {
    if (listed()) unlist();
  }

 protected:
  /// `cancel` is called at most once for each listing. It must not resume a task.
  explicit StopHook(Cancel cancel) noexcept : cancel_(cancel) {}
  ~StopHook() { ignore_stop(); }

 private:
  friend class HlistHook<StopHook>;
  friend class Hlist<StopHook>;
  friend class StopHooks;

  Cancel cancel_;
};

/// The waits of the tasks with one TaskContext, most recent first. Copies are empty.
class StopHooks {
 public:
  StopHooks() = default;
  StopHooks(const StopHooks& /*other*/) noexcept {}
  StopHooks& operator=(const StopHooks& /*other*/) noexcept { return *this; }
  ~StopHooks() = default;

  /// Adds a wait, which is cancelled when a stop is requested; at once, if it has been already.
  /// `stop` must be the same token at each call.
  void add(StopHook& hook, const std::stop_token& stop) noexcept {
    if (stop.stop_requested()) return hook.cancel_(hook);
    hooks_.push_front(hook);
    if (!callback_) callback_.emplace(stop, CancelAll{*this});
  }

 private:
  struct CancelAll {
    StopHooks& self;
    void operator()() const noexcept {
      // Cancelling a wait may destroy the context. Each wait leaves the list by itself.
      Hlist<StopHook> hooks(std::move(self.hooks_));  // NOLINT(misc-const-correctness): see above.
      while (StopHook* const hook = hooks.front()) {
        hook->unlist();
        hook->cancel_(*hook);
      }
    }
  };

  Hlist<StopHook> hooks_;
  std::optional<std::stop_callback<CancelAll>> callback_;
};

}  // namespace tambour::detail

#pragma GCC visibility pop
