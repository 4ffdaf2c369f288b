// Where a signal handler leaves word for a loop.
//
// A handler may run at any moment, on any thread, also while a loop is being destroyed on another.
// So what it touches is never freed and never closed: slots are made as loops need them, kept in a
// list that only grows, and given to another loop when one is done with them. Only lock-free
// atomics and write(2) are used from inside the handler.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include <tambour/result.h>

namespace tambour::loop {

/// One loop's share in the signals of the process. Everything but raise() belongs to the loop.
class SignalSlot {
 public:
  /// A slot that watches nothing. EMFILE, ENFILE, ENOMEM.
  static Result<SignalSlot*> take() noexcept;
  /// The handler stays installed for what is still watched, and does nothing from then on.
  void give_back() noexcept;

  /// Installs the handler where this is the first slot that watches the signal; EINVAL.
  Result<> watch(int number) noexcept;
  /// Restores the former disposition if this was the last slot that watches the signal. Returns
  /// whether the signal was pending; it no longer is.
  bool unwatch(int number) noexcept;

  /// Readable when signals are pending.
  [[nodiscard]] int descriptor() const noexcept { return eventfd_; }
  [[nodiscard]] bool any_pending() const noexcept {
    return pending_.load(std::memory_order_relaxed) != 0;
  }
  /// Discards one pending signal. The descriptor may stay readable until take_pending().
  void forget_pending(int number) noexcept { pending_.fetch_and(~bit_of(number)); }
  /// The signals that have come since, as bits; see bit_of().
  std::uint64_t take_pending() noexcept;

  /// In the child after fork(2): an eventfd of its own, under the same number.
  Result<> reopen() noexcept;

  /// To be called before each wait. A child that runs its parent's loop as it is, without
  /// reopen(), is from then on the one that is rung for, by the eventfd that both have.
  void claim() noexcept {
    if (process_.load(std::memory_order_relaxed) == nobody) [[unlikely]]
      claim_for_child();
  }

  /// The signal handler's work: leaves word in all slots that watch the signal. Async-signal-safe.
  static void raise(int number) noexcept;

  static constexpr int number_max = 64;
  static constexpr std::uint64_t bit_of(int number) noexcept {
    return std::uint64_t{1} << (number - 1);
  }

 private:
  explicit SignalSlot(int eventfd) noexcept;
  static void register_fork_handlers() noexcept;
  static void begin_child() noexcept;
  void claim_for_child() noexcept;
  Result<> own() noexcept;
  void ring() const noexcept;

  std::atomic<std::uint64_t> watched_{0};
  std::atomic<std::uint64_t> pending_{0};
  /// A forked child in which no loop has used the slot yet.
  static constexpr pid_t nobody = 0;

  std::atomic<pid_t> process_;  ///< Who is rung for: a child must not wake its parent.
  int eventfd_;
  bool inherited_ = false;      ///< The eventfd is the parent's too.
  bool taken_ = true;           ///< Guarded by the mutex of the table.
  SignalSlot* next_ = nullptr;  ///< Does not change once the slot is in the list.
};

}  // namespace tambour::loop
