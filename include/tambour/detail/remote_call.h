// A task that run_on() runs on another loop. Not part of the public interface: it is visible only
// because the awaitable of run_on() contains the task.
#pragma once

#include <atomic>
#include <coroutine>
#include <exception>
#include <memory>
#include <source_location>
#include <stop_token>

#include <tambour/detail/intrusive_list.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

namespace tambour::detail::threads {
class LoopInbox;
class LoopMailbox;
template <class T, class Tag>
class Mailbox;
}  // namespace tambour::detail::threads

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

namespace detail {

class RemoteCall;

/// A message to a loop from any thread, which allocates nothing.
class LoopMessage : public ListHook<threads::LoopMailbox>, public ListHook<threads::LoopInbox> {
 public:
  LoopMessage() = default;
  LoopMessage(const LoopMessage&) = delete;
  LoopMessage& operator=(const LoopMessage&) = delete;

 protected:
  friend class threads::LoopInbox;
  template <class, class>
  friend class threads::Mailbox;
  friend class RemoteCall;
  using InMailbox = ListHook<threads::LoopMailbox>;
  using OnLoop = ListHook<threads::LoopInbox>;

  ~LoopMessage() = default;
  /// Called on the loop's thread, as a callback.
  virtual void deliver() = 0;
  /// Called if the loop is destroyed before the message was delivered.
  virtual void drop() noexcept = 0;

  bool refused_ = false;   ///< Guarded by the mailbox's lock: put() fails.
  bool received_ = false;  ///< The loop has taken it from its mailbox. Used by the loop only.
};

/// A task that another loop runs for a task of this one. Owned jointly by the awaiting task (the
/// home side) and the other loop (the remote side). All memory that both access is in this object.
class RemoteCall {
 public:
  RemoteCall(const RemoteCall&) = delete;
  RemoteCall& operator=(const RemoteCall&) = delete;

  // To be called on the thread of the home loop.

  /// Throws std::bad_alloc; the call is then not started.
  void start(EventLoop& home, EventLoop& to, std::coroutine_handle<> awaiting,
             const TaskContext& context);
  /// Called when the awaiting task is asked to stop.
  void request_stop() noexcept;
  /// Drops the ownership of the awaiting task, which is destroyed.
  void abandon() noexcept;

 protected:
  RemoteCall() noexcept : returned_(*this), stop_(*this) {}
  virtual ~RemoteCall() = default;

  /// Runs the task, on the remote side, and stores its result.
  virtual Task<> run() = 0;
  /// Destroys the task, which is not running.
  virtual void destroy_task() noexcept = 0;

  /// Why there is no result, an errno value; or 0.
  [[nodiscard]] int error() const noexcept { return home_error_ != 0 ? home_error_ : error_; }
  [[nodiscard]] const std::exception_ptr& thrown() const noexcept { return thrown_; }

 private:
  class [[gnu::visibility("hidden")]] RemoteEnd;
  struct Returned final : LoopMessage {
    explicit Returned(RemoteCall& owner) noexcept : call(owner) {}
    void deliver() override;
    void drop() noexcept override;
    RemoteCall& call;
  };
  struct Stop final : LoopMessage {
    explicit Stop(RemoteCall& owner) noexcept : call(owner) {}
    void deliver() override;
    void drop() noexcept override { call.release(); }
    RemoteCall& call;
  };

  static void arrive(RemoteEnd end, EventLoop& loop) noexcept;
  static Task<> serve(RemoteEnd end, EventLoop& loop);
  void finish() noexcept;
  void stop_waiting() noexcept;

  void retain() noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  std::atomic<unsigned> owners_{1};
  std::source_location spawned_at_;                ///< Of the awaiting task.
  Returned returned_;                              ///< Sent to the home loop.
  Stop stop_;                                      ///< Sent to the remote loop.
  std::shared_ptr<threads::LoopMailbox> mailbox_;  ///< Of the home loop.

  // Guarded by the lock of mailbox_.
  std::shared_ptr<threads::LoopMailbox> remote_;  ///< Null until the call has arrived.
  bool stop_requested_ = false;

  // Used by the home side.
  threads::LoopInbox* inbox_ = nullptr;
  std::coroutine_handle<> awaiting_;
  int home_error_ = 0;
  bool delivered_ = false;

  // Used by the remote side until returned_ is sent.
  bool arrived_ = false;
  int error_ = 0;
  std::exception_ptr thrown_;
  TaskScope* scope_ = nullptr;
};

}  // namespace detail
}  // namespace tambour

#pragma GCC visibility pop
