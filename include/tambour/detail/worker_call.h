// A call that a WorkerPool runs on a worker thread. Not part of the public interface: it is visible
// only because awaitables derive from it.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <source_location>
#include <stop_token>

#include <tambour/detail/intrusive_list.h>

namespace tambour::detail::threads {
template <class T, class Tag>
class Mailbox;
class WorkerMailbox;
class WorkerQueue;
class WorkerReturns;
}  // namespace tambour::detail::threads

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;
class WorkerPool;
enum class WhenStopped : std::uint8_t;

namespace detail {

/// A call that is submitted to a pool. Owned jointly by the waiting task and the worker. All memory
/// that the worker accesses is in this object, so the task's frame may be destroyed at any time.
class WorkerCall : public ListHook<WorkerCall>, public ListHook<threads::WorkerReturns> {
 public:
  WorkerCall(const WorkerCall&) = delete;
  WorkerCall& operator=(const WorkerCall&) = delete;

  // To be called on the loop's thread only.

  /// Starts the call. The task, which the stall detector names by `spawned_at`, is resumed in a
  /// later iteration. Throws std::bad_alloc; the call is
  /// then not started.
  void start(WorkerPool& pool, EventLoop& loop, std::coroutine_handle<> awaiting,
             const std::stop_token& stop, WhenStopped when_stopped,
             const std::source_location& spawned_at);
  /// Called when the task is asked to stop.
  void request_stop() noexcept;
  /// Drops the task's ownership, because the waiting task is destroyed; the caller must not use
  /// this object afterwards. If `and_wait` is true, blocks until the worker has finished with it.
  void abandon(bool and_wait = false) noexcept;
  /// An errno value: why the callable was not called, or ECANCELED. 0: it was called.
  [[nodiscard]] int error() const noexcept { return error_; }

 protected:
  WorkerCall() = default;
  virtual ~WorkerCall() = default;

  /// Runs the call: on a worker thread or, in a simulation, on the loop's thread.
  virtual void work() noexcept = 0;

  /// Reference counting; releasing the last reference deletes the object.
  void retain() noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  friend class tambour::WorkerPool;
  friend class threads::WorkerMailbox;
  template <class, class>
  friend class threads::Mailbox;
  friend class threads::WorkerQueue;
  friend class threads::WorkerReturns;

  enum class State : std::uint8_t { waiting, running, ended };
  /// The place in the lists of the loop whose task awaits the call.
  using OnLoop = ListHook<threads::WorkerReturns>;
  using InQueue = ListHook<WorkerCall>;
  using InMailbox = InQueue;  ///< Not at the same time.

  std::atomic<unsigned> owners_{1};
  State state_ = State::waiting;  ///< Guarded by the queue's lock.
  bool refused_ = false;          ///< Guarded by the mailbox's lock: no task waits.
  bool returned_ = false;         ///< The pool has finished with it. Used by the loop only.
  WhenStopped when_stopped_{};
  int error_ = 0;
  std::coroutine_handle<> awaiting_;
  std::source_location spawned_at_;
  threads::WorkerReturns* returns_ = nullptr;    ///< Valid while OnLoop is linked.
  std::shared_ptr<threads::WorkerQueue> queue_;  ///< Null in a simulation.
  std::shared_ptr<threads::WorkerMailbox> mailbox_;
};

}  // namespace detail
}  // namespace tambour

#pragma GCC visibility pop
