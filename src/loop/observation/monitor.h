// What other threads read of a loop, also while a callback blocks it.
//
// A loop has a monitor only if a collector or an inspector observes it; other loops publish
// nothing. The loop publishes its counters after each iteration, and times each callback. A reader
// therefore needs no answer of the loop.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <source_location>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/loop/stats.h>

#include "loop/observation/call_times.h"

namespace tambour::detail::loop {

class Core;

/// Lines of the program are compared by the addresses of their file names: a header that several
/// files include may have several, which readers add up.
struct SourceLines {
  static bool is_same(const std::source_location& a, const std::source_location& b) noexcept {
    return a.line() == b.line() && a.file_name() == b.file_name();
  }
  static std::size_t hash(const std::source_location& place) noexcept {
    return std::hash<const void*>()(place.file_name()) / 16 + std::size_t{place.line()} * 31;
  }
};

/// Ownership: shared by the core and the readers. Thread: the functions that begin with `note` are
/// called by the loop's thread, the others by any.
class Monitor {
 public:
  using Callbacks = CallTimes<std::source_location, SourceLines>;

  /// After the last iteration that has run callbacks.
  struct Figures {
    LoopStats stats;
    std::uint64_t posted_waiting = 0;
    std::uint64_t stalls = 0;
  };
  struct Reading : Figures {
    LagHistogram::Counts lags{};
    /// The place of the callback that runs now, and since when; 0 if the loop waits.
    std::source_location running;
    std::int64_t running_since_ns = 0;
  };

  explicit Monitor(Core& core) noexcept : core_(&core) {}
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  [[nodiscard]] Reading read() noexcept;
  /// A part of read(), without its lock.
  [[nodiscard]] Figures figures() const noexcept;
  [[nodiscard]] LagHistogram::Counts lags() const noexcept { return lags_.read(); }
  [[nodiscard]] std::int64_t running_since_ns() const noexcept {
    return call_began_ns_.load(std::memory_order_relaxed);
  }
  /// The clock of the loop; 0 if it was destroyed.
  [[nodiscard]] std::int64_t clock_ns() noexcept;
  [[nodiscard]] const Callbacks& callbacks() const noexcept { return calls_; }
  /// Returns false if the loop was destroyed. Throws like EventLoop::post().
  bool post(Callback<void()> task,
            const std::source_location& posted_at = std::source_location::current());

  void note_call(std::int64_t began_ns) noexcept {
    call_began_ns_.store(began_ns, std::memory_order_relaxed);
  }
  void note_call_end(const std::source_location& place, std::int64_t took_ns) noexcept {
    calls_.note(place, took_ns);
  }
  void note_iteration(const LoopStats& stats, std::uint64_t posted_waiting,
                      std::int64_t took_ns) noexcept;
  /// The loop is being destroyed.
  void note_close() noexcept;

 private:
  template <class T>
  using Value = PublishedValue<T>;

  std::mutex mutex_;
  Core* core_;  ///< Null after note_close(). Guarded by the mutex.
  Value<std::uint64_t> iterations_;
  Value<std::uint64_t> waits_;
  Value<std::uint64_t> callbacks_;
  Value<std::uint64_t> posted_;
  Value<std::uint64_t> system_calls_;
  Value<std::uint64_t> wakeups_;
  Value<std::int64_t> wait_ns_;
  Value<std::int64_t> callback_ns_;
  Value<std::int64_t> lag_max_ns_;
  Value<std::size_t> timers_;
  Value<std::size_t> pending_;
  Value<std::int64_t> references_;
  Value<std::uint64_t> posted_waiting_;
  LagHistogram lags_;
  std::atomic<std::int64_t> call_began_ns_{0};
  Callbacks calls_;
};

}  // namespace tambour::detail::loop
