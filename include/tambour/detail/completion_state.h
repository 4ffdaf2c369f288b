// The state that a Completion and the task that awaits it share. Not part of the public interface:
// it is visible only because it contains the result, whose type the program chooses.
#pragma once

#include <atomic>
#include <coroutine>
#include <exception>
#include <memory>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/detail/remote_call.h>

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

namespace detail {

/// Owned jointly by the awaiting task, by each completion, and by the message to the loop while it
/// is on its way. The side that sets `claimed_` writes the result.
class CompletionState : private LoopMessage {
 public:
  CompletionState(const CompletionState&) = delete;
  CompletionState& operator=(const CompletionState&) = delete;

  // Callable from any thread.

  void add_completion() noexcept {
    retain();
    completions_.fetch_add(1, std::memory_order_relaxed);
  }
  /// Dropping the last completion without a result fails the wait with ECANCELED.
  void drop_completion() noexcept;
  [[nodiscard]] bool is_claimed() const noexcept {
    return claimed_.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool claim() noexcept {
    return !claimed_.exchange(true, std::memory_order_acq_rel);
  }
  void set_error(Error error) noexcept { error_ = error; }
  void set_exception(std::exception_ptr thrown) noexcept { thrown_ = std::move(thrown); }
  /// Sends the result, after claim(), to the loop.
  void send() noexcept;

  // To be called on the thread of the loop.

  /// Throws std::bad_alloc.
  void begin(EventLoop& loop, std::coroutine_handle<> awaiting);
  /// Ends the time in which set_stop_handler() may be called.
  void end_initiation() noexcept { initiating_ = false; }
  void set_stop_handler(Callback<void()> handler) noexcept;
  /// The awaiting task was asked to stop.
  void request_stop() noexcept;
  /// The task was asked to stop before it waited.
  void refuse() noexcept { home_error_ = true; }
  /// Drops the ownership of the awaiting task.
  void abandon() noexcept;

 protected:
  CompletionState() = default;
  virtual ~CompletionState() = default;

  /// Throws the exception. The error is set if there is no result.
  [[nodiscard]] Error take_error() const;

 private:
  void deliver() override;
  void drop() noexcept override;
  void call_stop_handler() noexcept;
  void retain() noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  std::atomic<unsigned> owners_{2};  ///< The awaiting task and the first completion.
  std::atomic<unsigned> completions_{1};
  std::atomic<bool> claimed_{false};
  std::shared_ptr<threads::LoopMailbox> mailbox_;

  // Written by the side that has claimed the state.
  Error error_;
  std::exception_ptr thrown_;

  // Used by the awaiting task only.
  threads::LoopInbox* inbox_ = nullptr;  ///< Null after the loop was destroyed.
  std::coroutine_handle<> awaiting_;
  Callback<void()> stop_handler_;
  EventLoop* loop_ = nullptr;
  bool initiating_ = true;
  bool home_error_ = false;  ///< ECANCELED.
  bool delivered_ = false;
};

}  // namespace detail
}  // namespace tambour

#pragma GCC visibility pop
