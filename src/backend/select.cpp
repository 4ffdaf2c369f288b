// The poller of select(2): three bit sets, which every wait copies.
#include "backend/select.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>

#include "base/check.h"
#include "base/clock.h"
#include "base/system_call.h"

namespace tambour::detail::backend {

using base::Call;
using base::system_call;

int Select::open() noexcept {
  FD_ZERO(&read_);
  FD_ZERO(&write_);
  FD_ZERO(&urgent_);
  FD_ZERO(&closed_);
  end_ = 0;
  return 0;
}

void Select::clear(int fd) noexcept {
  FD_CLR(fd, &read_);
  FD_CLR(fd, &write_);
  FD_CLR(fd, &urgent_);
  FD_CLR(fd, &closed_);
  while (end_ > 0 && !is_watched(end_ - 1)) --end_;
}

bool Select::is_watched(int fd) const noexcept {
  return FD_ISSET(fd, &read_) || FD_ISSET(fd, &write_) || FD_ISSET(fd, &urgent_);
}

bool Select::is_open(int fd) noexcept {
  return system_call(Call::fcntl, ::fcntl, fd, F_GETFD) >= 0;
}

int Select::set(const Change& change) noexcept {
  if (change.fd >= FD_SETSIZE) return ERANGE;
  const Events events = change.now.events;
  clear(change.fd);
  if (has(events, Events::closed) && !has(events, Events::read)) return EOPNOTSUPP;
  if (has(events, Events::closed)) FD_SET(change.fd, &closed_);
  if (has(events, Events::read)) FD_SET(change.fd, &read_);
  if (has(events, Events::write)) FD_SET(change.fd, &write_);
  if (has(events, Events::urgent)) FD_SET(change.fd, &urgent_);
  if (events != Events::none && change.fd >= end_) end_ = change.fd + 1;
  return 0;
}

int Select::wait_for_events(std::int64_t timeout_ns) noexcept {
  ready_read_ = read_;
  ready_write_ = write_;
  ready_urgent_ = urgent_;
  const timespec timeout = base::to_timespec(timeout_ns);
  const int count = system_call(Call::pselect, ::pselect, end_, &ready_read_, &ready_write_,
                                &ready_urgent_, timeout_ns < 0 ? nullptr : &timeout, nullptr);
  if (count >= 0) return count;
  if (errno == EBADF) return -1;
  if (errno != EINTR && errno != ENOMEM) [[unlikely]]
    base::fail_check(
        "pselect(2) on descriptors below %d of an EventLoop failed with errno %d; if it is EINVAL, "
        "RLIMIT_NOFILE was lowered below that number: do not lower it while loops exist",
        end_, errno);
  return 0;
}

Events Select::take_result(int fd, int& left) noexcept {
  Events events = Events::none;
  const auto take = [&](const fd_set& set, Events event) {
    if (!FD_ISSET(fd, &set)) return;
    events |= event;
    --left;
  };
  take(ready_read_, Events::read);
  take(ready_write_, Events::write);
  take(ready_urgent_, Events::urgent);
  if (has(events, Events::read) && FD_ISSET(fd, &closed_)) {
    pollfd probe{.fd = fd, .events = POLLRDHUP, .revents = 0};
    if (system_call(Call::poll, ::poll, &probe, 1, 0) > 0)
      events |= Events(static_cast<std::uint16_t>(probe.revents));
  }
  return events;
}

}  // namespace tambour::detail::backend
