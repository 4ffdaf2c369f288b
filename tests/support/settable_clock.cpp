// The system calls of settable_clock.h. Only programs that use the clock link this source.
#include "support/settable_clock.h"

#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include "base/clock.h"

namespace tambour {

SettableClock settable;

}  // namespace tambour

using tambour::settable;

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto outcome = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (clock == CLOCK_REALTIME && outcome == 0 && settable.offset_ns != 0) {
    *now = tambour::detail::base::to_timespec(std::int64_t{now->tv_sec} *
                                                  tambour::detail::base::ns_per_s +
                                              now->tv_nsec + settable.offset_ns);
  }
  return outcome;
}

int timerfd_settime(int fd, int flags, const itimerspec* wanted, itimerspec* old) noexcept {
  // Other timerfds are those of waits.
  if ((flags & TFD_TIMER_CANCEL_ON_SET) == 0)
    return static_cast<int>(::syscall(SYS_timerfd_settime, fd, flags, wanted, old));
  settable.timerfd = fd;
  itimerspec real = *wanted;
  const std::int64_t wanted_ns =
      std::int64_t{wanted->it_value.tv_sec} * tambour::detail::base::ns_per_s +
      wanted->it_value.tv_nsec;
  if (wanted_ns != tambour::detail::base::end_of_time_ns)
    real.it_value = tambour::detail::base::to_timespec(
        std::max<std::int64_t>(wanted_ns - settable.offset_ns, 1));
  const auto outcome = static_cast<int>(::syscall(SYS_timerfd_settime, fd, flags, &real, old));
  // Reports the change, so that read(2) does not report it again.
  if (!settable.set_before_arming && !settable.was_set) return outcome;
  settable.set_before_arming = settable.was_set = false;
  errno = ECANCELED;
  return -1;
}

ssize_t read(int fd, void* into, std::size_t size) {
  const ssize_t outcome = ::syscall(SYS_read, fd, into, size);
  if (fd != settable.timerfd || !settable.was_set) return outcome;
  settable.was_set = false;
  errno = ECANCELED;
  return -1;
}

}  // extern "C"
