// WaitTimer: the system calls on the timerfd.
#include "backend/wait_timer.h"

#include <sys/timerfd.h>

#include "base/system_call.h"

namespace tambour::detail::backend {

using base::Call;
using base::system_call;

bool WaitTimer::open() noexcept {
  was_opened_ = true;
  timerfd_ = UniqueFd(system_call(Call::wait_timer_create, ::timerfd_create, int{CLOCK_MONOTONIC},
                                  TFD_CLOEXEC | TFD_NONBLOCK));
  return timerfd_.is_open();
}

void WaitTimer::close() noexcept {
  timerfd_.reset();
  note_expired();
}

void WaitTimer::disown() noexcept {
  static_cast<void>(timerfd_.release());
  note_expired();
}

bool WaitTimer::set(std::int64_t until_ns) noexcept {
  itimerspec setting{};
  setting.it_value = base::to_timespec(until_ns);
  // Absolute: a process that is stopped between reading the clock and this call is not late.
  if (system_call(Call::wait_timer_set, ::timerfd_settime, timerfd_.get(), int{TFD_TIMER_ABSTIME},
                  &setting, nullptr) != 0) {
    close();
    return false;
  }
  expires_ns_ = until_ns;
  return true;
}

}  // namespace tambour::detail::backend
