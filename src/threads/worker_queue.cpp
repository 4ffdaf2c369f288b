// WorkerQueue: starts threads as calls are queued, up to the limit; runs, withdraws and returns
// calls.
#include "threads/worker_queue.h"

#include <pthread.h>

#include <cerrno>
#include <exception>
#include <new>
#include <system_error>

#include "base/check.h"
#include "base/failure.h"
#include "base/system_call.h"
#include "threads/worker_returns.h"

namespace tambour::detail::threads {

WorkerQueue::WorkerQueue(unsigned threads_max, std::size_t queued_max)
    : threads_max_(threads_max), queued_max_(queued_max) {
  threads_.reserve(threads_max);
}

Result<> WorkerQueue::start_thread() noexcept {
  // std::thread fails because of RLIMIT_NPROC or a limit of the container.
  const auto refused = base::failure(EAGAIN);
  if (base::planned_outcome(base::Call::thread_create)) return refused;
  // The thread inherits the signal mask of this one, and so do programs started by its calls.
  try {
    threads_.emplace_back([this] { work(); });
    return {};
  } catch (const std::bad_alloc&) {
    return base::failure(ENOMEM);
  } catch (const std::exception&) {
    return refused;
  }
}

Result<> WorkerQueue::push(WorkerCall& call) noexcept {
  std::unique_lock lock(mutex_);
  if (closing_) {
    // A call that runs, or is dropped, while the pool is destroyed may push another one.
    cancel(call);
    lock.unlock();
    send_back(call);
    return {};
  }
  if (waiting_count_ >= idle_ && threads_.size() < threads_max_) {
    const auto started = start_thread();
    if (!started && threads_.empty()) return started;
  }
  // Calls that an idle thread is about to take do not count as queued.
  if (waiting_count_ >= queued_max_ && waiting_count_ - queued_max_ >= threads_.size() - busy_) {
    ++refused_;
    return base::failure(EAGAIN);
  }
  waiting_.push_back(call);
  ++waiting_count_;
  pushed_.notify_one();
  return {};
}

WorkerCall::State WorkerQueue::withdraw(WorkerCall& call) noexcept {
  const std::lock_guard lock(mutex_);
  const WorkerCall::State was = call.state_;
  if (was == WorkerCall::State::waiting) {
    call.InQueue::unlink();
    call.state_ = WorkerCall::State::ended;
    --waiting_count_;
  }
  return was;
}

WorkerPoolStats WorkerQueue::stats() noexcept {
  const std::lock_guard lock(mutex_);
  return {.threads = threads_.size(),
          .running = busy_,
          .queued = waiting_count_,
          .completed = completed_,
          .refused = refused_};
}

void WorkerQueue::wait_until_ended(const WorkerCall& call) noexcept {
  std::unique_lock lock(mutex_);
  ++waiting_threads_;
  ended_.wait(lock, [&] { return call.state_ == WorkerCall::State::ended; });
  --waiting_threads_;
}

void WorkerQueue::work() noexcept {
  ::pthread_setname_np(::pthread_self(), "tambour-worker");
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    pushed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
    --idle_;
    if (closing_) return;
    WorkerCall& call = *waiting_.front();
    call.InQueue::unlink();
    --waiting_count_;
    call.state_ = WorkerCall::State::running;
    ++busy_;
    lock.unlock();
    call.work();
    lock.lock();
    --busy_;
    ++completed_;
    call.state_ = WorkerCall::State::ended;
    if (waiting_threads_ != 0) ended_.notify_all();
    lock.unlock();
    send_back(call);
    lock.lock();
  }
}

void WorkerQueue::send_back(WorkerCall& call) noexcept {
  // A call made with submit() is not awaited.
  if (call.mailbox_ == nullptr) {
    call.release();
  } else {
    const std::shared_ptr<WorkerMailbox> mailbox = call.mailbox_;
    mailbox->put(call);
  }
}

void WorkerQueue::cancel(WorkerCall& call) noexcept {
  call.state_ = WorkerCall::State::ended;
  call.error_ = ECANCELED;
}

void WorkerQueue::close() noexcept {
  {
    std::unique_lock lock(mutex_);
    closing_ = true;
    pushed_.notify_all();
    // One at a time: while one call is sent back, others may be withdrawn.
    while (WorkerCall* const first = waiting_.front()) {
      WorkerCall& call = *first;
      call.InQueue::unlink();
      --waiting_count_;
      cancel(call);
      lock.unlock();
      send_back(call);
      lock.lock();
    }
  }
  for (std::thread& thread : threads_) {
    base::check(thread.get_id() != std::this_thread::get_id(),
                "WorkerPool destroyed by one of its own threads, which it would have to wait for; "
                "destroy it on another thread");
    thread.join();
  }
  threads_.clear();
}

}  // namespace tambour::detail::threads
