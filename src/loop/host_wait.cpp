// HostWait: the epoll set that contains the descriptor of the backend.
#include "loop/host_wait.h"

#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/failure.h"
#include "base/system_call.h"
#include "loop/core.h"

namespace tambour::detail::loop {

using base::Call;
using base::system_call;

Result<int> HostWait::fd() noexcept {
  if (!set_.is_open()) {
    if (auto opened = open(); !opened) return std::unexpected(opened.error());
  }
  return set_.get();
}

Result<> HostWait::open() noexcept {
  UniqueFd opened(system_call(Call::epoll_create, ::epoll_create1, int{EPOLL_CLOEXEC}));
  if (!opened.is_open()) return base::failure(errno);
  set_ = std::move(opened);
  watched_ = -1;
  was_opened_ = true;
  auto updated = update();
  if (!updated) set_.reset();
  return updated;
}

Result<> HostWait::update() noexcept {
  const auto fd = core_.backend().fd();
  if (!fd) return std::unexpected(fd.error());
  if (*fd == watched_) return {};
  epoll_event event{};
  event.events = EPOLLIN;
  if (system_call(Call::epoll_add, ::epoll_ctl, set_.get(), EPOLL_CTL_ADD, *fd, &event) != 0)
    return base::failure(errno);
  watched_ = *fd;
  return {};
}

std::int64_t HostWait::before_wait() noexcept {
  constexpr std::int64_t at_once = 0;
  if (!set_.is_open() || update()) return base::end_of_time_ns;
  return at_once;
}

void HostWait::disown_if_lost(bool has_all) noexcept {
  if (!has_all) static_cast<void>(set_.release());
}

Result<> HostWait::reopen() noexcept {
  if (!was_opened_) return {};
  return open();
}

}  // namespace tambour::detail::loop
