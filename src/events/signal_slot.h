// Where a signal handler records a signal for a loop.
//
// A handler may run at any moment and on any thread, even while another thread destroys the loop.
// The memory of a slot is therefore never freed: slots form a list that only grows, and a slot that
// a loop has given back is reused by the next loop. The slot's eventfd is open only while a loop
// owns the slot: before closing it, release() hides it from the handlers and waits for those that
// are writing to it. So a handler never writes to an unrelated descriptor that reuses the number.
// The handler uses only lock-free atomics and system calls.
//
// A child between vfork(2) and execve(2) shares this memory but is another process: a handler that
// runs there changes nothing.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tambour/base/result.h>

#include "base/eventfd_identity.h"

namespace tambour::detail::events {

/// One loop's registration for signals. All functions except raise() must be called by the loop.
class SignalSlot {
 public:
  /// Returns a slot that watches nothing. Fails with EMFILE, ENFILE or ENOMEM.
  static Result<SignalSlot*> acquire() noexcept;
  /// Closes the eventfd. The handler stays installed for the signals that are still watched and
  /// ignores them.
  void release() noexcept;

  /// Installs the handler if no other slot watches the signal. Fails with EINVAL. The handler
  /// blocks all other signals while it runs, and uses the thread's alternate stack if it has one
  /// (sigaltstack(2)).
  Result<> watch(int number) noexcept;
  /// Restores the former disposition if this was the last slot that watches the signal. Returns
  /// true if the signal was pending, and discards it.
  bool unwatch(int number) noexcept;

  /// Readable when signals are pending.
  [[nodiscard]] int fd() const noexcept { return eventfd_; }
  [[nodiscard]] bool any_pending() const noexcept {
    return pending_.load(std::memory_order_relaxed) != 0;
  }
  /// Discards a pending signal. The descriptor may stay readable until take_pending().
  void clear_pending(int number) noexcept { pending_.fetch_and(~bit_of(number)); }
  /// The signals that have arrived since the last call, as bits; see bit_of().
  std::uint64_t take_pending() noexcept;

  /// How often the handler ran for a signal since the last call. Call after take_pending().
  std::uint32_t take_count(int number) noexcept {
    return counts_[static_cast<std::size_t>(number)].exchange(0);
  }

  /// In the child after fork(2), before any descriptor is opened there: gives up the eventfd if
  /// other code has closed it. fd() is -1 then, until reopen().
  void disown_if_lost() noexcept {
    if (!has_eventfd()) eventfd_ = -1;
  }
  /// In the child after fork(2): opens a new eventfd. fd() may change. If the former number
  /// now refers to another file, that file stays open.
  Result<> reopen() noexcept;

  /// Call before each wait. Afterwards, a child that runs its parent's loop without reopen() is
  /// woken for its own signals through the eventfd that it shares with its parent.
  void claim() noexcept {
    if (written_to_.load(std::memory_order_relaxed) < 0) [[unlikely]]
      claim_for_child();
  }

  /// Called by the signal handler: records the signal in all slots that watch it.
  /// Async-signal-safe.
  static void raise(int number) noexcept;

  static constexpr int number_max = 64;
  static constexpr std::uint64_t bit_of(int number) noexcept {
    return std::uint64_t{1} << (number - 1);
  }

 private:
  SignalSlot() noexcept = default;
  static SignalSlot* find_free() noexcept;
  void discard_all() noexcept {
    pending_.store(0);
    for (auto& count : counts_) count.store(0);
  }
  static void register_fork_handlers() noexcept;
  static void begin_child() noexcept;
  void claim_for_child() noexcept;
  void open(int eventfd) noexcept;
  void hide_from_handlers() noexcept;
  void close_eventfd() noexcept;
  [[nodiscard]] bool has_eventfd() const noexcept;
  void wake_if_pending() noexcept;
  void wake_loop() noexcept;

  std::atomic<std::uint64_t> watched_{0};
  std::atomic<std::uint64_t> pending_{0};
  std::array<std::atomic<std::uint32_t>, number_max + 1> counts_{};
  std::atomic<pid_t> process_{0};    ///< The handler does nothing in other processes.
  std::atomic<int> written_to_{-1};  ///< The descriptor handlers write to; -1: record only.
  std::atomic<int> writers_{0};      ///< Handlers that may be using `written_to_`.
  int eventfd_ = -1;
  base::EventfdIdentity identity_;
  bool taken_ = false;          ///< Guarded by the mutex of the table.
  SignalSlot* next_ = nullptr;  ///< Constant once the slot is in the list.
};

}  // namespace tambour::detail::events
