// The backend io_uring: polls, changes of interest and file operations are entries of one ring.
#include "backend/io_uring/uring.h"

#include <poll.h>

#include <cerrno>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/failure.h"
#include "base/probe.h"
#include "base/system_call.h"

namespace tambour::detail::backend {
namespace {

using base::Call;
using base::ReadyQueue;

// The user_data of a completion: a descriptor and its generation, a token of RingFiles (with the
// highest bit set), or nothing_to_do for completions to ignore. Descriptors are not negative, so
// the three cannot collide.
std::uint64_t token_of(int fd, std::uint32_t generation) noexcept {
  constexpr std::uint32_t bits = 0x7fffffff;
  return std::uint64_t{generation & bits} << 32 | static_cast<std::uint32_t>(fd);
}

// A poll for POLLPRI alone misses wakeups that state their events: Linux 6.18 leaves the bit out
// when it checks whether a wakeup is relevant. Sockets wake up for normal, urgent and band data at
// once, and band data never occurs, so also asking for POLLRDBAND reports urgent data.
unsigned asked_of_ring(Events wanted) noexcept {
  return unsigned(wanted) | (has(wanted, Events::urgent) ? unsigned{POLLRDBAND} : 0U);
}

}  // namespace

Result<std::unique_ptr<Backend>> Uring::open(const LoopOptions& options) {
  auto self = std::unique_ptr<Uring>(
      new (std::nothrow) Uring(options.submission_entries, options.completion_entries));
  if (self == nullptr) return base::failure(ENOMEM);
  if (const int error = self->open_ring(Deferral::hidden)) return base::failure(error);
  self->describe();
  if (auto opened = self->wake_up_.open(false); !opened) return std::unexpected(opened.error());
  self->records_.submit(self->wake_up_);
  return self;
}

void Uring::describe() {
  features_.clear();
  const auto note = [&](bool holds, const char* name) {
    if (!holds) return;
    if (!features_.empty()) features_ += ' ';
    features_ += name;
  };
  note(has_flag(ring().flags, IORING_SETUP_SINGLE_ISSUER), "SINGLE_ISSUER");
  note(defers_task_work(), "DEFER_TASKRUN");
  note(has_flag(ring().flags, IORING_SETUP_COOP_TASKRUN), "COOP_TASKRUN");
  note(ring().ring_fd != ring().enter_ring_fd, "REGISTERED_RING");
  traits_ = {.kind = BackendKind::io_uring,
             .name = "io_uring",
             .supports_edge_triggered = true,
             .reports_peer_closed = true,
             .features = features_,
             .fallback_reason = {}};
}

Result<int> Uring::fd() noexcept {
  // Completions deferred as task work do not wake up waiters on the ring's descriptor, and notify a
  // registered eventfd only once (Linux 6.18). Reopen the ring without deferring.
  if (defers_task_work()) {
    if (auto reopened = reopen_and_describe(); !reopened) return std::unexpected(reopened.error());
  }
  return ring().ring_fd;
}

Result<> Uring::share() noexcept {
  // Both deferred task work and the registered ring descriptor are limited to a single thread.
  set_shared(true);
  auto reopened = reopen_and_describe();
  if (!reopened) set_shared(false);
  return reopened;
}

Result<> Uring::reopen_and_describe() noexcept {
  if (const int error = reopen_without_deferring()) return base::failure(error);
  may_defer_ = false;
  describe();
  records_.disarm_all();
  return {};
}

bool Uring::disown_if_lost() noexcept {
  if (!wake_up_.is_lost()) return true;
  wake_up_.disown();
  // Not closed by io_uring_queue_exit(), which still unmaps the ring.
  disown_ring();
  return false;
}

Result<> Uring::reopen() noexcept {
  // Not submitted if an earlier reopen() failed.
  if (wake_up_.submitted()) records_.cancel(wake_up_);
  // Unmaps the parent's ring in the child without touching its entries. This comes first: if other
  // code has closed the ring's descriptor, the next one that is opened gets its number.
  close_ring();
  if (auto opened = wake_up_.open(false); !opened) return opened;
  if (const int error = open_ring(may_defer_ ? Deferral::hidden : Deferral::none))
    return base::failure(error);
  set_reopened();
  records_.disarm_all();
  files().cancel_all();
  records_.submit(wake_up_);
  return {};
}

void Uring::poll(std::int64_t timeout_ns, ReadyQueue& ready) noexcept {
  base::check(ring_is_open(), "EventLoop run although after_fork() had failed; destroy it instead");
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
  if (!ring_is_open() || !is_of_this_process()) return;
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
    if (!any_entries()) return;
    reap(early_);
  }
}

void Uring::release_unwatched_fds() noexcept {
  if (!ring_is_open() || !is_of_this_process()) return;
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

void Uring::cancel(detail::Operation& op) noexcept {
  if (op.kind == detail::OperationKind::poll) [[likely]] {
    records_.cancel(op);
  } else {
    request_cancel(static_cast<FileOperation&>(op));
  }
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

void Uring::complete_other(const io_uring_cqe& completion, ReadyQueue& ready) noexcept {
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

}  // namespace tambour::detail::backend
