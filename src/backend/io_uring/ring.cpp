// Ring: opens an io_uring with the flags that the kernel supports, enters it, reaps completions,
// and survives fork(2).
#include "backend/io_uring/ring.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/probe.h"
#include "base/system_call.h"

namespace tambour::detail::backend {
namespace {

using base::Call;
using base::ReadyQueue;
using base::ring_call;

// A ring may be mapped at an address where another thread has just unmapped its ring. The kernel
// orders the two; this variable makes the order visible to ThreadSanitizer, which does not see
// liburing's system calls and would report a race.
std::atomic<unsigned> rings_closed{0};

int open_queue(io_uring* ring, unsigned entries, io_uring_params* params) noexcept {
  return ::io_uring_queue_init_params(entries, ring, params);
}

/// EBADR: the kernel had no memory for a completion, which is lost. It is reported once.
bool is_temporary(int outcome) noexcept {
  return outcome == -EINTR || outcome == -EAGAIN || outcome == -EBUSY || outcome == -EBADR;
}

}  // namespace

Ring::~Ring() { close_ring(); }

int Ring::open_ring(Deferral deferral) noexcept {
  if (shared_) deferral = Deferral::none;  // Deferring is limited to a single thread.
  // Best first; a kernel rejects unknown flags with EINVAL. With DEFER_TASKRUN (Linux 6.1) the
  // kernel runs its part of a completion when the loop waits, instead of interrupting it at any
  // time.
  constexpr unsigned attempts[] = {
      IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL,
      IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL, 0};
  int error = EINVAL;
  for (unsigned flags : attempts) {
    if (has_flag(flags, IORING_SETUP_DEFER_TASKRUN)) {
      if (deferral == Deferral::none) continue;
      if (deferral == Deferral::flagged) flags |= IORING_SETUP_TASKRUN_FLAG;
    }
    error = open_ring_with(flags);
    if (error != EINVAL) break;
  }
  if (error != 0) return error;
  ring_is_open_ = true;
  opened_by_ = ::getpid();
  static_cast<void>(rings_closed.load(std::memory_order_acquire));
  defers_task_work_ = has_flag(ring_.flags, IORING_SETUP_DEFER_TASKRUN);
  // The last flag stands for Linux 5.13: multishot poll was added with it and has no flag of its
  // own.
  constexpr unsigned needed = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_RSRC_TAGS;
  if ((ring_.features & needed) != needed) {
    close_ring();
    return EOPNOTSUPP;
  }
  files_.open(ring_);
  // Saves the kernel a descriptor lookup per io_uring_enter(2). A failure is ignored, because the
  // ring works without it.
  if (!shared_) ::io_uring_register_ring_fd(&ring_);
  return 0;
}

int Ring::open_ring_with(unsigned flags) noexcept {
  // The kernel requires at least one entry, and no fewer completions than submissions.
  unsigned submissions = std::max(submission_entries_, 1U);
  unsigned completions = std::max(completion_entries_, submissions);
  for (;;) {
    io_uring_params params{};
    params.flags = flags | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    params.cq_entries = completions;
    const int error = -ring_call(Call::ring_open, open_queue, &ring_, submissions, &params);
    // RLIMIT_MEMLOCK is charged for the rings even if no page is locked; smaller rings may fit.
    if (error != ENOMEM || submissions <= 8) return error;
    submissions /= 2;
    completions = completions / 2 > submissions ? completions / 2 : submissions;
  }
}

void Ring::close_ring() noexcept {
  if (!std::exchange(ring_is_open_, false)) return;
  rings_closed.fetch_add(1, std::memory_order_release);
  ::io_uring_queue_exit(&ring_);
}

int Ring::reopen_without_deferring() noexcept {
  // The completions of operations in flight arrive on this ring.
  while (files_.any_in_flight()) {
    enter(-1);
    reap(files_.has_ended());
  }
  io_uring former = std::exchange(ring_, {});
  const bool deferred = std::exchange(defers_task_work_, false);
  if (const int error = open_ring(Deferral::none)) {
    ring_ = former;
    ring_is_open_ = true;
    defers_task_work_ = deferred;
    return error;
  }
  ::io_uring_queue_exit(&former);
  return 0;
}

void Ring::fail_in_child() noexcept {
  base::fail_check(
      "EventLoop on io_uring run in a child of fork(2); call EventLoop::after_fork() in the child "
      "first, or make a new loop there");
}

void Ring::check_entered(int outcome) const noexcept {
  if (outcome >= 0 || is_temporary(outcome)) return;
  // The kernel's errno value depends on the flags of the ring: EINVAL or EEXIST.
  if (opened_by_ != ::getpid()) fail_in_child();
  base::fail_check(
      "io_uring_enter(2) of an EventLoop failed with errno %d: other code of the program has "
      "closed the ring; close only descriptors that you have opened",
      -outcome);
}

io_uring_sqe* Ring::next_entry(ReadyQueue& ready) noexcept {
  io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
  while (entry == nullptr) {
    ++calls_;
    // The submission queue is full. EBUSY and EAGAIN: the kernel requires completions to be
    // consumed first.
    const int submitted = ring_call(Call::ring_enter, ::io_uring_submit, &ring_);
    check_entered(submitted);
    if (submitted == -EBADR) note_lost();
    if (submitted == -EBUSY || submitted == -EAGAIN) {
      ::io_uring_get_events(&ring_);
      reap(ready);
    }
    entry = ::io_uring_get_sqe(&ring_);
  }
  return entry;
}

void Ring::enter(std::int64_t timeout_ns) noexcept {
  int outcome;
  ++calls_;
  TAMBOUR_PROBE1(poll, timeout_ns);
  // If a completion is already in the queue, io_uring_submit_and_wait_timeout() (liburing 2.3) does
  // not ask the kernel for events, so those whose completion is deferred would not be reported.
  if (timeout_ns == 0 || ::io_uring_cq_ready(&ring_) != 0) {
    outcome = ring_call(Call::ring_enter, ::io_uring_submit_and_get_events, &ring_);
  } else if (timeout_ns < 0) {
    outcome = ring_call(Call::ring_enter, ::io_uring_submit_and_wait, &ring_, 1);
  } else {
    const timespec rest = base::to_timespec(timeout_ns);
    __kernel_timespec timeout{.tv_sec = rest.tv_sec, .tv_nsec = rest.tv_nsec};
    io_uring_cqe* first = nullptr;
    outcome = ring_call(Call::ring_enter, ::io_uring_submit_and_wait_timeout, &ring_, &first, 1,
                        &timeout, nullptr);
  }
  if (outcome != -ETIME) check_entered(outcome);
  if (outcome == -EBADR) note_lost();
}

unsigned Ring::reap(ReadyQueue& ready) noexcept {
  unsigned head;
  unsigned count = 0;
  io_uring_cqe* completion;
  io_uring_for_each_cqe(&ring_, head, completion) {
    ++count;
    base::rewrite_completion(*completion);
    if (completion->user_data == nothing_to_do) continue;
    if (RingFiles::is_own(completion->user_data)) {
      files_.complete(*completion, ready);
    } else {
      complete_other(*completion, ready);
    }
  }
  ::io_uring_cq_advance(&ring_, count);
  return count;
}

void Ring::hand_over_files(ReadyQueue& ready) noexcept {
  while (FileOperation* op = files_.next()) {
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    // next_entry() may reap completions, and so make other operations pending, behind this one.
    if (entry == nullptr) [[unlikely]]
      entry = next_entry(ready);
    files_.prepare(*op, *entry);
  }
  while (FileOperation* op = files_.next_unverified()) {
    io_uring_sqe* const entry = next_entry(ready);
    // next_entry() may have reaped its completion. The operation still exists then, and the probe,
    // which does not find it in the kernel, has no effect.
    files_.prepare_probe(*op, *entry);
  }
  files_.take_ended(ready);
}

void Ring::request_cancel(FileOperation& op) noexcept {
  if (!files_.request_cancel(op)) return;
  io_uring_sqe* entry = next_entry(files_.has_ended());
  ::io_uring_prep_cancel64(entry, RingFiles::token_of(op), 0);
  ::io_uring_sqe_set_data64(entry, nothing_to_do);
}

void Ring::cancel_file_and_wait(FileOperation& op) noexcept {
  request_cancel(op);
  while (op.InRing::linked()) {
    // Other operations that end here are reported in the next iteration.
    hand_over_files(files_.has_ended());
    enter(-1);
    reap(files_.has_ended());
  }
  static_cast<detail::Operation&>(op).unlink();
}

}  // namespace tambour::detail::backend
