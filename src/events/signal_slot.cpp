// SignalSlot: the handler of the process, the counters that it increments, and the eventfd by which
// it wakes the loop.
#include "events/signal_slot.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <mutex>
#include <new>

#include <tambour/base/unique_fd.h>

#include "base/failure.h"
#include "base/system_call.h"

namespace tambour::detail::events {
namespace {

using base::Call;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<SignalSlot*>::is_always_lock_free);

struct Disposition {
  int watchers = 0;  ///< Slots that watch the signal.
  struct sigaction former{};
};

/// Guards everything in this file except what the handler uses.
constinit std::mutex dispositions_mutex;
std::array<Disposition, SignalSlot::number_max + 1> dispositions;
constinit std::atomic<SignalSlot*> first_slot{nullptr};

void on_signal(int number) { SignalSlot::raise(number); }

int make_eventfd() noexcept {
  return base::system_call(Call::eventfd, ::eventfd, 0, EFD_CLOEXEC | EFD_NONBLOCK);
}

}  // namespace

void SignalSlot::register_fork_handlers() noexcept {
  // Another thread may hold the mutex during fork(2); it does not exist in the child to release it.
  static const int registered =
      ::pthread_atfork([] { dispositions_mutex.lock(); }, [] { dispositions_mutex.unlock(); },
                       [] {
                         begin_child();
                         dispositions_mutex.unlock();
                       });
  static_cast<void>(registered);
}

void SignalSlot::begin_child() noexcept {
  for (SignalSlot* slot = first_slot.load(); slot != nullptr; slot = slot->next_) {
    // The child's signals are recorded but must not wake the parent's loop.
    slot->written_to_.store(-1);
    slot->writers_.store(0);
    slot->process_.store(::getpid());
    // Signals sent to the parent are not inherited, like the kernel's pending signals (fork(2)).
    slot->discard_all();
  }
}

void SignalSlot::claim_for_child() noexcept {
  // The child may have closed the descriptor, as daemons do, and its number may have been reused.
  if (!has_eventfd()) return;
  process_.store(::getpid());
  written_to_.store(eventfd_);
  // The handlers of earlier signals had no descriptor to write to.
  wake_if_pending();
}

SignalSlot* SignalSlot::find_free() noexcept {
  for (SignalSlot* slot = first_slot.load(); slot != nullptr; slot = slot->next_) {
    if (!slot->taken_) return slot;
  }
  auto* const slot = new (std::nothrow) SignalSlot;
  if (slot == nullptr) return nullptr;
  slot->next_ = first_slot.load();
  first_slot.store(slot);
  return slot;
}

Result<SignalSlot*> SignalSlot::acquire() noexcept {
  register_fork_handlers();
  UniqueFd eventfd(make_eventfd());
  if (!eventfd.is_open()) return base::failure(errno);
  const std::scoped_lock lock(dispositions_mutex);
  SignalSlot* const slot = find_free();
  if (slot == nullptr) return base::failure(ENOMEM);
  slot->taken_ = true;
  slot->discard_all();
  slot->open(eventfd.release());
  return slot;
}

void SignalSlot::release() noexcept {
  hide_from_handlers();
  close_eventfd();
  const std::scoped_lock lock(dispositions_mutex);
  for (std::uint64_t left = watched_.exchange(0); left != 0; left &= left - 1)
    --dispositions[static_cast<std::size_t>(std::countr_zero(left)) + 1].watchers;
  taken_ = false;
}

void SignalSlot::open(int eventfd) noexcept {
  eventfd_ = eventfd;
  identity_ = base::EventfdIdentity(eventfd);
  process_.store(::getpid());
  written_to_.store(eventfd);
}

