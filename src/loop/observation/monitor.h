// What other threads read of a loop, also while a callback blocks it.
//
// A loop has a monitor only if a collector or an inspector observes it; other loops publish
// nothing. The loop publishes its counters after each iteration, and times each callback. A reader
// therefore needs no answer of the loop.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <source_location>
#include <vector>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/loop/stats.h>

namespace tambour::detail::loop {

class Core;

/// What the callbacks of one place of the program have taken.
struct CallbackTimes {
  std::source_location place;
  std::uint64_t calls = 0;
  std::int64_t total_ns = 0;
  std::int64_t longest_ns = 0;
};

/// Ownership: shared by the core and the readers. Thread: the functions that begin with `note` are
/// called by the loop's thread, the others by any.
class Monitor {
 public:
  /// Upper bounds of the buckets of iterations by the time that their callbacks took.
  static constexpr std::array<std::int64_t, 12> lag_bounds_ns = {
      100'000,    500'000,     1'000'000,   5'000'000,     10'000'000,    25'000'000,
      50'000'000, 100'000'000, 250'000'000, 1'000'000'000, 5'000'000'000, 10'000'000'000};
  /// Callbacks that take longer are stalls.
  static constexpr std::int64_t stall_ns = 10'000'000;
  /// The places of the program that are counted separately. Callbacks of others are counted
  /// together.
  static constexpr std::size_t places_max = 256;

  struct Reading {
    /// After the last iteration that has run callbacks.
    LoopStats stats;
    std::uint64_t posted_waiting = 0;
    /// How many iterations are in each bucket of lag_bounds_ns, and in the one beyond.
    std::array<std::uint64_t, lag_bounds_ns.size() + 1> lags{};
    std::uint64_t stalls = 0;
    /// The place of the callback that runs now, and since when; 0 if the loop waits.
    std::source_location running;
    std::int64_t running_since_ns = 0;
  };

  explicit Monitor(Core& core) noexcept : core_(&core) {}
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  [[nodiscard]] Reading read() noexcept;
  /// The clock of the loop; 0 if it was destroyed.
  [[nodiscard]] std::int64_t clock_ns() noexcept;
  /// In no order. Throws std::bad_alloc.
  [[nodiscard]] std::vector<CallbackTimes> callbacks() const;
  /// Returns false if the loop was destroyed. Throws like EventLoop::post().
  bool post(Callback<void()> task,
            const std::source_location& posted_at = std::source_location::current());

  void note_call(std::int64_t began_ns) noexcept {
    call_began_ns_.store(began_ns, std::memory_order_relaxed);
  }
  void note_call_end(const std::source_location& place, std::int64_t took_ns) noexcept;
  void note_iteration(const LoopStats& stats, std::uint64_t posted_waiting,
                      std::int64_t took_ns) noexcept;
  /// The loop is being destroyed.
  void note_close() noexcept;

 private:
  /// Written by one thread.
  template <class T>
  class Value {
   public:
    void set(T value) noexcept { value_.store(value, std::memory_order_relaxed); }
    void add(T amount) noexcept { set(get() + amount); }
    [[nodiscard]] T get() const noexcept { return value_.load(std::memory_order_relaxed); }

   private:
    std::atomic<T> value_{};
  };
  struct Place {
    std::atomic<bool> is_used{false};
    std::source_location place;  ///< Not changed after `is_used` is set.
    Value<std::uint64_t> calls;
    Value<std::int64_t> total_ns;
    Value<std::int64_t> longest_ns;
  };

  [[nodiscard]] Place& place_of(const std::source_location& place) noexcept;

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
  Value<std::uint64_t> stalls_;
  std::array<Value<std::uint64_t>, lag_bounds_ns.size() + 1> lags_;
  std::atomic<std::int64_t> call_began_ns_{0};
  /// A hash table with open addressing; the last one is of all other places.
  std::array<Place, places_max + 1> places_;
};

}  // namespace tambour::detail::loop
