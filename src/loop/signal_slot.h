// Where a signal handler records a signal for a loop.
//
// A handler may run at any moment and on any thread, also while another thread destroys the loop.
// The memory of a slot is therefore never freed: slots stand in a list that only grows, and a slot
// that a loop has given back is reused by the next loop. The slot's eventfd is open only while a
// loop has the slot: before it is closed, give_back() takes it away from the handlers and waits
// for those that are writing to it. So a handler never writes to a descriptor that the program has
// opened since under the same number. The handler uses only lock-free atomics and system calls.
//
// A child between vfork(2) and execve(2) shares this memory but is another process: a handler that
// runs there changes nothing.
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
  /// Closes the eventfd. The handler stays installed for the signals that are still watched, and
  /// ignores them.
  void give_back() noexcept;

  /// Installs the handler if no other slot watches the signal; EINVAL. The handler blocks all other
  /// signals while it runs, and uses the thread's alternate stack if it has one (sigaltstack(2)).
  Result<> watch(int number) noexcept;
  /// Restores the former disposition if this was the last slot that watches the signal. Returns
  /// whether the signal was pending; it no longer is.
  bool unwatch(int number) noexcept;

  /// Readable when signals are pending.
  [[nodiscard]] int descriptor() const noexcept { return eventfd_; }
  [[nodiscard]] bool any_pending() const noexcept {
    return pending_.load(std::memory_order_relaxed) != 0;
  }
  /// Discards a pending signal. The descriptor may stay readable until take_pending().
  void forget_pending(int number) noexcept { pending_.fetch_and(~bit_of(number)); }
  /// The signals that have arrived since the last call, as bits; see bit_of().
  std::uint64_t take_pending() noexcept;

  /// In the child after fork(2): opens an eventfd of its own. descriptor() may change. If the
  /// former number means another file by now, that file stays open.
  Result<> reopen() noexcept;

  /// To be called before each wait. From then on, a child that runs its parent's loop without
  /// reopen() is woken for its signals, through the eventfd that it shares with its parent.
  void claim() noexcept {
    if (written_to_.load(std::memory_order_relaxed) < 0) [[unlikely]]
      claim_for_child();
  }

  /// The signal handler's work: records the signal in all slots that watch it. Async-signal-safe.
  static void raise(int number) noexcept;

  static constexpr int number_max = 64;
  static constexpr std::uint64_t bit_of(int number) noexcept {
    return std::uint64_t{1} << (number - 1);
  }

 private:
  SignalSlot() noexcept = default;
  static SignalSlot* find_free() noexcept;
  static void register_fork_handlers() noexcept;
  static void begin_child() noexcept;
  void claim_for_child() noexcept;
  void open(int eventfd) noexcept;
  void hide_from_handlers() noexcept;
  void close_eventfd() noexcept;
  [[nodiscard]] bool has_eventfd() const noexcept;
  void wake_loop() noexcept;

  std::atomic<std::uint64_t> watched_{0};
  std::atomic<std::uint64_t> pending_{0};
  std::atomic<pid_t> process_{0};    ///< In other processes the handler does nothing.
  std::atomic<int> written_to_{-1};  ///< What handlers write to. -1: they only record.
  std::atomic<int> writers_{0};      ///< Handlers that may be using `written_to_`.
  int eventfd_ = -1;
  dev_t device_ = 0;  ///< Of the eventfd, by which it is recognized.
  ino_t inode_ = 0;
  bool taken_ = false;          ///< Guarded by the mutex of the table.
  SignalSlot* next_ = nullptr;  ///< Does not change once the slot is in the list.
};

}  // namespace tambour::loop