/// After this no handler writes to the eventfd. The wait is brief: a handler makes a single
/// non-blocking call, and a signal whose bit is already set does not write again.
void SignalSlot::hide_from_handlers() noexcept {
  // In a child created without the fork handlers, the counted writers are threads of the parent.
  if (process_.load() != ::getpid()) writers_.store(0);
  written_to_.store(-1);
  // Sequentially consistent with wake_loop(): either the handler reads -1 or this loop sees the
  // writer.
  while (writers_.load() != 0) {
    constexpr timespec moment{.tv_sec = 0, .tv_nsec = 10'000};
    ::nanosleep(&moment, nullptr);
  }
}

bool SignalSlot::has_eventfd() const noexcept { return identity_.is(eventfd_); }

void SignalSlot::close_eventfd() noexcept {
  if (has_eventfd()) ::close(eventfd_);
  eventfd_ = -1;
}

Result<> SignalSlot::watch(int number) noexcept {
  if (number < 1 || number > number_max) return base::failure(EINVAL);
  const std::scoped_lock lock(dispositions_mutex);
  // Set the bit before installing the handler, so that its first invocation sees it.
  watched_.fetch_or(bit_of(number));
  Disposition& disposition = dispositions[static_cast<std::size_t>(number)];
  if (disposition.watchers == 0) {
    struct sigaction ours{};
    ours.sa_handler = &on_signal;
    // Runtimes whose threads have small stacks (Go) require SA_ONSTACK of every handler. The mask
    // is full, as in libev, so handlers do not nest.
    ours.sa_flags = SA_RESTART | SA_ONSTACK;
    sigfillset(&ours.sa_mask);
    struct sigaction found{};
    if (::sigaction(number, &ours, &found) != 0) {
      watched_.fetch_and(~bit_of(number));
      return base::failure(errno);
    }
    // If release() left our handler installed, the former disposition is already known.
    if (found.sa_handler != &on_signal) disposition.former = found;
  }
  ++disposition.watchers;
  return {};
}

bool SignalSlot::unwatch(int number) noexcept {
  const std::scoped_lock lock(dispositions_mutex);
  Disposition& disposition = dispositions[static_cast<std::size_t>(number)];
  if (--disposition.watchers == 0) {
    struct sigaction current{};
    // Other code may have installed its own handler, which then stays.
    if (::sigaction(number, nullptr, &current) == 0 && current.sa_handler == &on_signal)
      ::sigaction(number, &disposition.former, nullptr);
  }
  watched_.fetch_and(~bit_of(number));
  take_count(number);
  return (pending_.fetch_and(~bit_of(number)) & bit_of(number)) != 0;
}

std::uint64_t SignalSlot::take_pending() noexcept {
  std::uint64_t count;
  // Read before the bits are taken: a signal that arrives in between wakes the loop once more.
  [[maybe_unused]] const auto bytes =
      base::system_call(Call::eventfd_read, ::read, eventfd_, &count, sizeof count);
  return pending_.exchange(0);
}

Result<> SignalSlot::reopen() noexcept {
  // Open the new eventfd first, so that it cannot get the number that is closed below.
  const int fresh = make_eventfd();
  if (fresh < 0) return base::failure(errno);
  hide_from_handlers();
  // Other code may have closed the former eventfd, so the new one may have its number.
  if (fresh != eventfd_) close_eventfd();
  open(fresh);
  wake_if_pending();
  return {};
}

/// Call after `written_to_` was set. Sequentially consistent with raise(): either this reads the
/// signal's bit, or the handler that has set it reads the descriptor.
void SignalSlot::wake_if_pending() noexcept {
  if (pending_.load() != 0) wake_loop();
}

void SignalSlot::wake_loop() noexcept {
  writers_.fetch_add(1);
  if (const int fd = written_to_.load(); fd >= 0) {
    const std::uint64_t one = 1;
    // Not write(3), which is a cancellation point: a thread cancelled here would never decrement
    // `writers_`.
    [[maybe_unused]] const auto written =
        base::uninterrupted(Call::eventfd_write, ::syscall, long{SYS_write}, fd, &one, sizeof one);
  }
  writers_.fetch_sub(1);
}

void SignalSlot::raise(int number) noexcept {
  if (number < 1 || number > number_max) return;
  const int saved = errno;
  const std::uint64_t bit = bit_of(number);
  const pid_t process = ::getpid();
  for (SignalSlot* slot = first_slot.load(); slot != nullptr; slot = slot->next_) {
    if ((slot->watched_.load() & bit) == 0) continue;
    // In the child of a vfork(2), a signal is not the parent's.
    if (slot->process_.load() != process) continue;
    slot->counts_[static_cast<std::size_t>(number)].fetch_add(1);
    // If the bit was already set, the handler that set it wakes the loop.
    if ((slot->pending_.fetch_or(bit) & bit) != 0) continue;
    slot->wake_loop();
  }
  errno = saved;
}

}  // namespace tambour::detail::events
