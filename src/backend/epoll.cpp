// The poller of epoll(7). Waits with the precision of nanoseconds where the kernel has
// epoll_pwait2(2), and with ppoll(2) where a seccomp filter may forbid that call.
#include "backend/epoll.h"

#include <poll.h>

#include <new>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/libc/glibc_functions.h"
#include "base/seccomp.h"
#include "base/system_call.h"

namespace tambour::detail::backend {

using base::Call;
using base::system_call;

namespace {

int checked(int count) noexcept {
  if (count < 0 && errno != EINTR) [[unlikely]] {
    base::fail_check(
        "epoll_wait(2) of an EventLoop failed with errno %d: other code of the program has closed "
        "its descriptor; close only descriptors that you have opened",
        errno);
  }
  return count;
}

}  // namespace

int Epoll::open() noexcept {
  const int opened = system_call(Call::epoll_create, ::epoll_create1, int{EPOLL_CLOEXEC});
  if (opened < 0) return errno;
  epoll_ = UniqueFd(opened);
  if (capacity_ == 0) grow();
  if (capacity_ == 0) return ENOMEM;
  // Caches the result before the process can install a filter of its own.
  base::seccomp_filter_was_inherited();
  precise_ = Precise::undecided;
  return 0;
}

int Epoll::set(const Change& change) noexcept {
  epoll_event event{};
  event.events = std::uint32_t(change.now.events);
  if (change.now.trigger == Trigger::edge) event.events |= EPOLLET;
  set_data(event, change.fd, change.generation);
  const auto control = [&](Call call, int operation) noexcept {
    return system_call(call, ::epoll_ctl, epoll_.get(), operation, change.fd, &event) == 0 ? 0
                                                                                           : errno;
  };
  const auto add = [&] { return control(Call::epoll_add, EPOLL_CTL_ADD); };
  const auto modify = [&] { return control(Call::epoll_modify, EPOLL_CTL_MOD); };

  // If this fails, a duplicate elsewhere may keep the file and its registration alive.
  const auto remove = [&] {
    if (control(Call::epoll_remove, EPOLL_CTL_DEL) != 0) change.left_behind = true;
  };

  if (change.now.events == Events::none) {
    // Whatever the reason for a failure, the descriptor is not registered, as requested.
    remove();
    return 0;
  }
  const bool armed = change.old.events != Events::none;
  const bool alike = change.old == change.now && change.now.trigger == Trigger::level;
  // Only the latest registration can exist, so EEXIST proves that it is still in place.
  const bool may_be_kept = change.unverified && alike && !change.left_behind;
  if (armed && !may_be_kept && (!change.unverified || change.likely)) {
    const int error = modify();
    // After a failure the descriptor is not watched: remove it, or the kernel would still report
    // it.
    if (error != 0 && error != ENOENT) remove();
    if (error != ENOENT) return error;
  }
  const int error = add();
  if (error == EEXIST) return may_be_kept ? kept : modify();
  if (armed) change.left_behind = true;
  return error;
}

/// Edge-triggered, so that a timer that has expired is reported once without being read.
int Epoll::add_wait_timer(int fd, std::uint32_t generation) noexcept {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  set_data(event, fd, generation);
  const int added =
      system_call(Call::epoll_add, ::epoll_ctl, epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  return added == 0 ? 0 : errno;
}

/// On ENOMEM the array keeps its size; the next wait reports the remaining events.
void Epoll::grow() noexcept {
  if (capacity_ >= capacity_max) return;
  const int wanted = capacity_ == 0 ? initial_capacity : capacity_ * 2;
  std::unique_ptr<epoll_event[]> grown(  // NOLINT(modernize-avoid-c-arrays)
      new (std::nothrow) epoll_event[static_cast<std::size_t>(wanted)]);
  if (grown == nullptr) return;
  events_ = std::move(grown);
  capacity_ = wanted;
}

/// A seccomp filter that does not know epoll_pwait2(2) may kill the process, so check for a filter
/// before the first call. Every filter that a program is started under allows ppoll(2), but a
/// filter that a program installs after observing which calls it needs may not.
void Epoll::choose_precise() noexcept {
  if (base::seccomp_filter_was_inherited()) {
    precise_ = Precise::ppoll;
  } else if (base::seccomp_filter_is_installed()) {
    precise_ = Precise::none;
  } else {
    precise_ = Precise::epoll_pwait2;
  }
}

int Epoll::call_epoll_wait(int timeout_ms) noexcept {
  return system_call(Call::epoll_wait, ::epoll_wait, epoll_.get(), events_.get(), capacity_,
                     timeout_ms);
}

/// Rounds up, because a timer must not expire early.
int Epoll::wait_milliseconds(std::int64_t timeout_ns) noexcept {
  constexpr std::int64_t ns_per_ms = 1'000'000;
  constexpr std::int64_t longest_ms = std::int64_t{24} * 3600 * 1000;
  const std::int64_t ms = timeout_ns / ns_per_ms + (timeout_ns % ns_per_ms != 0 ? 1 : 0);
  return call_epoll_wait(static_cast<int>(ms < longest_ms ? ms : longest_ms));
}

/// Most waits end with an event, within the whole milliseconds: then one system call suffices.
/// Returns -1 with an errno other than EINTR if ppoll(2) is unavailable.
int Epoll::wait_with_ppoll(std::int64_t timeout_ns) noexcept {
  constexpr std::int64_t ns_per_ms = 1'000'000;
  if (timeout_ns >= ns_per_ms) {
    const std::int64_t until_ns = base::saturating_add(base::monotonic_ns(), timeout_ns);
    const int count = checked(call_epoll_wait(static_cast<int>(timeout_ns / ns_per_ms)));
    if (count != 0) return count;
    timeout_ns = until_ns - base::monotonic_ns();
    if (timeout_ns <= 0) return count;
  }
  const timespec timeout = base::to_timespec(timeout_ns);
  pollfd set{.fd = epoll_.get(), .events = POLLIN, .revents = 0};
  const int count = system_call(Call::ppoll, ::ppoll, &set, nfds_t{1}, &timeout, nullptr);
  return count > 0 ? call_epoll_wait(0) : count;
}

int Epoll::wait_for_events(std::int64_t timeout_ns) noexcept {
  // The kernel's timer slack is up to a thousandth of the timeout, so from one second on, whole
  // milliseconds are as exact.
  constexpr std::int64_t whole_ms_suffice_ns = 1'000'000'000;
  if (timeout_ns <= 0) return checked(call_epoll_wait(timeout_ns < 0 ? -1 : 0));
  if (timeout_ns >= whole_ms_suffice_ns) return checked(wait_milliseconds(timeout_ns));

  if (precise_ == Precise::undecided) [[unlikely]]
    choose_precise();
  if (precise_ == Precise::epoll_pwait2) {
    const timespec timeout = base::to_timespec(timeout_ns);
    const int count = system_call(Call::epoll_pwait2, base::epoll_pwait2, epoll_.get(),
                                  events_.get(), capacity_, &timeout, nullptr);
    // EPERM: a seccomp filter was installed in the meantime.
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return checked(count);
    precise_ = Precise::ppoll;
  }
  if (precise_ == Precise::ppoll) {
    const int count = wait_with_ppoll(timeout_ns);
    if (count >= 0 || errno == EINTR) return count;
    precise_ = Precise::none;
  }
  return checked(wait_milliseconds(timeout_ns));
}

}  // namespace tambour::detail::backend
