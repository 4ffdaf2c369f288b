#include "backend/uring.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/probe.h"
#include "base/system_call.h"

namespace tambour::backend {
namespace {

using base::Call;
using base::ReadyQueue;
using base::ring_call;

// The user_data of a completion: a descriptor and its generation, a token of RingFiles (with the
// highest bit set), or this value for completions to ignore. Descriptors are not negative, so the
// three cannot collide.
constexpr std::uint64_t nothing_to_do = ~std::uint64_t{0};

std::uint64_t token_of(int fd, std::uint32_t generation) noexcept {
  constexpr std::uint32_t bits = 0x7fffffff;
  return std::uint64_t{generation & bits} << 32 | static_cast<std::uint32_t>(fd);
}

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

// A poll for POLLPRI alone misses wakeups that state their events: Linux 6.18 leaves the bit out
// when it checks whether a wakeup is relevant. Sockets wake up for normal, urgent and band data at
// once, and band data never occurs, so also asking for POLLRDBAND reports urgent data.
unsigned asked_of_ring(Events wanted) noexcept {
  return unsigned(wanted) | (has(wanted, Events::urgent) ? unsigned{POLLRDBAND} : 0U);
}

bool has_flag(unsigned set, unsigned flag) noexcept { return (set & flag) != 0; }

}  // namespace

Result<std::unique_ptr<Backend>> Uring::open(const LoopOptions& options) {
  auto self = std::unique_ptr<Uring>(
      new (std::nothrow) Uring(options.submission_entries, options.completion_entries));
  if (self == nullptr) return base::failure(ENOMEM);
  if (const int error = self->open_ring()) return base::failure(error);
  self->describe();
  if (auto opened = self->wake_up_.open(false); !opened) return std::unexpected(opened.error());
  self->records_.submit(self->wake_up_);
  return self;
}

Uring::~Uring() { close_ring(); }

int Uring::open_ring() noexcept {
  // Best first; a kernel rejects unknown flags with EINVAL. With DEFER_TASKRUN (Linux 6.1) the
  // kernel runs its part of a completion when the loop waits, instead of interrupting it at any
  // time.
  constexpr unsigned attempts[] = {
      IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL,
      IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL, 0};
  int error = EINVAL;
  for (const unsigned flags : attempts) {
    if (!may_defer_ && has_flag(flags, IORING_SETUP_DEFER_TASKRUN)) continue;
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

int Uring::open_ring_with(unsigned flags) noexcept {
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

void Uring::close_ring() noexcept {
  if (!std::exchange(ring_is_open_, false)) return;
  rings_closed.fetch_add(1, std::memory_order_release);
  ::io_uring_queue_exit(&ring_);
}

void Uring::describe() {
  features_.clear();
  const auto note = [&](bool holds, const char* name) {
    if (!holds) return;
    if (!features_.empty()) features_ += ' ';
    features_ += name;
  };
  note(has_flag(ring_.flags, IORING_SETUP_SINGLE_ISSUER), "SINGLE_ISSUER");
  note(defers_task_work_, "DEFER_TASKRUN");
  note(has_flag(ring_.flags, IORING_SETUP_COOP_TASKRUN), "COOP_TASKRUN");
  note(ring_.ring_fd != ring_.enter_ring_fd, "REGISTERED_RING");
  traits_ = {.kind = BackendKind::io_uring,
             .name = "io_uring",
             .edges = true,
             .closed = true,
             .features = features_,
             .fell_back = {}};
}

Result<int> Uring::descriptor() noexcept {
  // Completions deferred as task work do not wake up waiters on the ring's descriptor, and notify a
  // registered eventfd only once (Linux 6.18). Reopen the ring without deferring.
  if (defers_task_work_) {
    if (auto reopened = reopen_without_deferring(); !reopened)
      return std::unexpected(reopened.error());
  }
  return ring_.ring_fd;
}

Result<> Uring::share() noexcept {
  // Both deferred task work and the registered ring descriptor are limited to a single thread.
  shared_ = true;
  auto reopened = reopen_without_deferring();
  if (!reopened) shared_ = false;
  return reopened;
}

Result<> Uring::reopen_without_deferring() noexcept {
  // The completions of operations in flight arrive on this ring.
  while (files_.any_in_flight()) {
    enter(-1);
    reap(files_.ended());
  }
  io_uring former = std::exchange(ring_, {});
  const bool deferred = std::exchange(defers_task_work_, false);
  const bool might_defer = std::exchange(may_defer_, false);
  if (const int error = open_ring()) {
    ring_ = former;
    ring_is_open_ = true;
    defers_task_work_ = deferred;
    may_defer_ = might_defer;
    return base::failure(error);
  }
  ::io_uring_queue_exit(&former);
  describe();
  records_.disarm_all();
  return {};
}

bool Uring::disown_if_lost() noexcept {
  if (!wake_up_.is_lost()) return true;
  wake_up_.disown();
  // Not closed by io_uring_queue_exit(), which still unmaps the ring.
  ring_.ring_fd = -1;
  return false;
}

Result<> Uring::reopen() noexcept {
  // Not submitted if an earlier reopen() failed.
  if (wake_up_.submitted()) records_.cancel(wake_up_);
  // Unmaps the parent's ring in the child without touching its entries. This comes first: if other
  // code has closed the ring's descriptor, the next one that is opened gets its number.
  close_ring();
  if (auto opened = wake_up_.open(false); !opened) return opened;
  if (const int error = open_ring()) return base::failure(error);
  take_over();
  records_.disarm_all();
  files_.cancel_all();
  records_.submit(wake_up_);
  return {};
}

void Uring::check_entered(int outcome) const noexcept {
  if (outcome >= 0 || is_temporary(outcome)) return;
  // The kernel's errno value depends on the flags of the ring: EINVAL or EEXIST.
  if (opened_by_ != ::getpid())
    base::fail_check(
        "EventLoop on io_uring run in a child of fork(2); call EventLoop::after_fork() in "
        "the "
        "child first, or make a new loop there");
  base::fail_check(
      "io_uring_enter(2) of an EventLoop failed with errno %d: other code of the program has "
      "closed "
      "the ring; close only descriptors that you have opened",
      -outcome);
}

void Uring::poll(std::int64_t timeout_ns, ReadyQueue& ready) noexcept {
  base::check(ring_is_open_, "EventLoop run although after_fork() had failed; destroy it instead");
  records_.take_changes([&](int fd, FdRecord& record) { apply_change(fd, record, ready); });
  records_.take_failed(ready);
  ready.take(early_);
  hand_over_files(ready);
  // Submitting many entries may have reaped completions, and these may have caused further changes.
  enter(ready.any_came() || records_.any_changes() ? 0 : timeout_ns);
  reap(ready);
}

void Uring::deregister(int fd) noexcept {
  if (!records_.has_record(fd)) return;
  FdRecord& record = records_.at(fd);
  if (record.armed.events == Events::none || record.wanted().events != Events::none) return;
  if (!ring_is_open_ || !is_of_this_process()) return;
  disarm(fd, record, early_);
  hand_over_now();
}

/// The kernel's poll holds the file until its removal has run as task work, which happens when
/// events are requested.
void Uring::hand_over_now() noexcept {
  // The kernel may refuse temporarily: until it has memory, or until completions are consumed.
  constexpr int attempts = 4;
  for (int i = 0; i < attempts; ++i) {
    enter(0);
    if (::io_uring_sq_ready(&ring_) == 0) return;
    reap(early_);
  }
}

void Uring::release_unwatched_fds() noexcept {
  if (!ring_is_open_ || !is_of_this_process()) return;
  bool any_removed = false;
  records_.take_changes([&](int fd, FdRecord& record) {
    // The drop-in of libev keeps operations without events.
    if (record.armed.events != Events::none && record.wanted().events == Events::none) {
      disarm(fd, record, early_);
      any_removed = true;
    }
    // Arming and checking again are left to poll().
    if (!record.operations.empty()) records_.note_change(fd);
  });
  if (any_removed) hand_over_now();
}

void Uring::hand_over_files(ReadyQueue& ready) noexcept {
  while (FileOperation* op = files_.next()) files_.prepare(*op, *next_entry(ready));
  while (FileOperation* op = files_.next_unverified()) {
    io_uring_sqe* const entry = next_entry(ready);
    // next_entry() may have reaped its completion. The operation still exists then, and the probe,
    // which does not find it in the kernel, has no effect.
    files_.prepare_probe(*op, *entry);
  }
  files_.take_ended(ready);
}

void Uring::cancel(detail::Operation& op) noexcept {
  if (op.kind == detail::OperationKind::poll) [[likely]] {
    records_.cancel(op);
  } else {
    request_cancel(static_cast<FileOperation&>(op));
  }
}

void Uring::request_cancel(FileOperation& op) noexcept {
  if (!files_.request_cancel(op)) return;
  io_uring_sqe* entry = next_entry(files_.ended());
  ::io_uring_prep_cancel64(entry, RingFiles::token_of(op), 0);
  ::io_uring_sqe_set_data64(entry, nothing_to_do);
}

void Uring::cancel_and_wait(detail::Operation& op) noexcept {
  auto& file_op = static_cast<FileOperation&>(op);
  request_cancel(file_op);
  while (file_op.InRing::linked()) {
    // Other operations that end here are reported in the next iteration.
    hand_over_files(files_.ended());
    enter(-1);
    reap(files_.ended());
  }
  op.unlink();
}

void Uring::note_lost() noexcept {
  records_.revalidate_all();
  files_.revalidate_all();
}

void Uring::apply_change(int fd, FdRecord& record, ReadyQueue& ready) noexcept {
  const Interest wanted = record.wanted();
  const bool unverified = std::exchange(record.unverified, false);
  const bool edge_is_due =
      std::exchange(record.edge_is_due, false) && wanted.trigger == Trigger::edge;
  if (wanted == record.armed && !unverified && !edge_is_due) return;
  if (record.armed.events != Events::none) disarm(fd, record, ready);
  if (wanted.events != Events::none) arm(fd, record, wanted, ready);
}

void Uring::arm(int fd, FdRecord& record, Interest wanted, ReadyQueue& ready) noexcept {
  io_uring_sqe* entry = next_entry(ready);
  if (wanted.trigger == Trigger::edge) {
    ::io_uring_prep_poll_multishot(entry, fd, asked_of_ring(wanted.events));
  } else {
    ::io_uring_prep_poll_add(entry, fd, asked_of_ring(wanted.events));
  }
  TAMBOUR_PROBE2(submit, fd, unsigned(wanted.events));
  record.armed = wanted;
  ::io_uring_sqe_set_data64(entry, token_of(fd, ++record.generation));
}

void Uring::disarm(int fd, FdRecord& record, ReadyQueue& ready) noexcept {
  io_uring_sqe* entry = next_entry(ready);
  ::io_uring_prep_poll_remove(entry, token_of(fd, record.generation));
  ::io_uring_sqe_set_data64(entry, nothing_to_do);
  record.armed = {};
  // Ignore completions of the removed poll that are still in flight.
  ++record.generation;
}

io_uring_sqe* Uring::next_entry(ReadyQueue& ready) noexcept {
  io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
  while (entry == nullptr) {
    ++system_calls_;
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

void Uring::enter(std::int64_t timeout_ns) noexcept {
  int outcome;
  ++system_calls_;
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

void Uring::reap(ReadyQueue& ready) noexcept {
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
      complete_poll(*completion, ready);
    }
  }
  ::io_uring_cq_advance(&ring_, count);
}

void Uring::complete_poll(const io_uring_cqe& completion, ReadyQueue& ready) noexcept {
  const int fd = static_cast<int>(completion.user_data & 0xffffffff);
  FdRecord& record = records_.at(fd);
  if (token_of(fd, record.generation) != completion.user_data) return;
  // The file does not support polling: it is always readable and writable, and has none of the
  // events asked for here. No event will occur, so arm nothing until the interest changes.
  if (completion.res == -EINVAL) return;
  const Events armed = record.armed.events;
  if (!has_flag(completion.flags, IORING_CQE_F_MORE)) {
    record.armed = {};
    records_.note_change(fd);
  }
  if (completion.res >= 0) {
    const auto reported = Events(static_cast<std::uint16_t>(completion.res));
    FdRecords::deliver(record, has(armed, Events::urgent) ? look(fd, armed, reported) : reported,
                       ready);
  } else if (completion.res != -ECANCELED) {
    records_.fail(record, -completion.res, ready);
  }
}

/// Checks by poll(2) which of the reported events hold. The ring reports the possible reasons of a
/// wakeup, and a socket's wakeup includes urgent data whenever any data arrives.
Events Uring::look(int fd, Events wanted, Events reported) noexcept {
  ++system_calls_;
  pollfd polled{.fd = fd, .events = static_cast<short>(wanted), .revents = 0};
  const int count = base::uninterrupted(Call::poll, ::poll, &polled, nfds_t{1}, 0);
  if (count < 0) return reported;
  return count > 0 ? Events(static_cast<std::uint16_t>(polled.revents)) : Events::none;
}

}  // namespace tambour::backend
