// WakeUp: a write to an eventfd ends the wait of the backend.
#include "backend/wake_up.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/failure.h"
#include "base/system_call.h"

namespace tambour::detail::backend {

Result<> WakeUp::open(bool drain) noexcept {
  const int opened =
      base::system_call(base::Call::eventfd, ::eventfd, 0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (opened < 0) return base::failure(errno);
  eventfd_ = UniqueFd(opened);
  identity_ = base::EventfdIdentity(opened);
  was_opened_ = true;
  drain_ = drain;
  Operation::fd = opened;
  events = Events::read;
  trigger = drain ? Trigger::level : Trigger::edge;
  return {};
}

void WakeUp::wake() noexcept {
  const int saved = errno;  // A signal handler must preserve errno.
  const std::uint64_t one = 1;
  // EAGAIN would need 2^64 - 2 unread wakeups, and then the loop is awake anyway.
  [[maybe_unused]] const auto written =
      base::uninterrupted(base::Call::eventfd_write, ::write, eventfd_.get(), &one, sizeof one);
  errno = saved;
}

void WakeUp::run(detail::ReadyNode& ready) {
  auto& self = static_cast<WakeUp&>(ready);
  const int error = -std::exchange(self.result, 0);
  // A loop that cannot be woken is unusable: if the kernel lacks memory, retry in every iteration.
  // EBADF: other code has closed the descriptor, so retrying is useless.
  if (error > 0 && error != EBADF) self.records_.submit(self);
  if (error > 0 || !self.drain_) return;
  std::uint64_t count;
  [[maybe_unused]] const auto bytes = base::system_call(base::Call::eventfd_read, ::read,
                                                        self.eventfd_.get(), &count, sizeof count);
}

}  // namespace tambour::detail::backend
