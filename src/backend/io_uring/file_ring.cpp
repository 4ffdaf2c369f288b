// FileRing: an io_uring for file operations, whose completions an eventfd announces to the poller
// of the loop.
#include "backend/io_uring/file_ring.h"

#include <atomic>
#include <cerrno>

#include "base/seccomp.h"
#include "base/system_call.h"

namespace tambour::detail::backend {

int FileRing::open(int eventfd) noexcept {
  // A filter may kill the process for io_uring_setup(2), and a program that has not asked for
  // io_uring does not expect that call.
  if (base::seccomp_filter_was_inherited() || base::seccomp_filter_is_installed()) return EPERM;
  if (const int error = open_ring(Deferral::flagged)) return error;
  eventfd_ = eventfd;
  if (const int error = register_eventfd()) {
    close_ring();
    return error;
  }
  process_ = {};
  return 0;
}

int FileRing::register_eventfd() noexcept {
  const int error = -base::ring_call(base::Call::ring_register, ::io_uring_register_eventfd,
                                     &mutable_ring(), eventfd_);
  if (error == 0) set_signals(false);
  return error;
}

void FileRing::set_signals(bool enabled) noexcept {
  signals_ = enabled;
  ::io_uring_cq_eventfd_toggle(&mutable_ring(), enabled);
}

void FileRing::cancel(FileOperation& op) noexcept {
  if (ring_is_open() && op.InRing::linked()) check_process();
  request_cancel(op);
}

void FileRing::cancel_and_wait(FileOperation& op) noexcept {
  if (ring_is_open() && op.InRing::linked()) check_process();
  cancel_file_and_wait(op);
}

bool FileRing::transfer(base::ReadyQueue& ready) noexcept {
  // The loop waits for other events after this number of completed operations at the latest.
  // Measured with reads of 4 KiB, a wait for each 32 of them costs too little to be noticed.
  constexpr unsigned completions_max = 32;
  unsigned count = 0;
  if (ring_is_open() && files().any_unfinished()) {
    check_process();
    hand_over_files(ready);
    if (any_entries() || any_withheld()) enter(0);
    count = reap(ready);
  }
  files().take_ended(ready);
  completed_ += count;
  if (count != 0 && !ready.empty() && completed_ <= completions_max) return true;
  completed_ = 0;
  return false;
}

bool FileRing::begin_wait() noexcept {
  if (ring_is_open() && files().any_in_flight()) {
    set_signals(true);
    // A completion before this point has signalled nothing, but is visible now.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  return !must_transfer();
}

void FileRing::end_wait(base::ReadyQueue& ready) noexcept {
  if (signals_) set_signals(false);
  if (!ring_is_open() || !files().any_in_flight()) return;
  if (any_withheld()) enter(0);
  reap(ready);
}

int FileRing::share() noexcept {
  set_shared(true);
  if (!ring_is_open()) return 0;
  int error = reopen_without_deferring();
  if (error == 0) return register_eventfd();
  set_shared(false);
  return error;
}

void FileRing::close_in_child() noexcept {
  signals_ = false;
  close_ring();
  files().cancel_all();
}

void FileRing::check_process() const noexcept {
  if (!process_.is_current()) fail_in_child();
}

}  // namespace tambour::detail::backend
