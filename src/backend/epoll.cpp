#include "backend/epoll.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/system_call.h"

namespace tambour::backend {

using base::Call;
using base::system_call;

int Epoll::open() noexcept {
  const int opened = system_call(Call::epoll_create, ::epoll_create1, int{EPOLL_CLOEXEC});
  if (opened < 0) return errno;
  epoll_ = UniqueFd(opened);
  return 0;
}

int Epoll::set(const Change& change) noexcept {
  epoll_event event{};
  event.events = std::uint32_t(change.now.events);
  if (change.now.trigger == Trigger::edge) event.events |= EPOLLET;
  event.data.u64 = std::uint64_t{change.generation} << 32 | static_cast<std::uint32_t>(change.fd);
  const auto control = [&](Call call, int operation) noexcept {
    return system_call(call, ::epoll_ctl, epoll_.get(), operation, change.fd, &event) == 0 ? 0
                                                                                           : errno;
  };
  const auto add = [&] { return control(Call::epoll_add, EPOLL_CTL_ADD); };
  const auto modify = [&] { return control(Call::epoll_modify, EPOLL_CTL_MOD); };

  // Where it fails, the file that was registered is out of reach, and may live on elsewhere.
  const auto remove = [&] {
    if (control(Call::epoll_remove, EPOLL_CTL_DEL) != 0) change.left_behind = true;
  };

  if (change.now.events == Events::none) {
    // Whatever the reason for a failure, the number is not registered, which is what was wanted.
    remove();
    return 0;
  }
  const bool armed = change.old.events != Events::none;
  const bool alike = change.old == change.now && change.now.trigger == Trigger::level;
  // Nothing but the latest registration can be what is there: to ask is enough.
  const bool may_be_kept = change.unsure && alike && !change.left_behind;
  if (armed && !may_be_kept && (!change.unsure || change.likely)) {
    const int error = modify();
    // What has failed is not watched, in the kernel neither: it would go on reporting.
    if (error != 0 && error != ENOENT) remove();
    if (error != ENOENT) return error;
  }
  const int error = add();
  if (error == EEXIST) return may_be_kept ? kept : modify();
  if (armed) change.left_behind = true;
  return error;
}

int Epoll::wait_for_events(std::int64_t timeout_ns) noexcept {
  const int room = static_cast<int>(events_.size());
  int count;
  if (timeout_ns <= 0) {
    count = system_call(Call::epoll_wait, ::epoll_wait, epoll_.get(), events_.data(), room,
                        timeout_ns < 0 ? -1 : 0);
  } else {
    const timespec timeout = base::to_timespec(timeout_ns);
    count = -1;
    errno = ENOSYS;
    if (has_pwait2_) {
      count = system_call(Call::epoll_pwait2, ::epoll_pwait2, epoll_.get(), events_.data(), room,
                          &timeout, nullptr);
      // EPERM: from a seccomp filter that is older than the call.
      if (count < 0 && (errno == ENOSYS || errno == EPERM)) has_pwait2_ = false;
    }
    if (!has_pwait2_) {
      // Before Linux 5.11, milliseconds: rounded up, since a timer is never early.
      constexpr std::int64_t ns_per_ms = 1'000'000;
      constexpr std::int64_t longest_ms = std::int64_t{24} * 3600 * 1000;
      const std::int64_t ms = timeout_ns / ns_per_ms + 1;
      count = system_call(Call::epoll_wait, ::epoll_wait, epoll_.get(), events_.data(), room,
                          static_cast<int>(ms < longest_ms ? ms : longest_ms));
    }
  }
  if (count < 0 && errno != EINTR) [[unlikely]] {
    base::fail_check(
        "epoll_wait(2) of an EventLoop failed on descriptor %d with errno %d: other code of the "
        "program has closed it; close only descriptors that you have opened",
        epoll_.get(), errno);
  }
  return count;
}

}  // namespace tambour::backend
