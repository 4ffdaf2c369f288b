// WorkerPool: the pools of the process, and the calls that tasks submit to them.
#include <tambour/threads/worker_pool.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <system_error>
#include <thread>

#include <tambour/loop/event_loop.h>

#include "base/parse_number.h"
#include "loop/core.h"
#include "threads/worker_queue.h"
#include "threads/worker_returns.h"

namespace tambour {
namespace {

constexpr unsigned shared_least = 4;
constexpr unsigned names_default = 16;
constexpr std::size_t files_queued_max = 65'536;
constexpr std::size_t names_queued_max = 16'384;
constexpr unsigned threads_most = 1024;

unsigned threads_from(const char* variable, unsigned otherwise) noexcept {
  if (const char* text = std::getenv(variable)) {
    const auto wanted = detail::base::parse_number<unsigned>(text);
    if (wanted && *wanted > 0) return std::min(*wanted, threads_most);
  }
  return otherwise;
}

unsigned shared_default() noexcept { return std::max(WorkerPool::processors(), shared_least); }

}  // namespace

/// The queue of one process; a forked child creates its own.
struct WorkerPool::Generation {
  Generation(unsigned threads, std::size_t queued_max)
      : queue(std::make_shared<detail::threads::WorkerQueue>(threads, queued_max)) {}
  std::shared_ptr<detail::threads::WorkerQueue> queue;
};

unsigned WorkerPool::processors() noexcept {
  return std::max(std::thread::hardware_concurrency(), 1U);
}

WorkerPool::WorkerPool(unsigned threads, std::size_t queued_max)
    : threads_(std::clamp(threads, 1U, threads_most)),
      queued_max_(queued_max),
      generation_(new Generation(threads_, queued_max_)) {}

WorkerPool::~WorkerPool() {
  Generation* const last = generation_.load();
  // The queue's threads exist in the parent only, and may have held any lock.
  if (last->queue->is_of_parent()) return;
  last->queue->close();
  delete last;
}

WorkerPool& WorkerPool::shared() {
  static auto* const pool = new WorkerPool(threads_from("TAMBOUR_WORKERS", shared_default()));
  return *pool;
}

WorkerPool& WorkerPool::files() {
  static auto* const pool =
      new WorkerPool(threads_from("TAMBOUR_FILE_WORKERS", shared_default()), files_queued_max);
  return *pool;
}

WorkerPool& WorkerPool::names() {
  static auto* const pool =
      new WorkerPool(threads_from("TAMBOUR_RESOLVER_WORKERS", names_default), names_queued_max);
  return *pool;
}

const std::shared_ptr<detail::threads::WorkerQueue>& WorkerPool::queue() {
  Generation* current = generation_.load(std::memory_order_acquire);
  if (current->queue->is_of_parent()) {
    auto fresh = std::make_unique<Generation>(threads_, queued_max_);
    if (generation_.compare_exchange_strong(current, fresh.get(), std::memory_order_acq_rel))
      current = fresh.release();
  }
  return current->queue;
}

WorkerPoolStats WorkerPool::stats() const noexcept {
  const Generation* const current = generation_.load(std::memory_order_acquire);
  return current->queue->is_of_parent() ? WorkerPoolStats() : current->queue->stats();
}

void WorkerPool::submit(Callback<void()> work) {
  struct Submitted final : detail::WorkerCall {
    explicit Submitted(Callback<void()> subject) noexcept : function(std::move(subject)) {}
    void work() noexcept override { function(); }
    Callback<void()> function;
  };
  auto* const call = new Submitted(std::move(work));
  Result<> pushed;
  try {
    pushed = queue()->push(*call);
  } catch (...) {
    static_cast<detail::WorkerCall*>(call)->release();
    throw;
  }
  if (pushed) return;
  static_cast<detail::WorkerCall*>(call)->release();
  throw std::system_error(pushed.error(), "WorkerPool::submit");
}

void detail::WorkerCall::start(WorkerPool& pool, EventLoop& loop, std::coroutine_handle<> awaiting,
                               const std::stop_token& stop, WhenStopped when_stopped,
                               const std::source_location& spawned_at) {
  detail::loop::Core& core = detail::loop::core_of(loop);
  core.check_thread();
  auto returns = core.open_service<detail::threads::WorkerReturns>();
  if (!returns) throw std::bad_alloc();
  mailbox_ = (*returns)->mailbox();
  if (!core.backend().has_virtual_time()) queue_ = pool.queue();
  returns_ = *returns;
  awaiting_ = awaiting;
  spawned_at_ = spawned_at;
  when_stopped_ = when_stopped;
  retain();  // The pool's reference, until the call returns.
  returns_->expect(*this);
  if (stop.stop_requested()) {
    error_ = ECANCELED;
  } else if (queue_ != nullptr) {
    // Do not access the call after push(): a worker may already run it.
    const Result<> pushed = queue_->push(*this);
    if (pushed) return;
    error_ = pushed.error().value();
  }
  returned_ = true;
  returns_->notify_later(*this);
}

void detail::WorkerCall::request_stop() noexcept {
  if (!OnLoop::linked()) return;
  if (queue_ == nullptr) {
    error_ = ECANCELED;  // Already queued by start().
    return;
  }
  if (returned_) return;
  switch (queue_->withdraw(*this)) {
    case State::waiting:
      returned_ = true;
      break;
    case State::running:
      if (when_stopped_ == WhenStopped::wait) return;
      break;
    case State::ended:
      return;
  }
  error_ = ECANCELED;
  returns_->notify_later(*this);
}

void detail::WorkerCall::abandon(bool and_wait) noexcept {
  const bool is_waited_for = OnLoop::linked();
  if (is_waited_for) returns_->remove(*this);
  if (queue_ != nullptr && !returned_ && !queue_->is_of_parent()) {
    const State was = queue_->withdraw(*this);
    if (was == State::running && and_wait) queue_->wait_until_ended(*this);
    if (was == State::waiting) {
      returned_ = true;
      release();
    } else if (is_waited_for && mailbox_->refuse(*this)) {
      release();
    }
  } else if (is_waited_for && returned_) {
    release();
  }
  release();
}

}  // namespace tambour
