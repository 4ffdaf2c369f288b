// The loops that a collector or an inspector observes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/task.h>
#include <tambour/threads/completion.h>
#include <tambour/threads/loop_group.h>

#include "loop/core.h"
#include "loop/observation/call_times.h"
#include "loop/observation/monitor.h"

namespace tambour::inspector {

using LagHistogram = tambour::detail::loop::LagHistogram;
using Monitor = tambour::detail::loop::Monitor;

/// A loop of a group has a monitor after it has run the task that observe() posts.
class ObservedLoop {
 public:
  /// `question`: expires when the loop has answered, or never will.
  ObservedLoop(EventLoop& loop, std::string loop_name, std::weak_ptr<const void> question = {})
      : loop_(loop), name_(std::move(loop_name)), question_(std::move(question)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// May have been destroyed, unless the caller runs on its thread in a task that was posted to it.
  [[nodiscard]] EventLoop& loop() const noexcept { return loop_; }
  /// Called on the thread of the loop. Throws std::bad_alloc.
  void attach(bool measures = true) {
    auto monitor = tambour::detail::loop::core_of(loop_).monitor(measures);
    const std::lock_guard lock(mutex_);
    monitor_ = std::move(monitor);
  }
  /// Null if the loop has not answered yet.
  [[nodiscard]] std::shared_ptr<Monitor> monitor() const {
    const std::lock_guard lock(mutex_);
    return monitor_;
  }
  /// The time since the observation began, for a loop that has not answered yet: a callback that
  /// began before may block it. Otherwise zero.
  [[nodiscard]] Duration silence() const noexcept {
    return question_.expired() ? Duration::zero() : Clock::now() - observed_at_;
  }
  /// Returns false if the loop has not answered yet, or was destroyed. Throws like
  /// EventLoop::post().
  bool post(Callback<void()> function) const {
    const auto monitor = this->monitor();
    return monitor != nullptr && monitor->post(std::move(function));
  }

 private:
  EventLoop& loop_;
  const std::string name_;
  const std::weak_ptr<const void> question_;
  const TimePoint observed_at_ = Clock::now();
  mutable std::mutex mutex_;
  std::shared_ptr<Monitor> monitor_;
};

using ObservedLoops = std::vector<std::shared_ptr<ObservedLoop>>;

/// Called on the thread of the loop.
[[nodiscard]] inline std::shared_ptr<ObservedLoop> observe(EventLoop& loop, std::string name) {
  auto observed = std::make_shared<ObservedLoop>(loop, std::move(name));
  observed->attach();
  return observed;
}

/// True if one of `observed` is the loop, whose thread is the calling one.
[[nodiscard]] inline bool contains(const ObservedLoops& observed, EventLoop& loop) {
  // Not by the address, where a destroyed loop may have been before.
  const auto monitor = tambour::detail::loop::core_of(loop).monitor(false);
  return std::ranges::any_of(observed,
                             [&](const auto& entry) { return entry->monitor() == monitor; });
}

/// Called on any thread. Throws like EventLoop::post().
[[nodiscard]] inline ObservedLoops observe(LoopGroup& loops, const std::string& name) {
  ObservedLoops observed;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const auto question = std::make_shared<const int>();
    observed.push_back(
        std::make_shared<ObservedLoop>(loops[i], name + '/' + std::to_string(i), question));
    loops[i].post([loop = observed.back(), question] {
      loop->attach();
      // The remaining callbacks of this iteration are not timed: the loop has answered when they
      // have returned.
      try {
        loop->loop().post([question] {});
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      }
    });
  }
  return observed;
}

/// Posts `function(loop, end)`, which must not throw, to each loop and waits until all have run it
/// and destroyed their copies of `end`, or until `patience` is over. Functions of loops that answer
/// later still run: `function` is copied and must own what it uses. `Loop` has
/// ObservedLoop::post().
template <class Loop, class Function>
[[nodiscard]] Task<> run_on_each(std::vector<std::shared_ptr<Loop>> loops, Function function,
                                 Duration patience) {
  const auto initiate = [&](const Completion<>& done) {
    // The wait ends when the last copy of the counter is destroyed, also if a loop is destroyed
    // without running the function.
    struct Last {
      explicit Last(Completion<> completion) : done(std::move(completion)) {}
      Last(const Last&) = delete;
      Last& operator=(const Last&) = delete;
      ~Last() { done.complete(); }
      Completion<> done;
    };
    const auto last = std::make_shared<Last>(done);
    for (const auto& loop : loops) loop->post([loop, function, last] { function(loop, last); });
  };
  auto waiting = [](auto start) -> Task<Result<>> {
    co_return co_await from_callback<void>(start);
  };
  Task<Result<>> wait = waiting(initiate);
  static_cast<void>(co_await timeout(patience, std::move(wait)));
}

}  // namespace tambour::inspector
