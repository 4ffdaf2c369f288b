#include "loop/signal_slot.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <new>

#include <tambour/unique_fd.h>

#include "base/system_call.h"

namespace tambour::loop {
namespace {

using base::Call;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<SignalSlot*>::is_always_lock_free);

struct Disposition {
  int watchers = 0;  ///< Slots that watch the signal.
  struct sigaction former{};
};

/// Guards everything here but what the handler uses.
constinit std::mutex mutex;
std::array<Disposition, SignalSlot::number_max + 1> dispositions;
constinit std::atomic<SignalSlot*> first_slot{nullptr};

void on_signal(int number) { SignalSlot::raise(number); }

int make_eventfd() noexcept {
  return base::system_call(Call::eventfd, ::eventfd, 0, EFD_CLOEXEC | EFD_NONBLOCK);
}

}  // namespace

SignalSlot::SignalSlot(int eventfd) noexcept : process_(::getpid()), eventfd_(eventfd) {}

void SignalSlot::register_fork_handlers() noexcept {
  // Another thread may hold the mutex while one forks, and is not there to release it in the child.
  static const int registered = ::pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); },
                                                 [] {
                                                   begin_child();
                                                   mutex.unlock();
                                                 });
  static_cast<void>(registered);
}

void SignalSlot::begin_child() noexcept {
  for (SignalSlot* slot = first_slot.load(); slot != nullptr; slot = slot->next_) {
    slot->process_.store(nobody);
    slot->inherited_ = true;
    // What the parent was sent is the parent's, as with the kernel's own pending signals.
    slot->pending_.store(0);
  }
}

void SignalSlot::claim_for_child() noexcept {
  process_.store(::getpid());
  // What has come before was not rung for.
  if (any_pending()) ring();
}

Result<SignalSlot*> SignalSlot::take() noexcept {
  register_fork_handlers();
  const std::scoped_lock lock(mutex);
  for (SignalSlot* slot = first_slot.load(); slot != nullptr; slot = slot->next_) {
    if (slot->taken_) continue;
    if (auto owned = slot->own(); !owned) return std::unexpected(owned.error());
    slot->taken_ = true;
    return slot;
  }
  const int eventfd = make_eventfd();
  if (eventfd < 0) return std::unexpected(system_error(errno));
  auto* slot = new (std::nothrow) SignalSlot(eventfd);
  if (slot == nullptr) {
    ::close(eventfd);
    return std::unexpected(system_error(ENOMEM));
  }
  slot->next_ = first_slot.load();
  first_slot.store(slot);
  return slot;
}

void SignalSlot::give_back() noexcept {
  // Not in a child that has not reopened its loop: there the eventfd is still the parent's, who is
  // not rung for a second time.
  if (process_.load() == ::getpid()) take_pending();
  const std::scoped_lock lock(mutex);
  for (std::uint64_t left = watched_.exchange(0); left != 0; left &= left - 1)
    --dispositions[static_cast<std::size_t>(std::countr_zero(left)) + 1].watchers;
  taken_ = false;
}

Result<> SignalSlot::watch(int number) noexcept {
  if (number < 1 || number > number_max) return std::unexpected(system_error(EINVAL));
  const std::scoped_lock lock(mutex);
  // First the slot, so that the handler's first run finds it.
  watched_.fetch_or(bit_of(number));
  Disposition& disposition = dispositions[static_cast<std::size_t>(number)];
  if (disposition.watchers == 0) {
    struct sigaction ours{};
    ours.sa_handler = &on_signal;
    ours.sa_flags = SA_RESTART;
    sigemptyset(&ours.sa_mask);
    struct sigaction found{};
    if (::sigaction(number, &ours, &found) != 0) {
      watched_.fetch_and(~bit_of(number));
      return std::unexpected(system_error(errno));
    }
    // Where give_back() has left our handler, what was there before it is known.
    if (found.sa_handler != &on_signal) disposition.former = found;
  }
  ++disposition.watchers;
  return {};
}

bool SignalSlot::unwatch(int number) noexcept {
  const std::scoped_lock lock(mutex);
  Disposition& disposition = dispositions[static_cast<std::size_t>(number)];
  if (--disposition.watchers == 0) {
    struct sigaction current{};
    // Other code may have put its own handler in place of ours; it keeps it.
    if (::sigaction(number, nullptr, &current) == 0 && current.sa_handler == &on_signal)
      ::sigaction(number, &disposition.former, nullptr);
  }
  watched_.fetch_and(~bit_of(number));
  return (pending_.fetch_and(~bit_of(number)) & bit_of(number)) != 0;
}

std::uint64_t SignalSlot::take_pending() noexcept {
  std::uint64_t rings;
  // Read before the word is taken: what comes in between rings once more, for nothing.
  [[maybe_unused]] const auto bytes =
      base::system_call(Call::eventfd_read, ::read, eventfd_, &rings, sizeof rings);
  return pending_.exchange(0);
}

Result<> SignalSlot::own() noexcept {
  if (process_.load() == ::getpid() && !inherited_) return {};
  return reopen();
}

Result<> SignalSlot::reopen() noexcept {
  UniqueFd fresh(make_eventfd());
  if (!fresh.is_open()) return std::unexpected(system_error(errno));
  // In one step, so that a handler never finds the number closed. Where other code had closed it,
  // the new one may have it already.
  if (fresh.get() == eventfd_) {
    static_cast<void>(fresh.release());
  } else if (base::uninterrupted(Call::dup, ::dup3, fresh.get(), eventfd_, O_CLOEXEC) < 0) {
    return std::unexpected(system_error(errno));
  }
  inherited_ = false;
  claim_for_child();
  return {};
}

void SignalSlot::ring() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written =
      base::uninterrupted(Call::eventfd_write, ::write, eventfd_, &one, sizeof one);
}

void SignalSlot::raise(int number) noexcept {
  if (number < 1 || number > number_max) return;
  const int saved = errno;
  const std::uint64_t bit = bit_of(number);
  const pid_t process = ::getpid();
  for (SignalSlot* slot = first_slot.load(); slot != nullptr; slot = slot->next_) {
    if ((slot->watched_.load() & bit) == 0) continue;
    // Where the bit is set already, whoever set it has rung, or is about to.
    if ((slot->pending_.fetch_or(bit) & bit) != 0) continue;
    if (slot->process_.load() == process) slot->ring();
  }
  errno = saved;
}

}  // namespace tambour::loop
