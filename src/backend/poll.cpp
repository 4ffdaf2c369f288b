// The poller of poll(2): one array of pollfd for all descriptors.
#include "backend/poll.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/system_call.h"

namespace tambour::detail::backend {

int Poll::reopen() noexcept {
  polled_.clear();
  std::ranges::fill(index_of_, -1);
  return 0;
}

int Poll::set(const Change& change) noexcept {
  if (change.now.events == Events::none) {
    remove(change.fd);
    return 0;
  }
  const auto slot = static_cast<std::size_t>(change.fd);
  try {
    if (slot >= index_of_.size()) index_of_.resize(std::max(slot + 1, index_of_.size() * 2), -1);
    if (index_of_[slot] < 0) {
      // Allocate everything first, so that a failure leaves the arrays consistent.
      if (polled_.size() == polled_.capacity())
        polled_.reserve(std::max(polled_.size() * 2, std::size_t{16}));
      gone_.reserve(polled_.capacity());  // So that wait() needs no memory.
      polled_.push_back({.fd = change.fd, .events = 0, .revents = 0});
      index_of_[slot] = static_cast<std::int32_t>(polled_.size()) - 1;
    }
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  polled_[static_cast<std::size_t>(index_of_[slot])].events = static_cast<short>(change.now.events);
  return 0;
}

void Poll::remove(int fd) noexcept {
  const auto slot = static_cast<std::size_t>(fd);
  if (slot >= index_of_.size() || index_of_[slot] < 0) return;
  const std::int32_t index = std::exchange(index_of_[slot], -1);
  polled_[static_cast<std::size_t>(index)] = polled_.back();
  polled_.pop_back();
  if (static_cast<std::size_t>(index) < polled_.size()) {
    const int moved = polled_[static_cast<std::size_t>(index)].fd;
    index_of_[static_cast<std::size_t>(moved)] = index;
  }
}

void Poll::remove_closed() noexcept {
  for (const int fd : gone_) remove(fd);
  gone_.clear();
}

int Poll::wait_for_events(std::int64_t timeout_ns) noexcept {
  const timespec timeout = base::to_timespec(timeout_ns);
  const int count = base::system_call(base::Call::ppoll, ::ppoll, polled_.data(), polled_.size(),
                                      timeout_ns < 0 ? nullptr : &timeout, nullptr);
  if (count < 0 && errno != EINTR && errno != ENOMEM) [[unlikely]] {
    base::fail_check(
        "ppoll(2) on the %zu descriptors of an EventLoop failed with errno %d; if it is EINVAL, "
        "RLIMIT_NOFILE was lowered below that number: do not lower it while loops exist",
        polled_.size(), errno);
  }
  return count;
}

}  // namespace tambour::detail::backend
