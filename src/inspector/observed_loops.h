// The loops that a collector or an inspector observes.
#pragma once

#include <algorithm>
#include <cstddef>
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

/// A loop of a group has a monitor as soon as it has answered for the first time.
class ObservedLoop {
 public:
  ObservedLoop(EventLoop& loop, std::string loop_name) : loop_(loop), name_(std::move(loop_name)) {}

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
  /// How long a loop without a monitor has not answered: a callback that began before the loop was
  /// observed may block it.
  [[nodiscard]] Duration silence() const noexcept { return Clock::now() - observed_at_; }
  /// Returns false if the loop has not answered yet, or was destroyed. Throws like
  /// EventLoop::post().
  bool post(Callback<void()> function) const {
    const auto monitor = this->monitor();
    return monitor != nullptr && monitor->post(std::move(function));
  }

 private:
  EventLoop& loop_;
  const std::string name_;
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
    observed.push_back(std::make_shared<ObservedLoop>(loops[i], name + '/' + std::to_string(i)));
    loops[i].post([loop = observed.back()] {
      static_cast<void>(tambour::detail::loop::core_of(loop->loop()).monitor(true));
      // The loop does not time the callbacks that are left in this iteration: it has answered when
      // they have ended.
      loop->loop().post([loop] { loop->attach(); });
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
