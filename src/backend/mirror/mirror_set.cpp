// MirrorSet: registrations that follow those of a poller, and their generations.
#include "backend/mirror/mirror_set.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <new>
#include <utility>

#include "backend/readiness.h"
#include "base/system_call.h"

namespace tambour::detail::backend {

using base::Call;
using base::system_call;

namespace {

constexpr unsigned generation_shift = 32;

int create() noexcept {
  return system_call(Call::epoll_create, ::epoll_create1, int{EPOLL_CLOEXEC});
}

}  // namespace

int MirrorSet::open(FdRecords& records) noexcept {
  UniqueFd opened(create());
  if (!opened.is_open()) return errno;
  std::vector<int> former = std::exchange(rejected_, {});
  for (std::size_t i = 0; i < records.size(); ++i) {
    const int fd = static_cast<int>(i);
    const FdRecord& record = records.at(fd);
    if (record.armed.events == Events::none) continue;
    const int error = add(opened.get(), fd, record.armed.events, record.generation);
    if (error == 0 || error == EBADF) continue;
    rejected_ = std::move(former);
    return error;
  }
  set_ = std::move(opened);
  return 0;
}

int MirrorSet::reopen() noexcept {
  if (!set_.is_open()) return 0;
  const int opened = create();
  if (opened < 0) return errno;
  set_ = UniqueFd(opened);
  rejected_.clear();
  return 0;
}

int MirrorSet::add(int set, int fd, Events events, std::uint32_t generation) noexcept {
  epoll_event event{};
  event.events = std::uint32_t(events);
  event.data.u64 = std::uint64_t{generation} << generation_shift | static_cast<std::uint32_t>(fd);
  const auto control = [&](Call call, int operation) noexcept {
    return system_call(call, ::epoll_ctl, set, operation, fd, &event) == 0 ? 0 : errno;
  };
  const int error = control(Call::epoll_add, EPOLL_CTL_ADD);
  if (error == EEXIST) return control(Call::epoll_modify, EPOLL_CTL_MOD);
  if (error != EPERM) return error;
  try {
    if (std::ranges::find(rejected_, fd) == rejected_.end()) rejected_.push_back(fd);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

int MirrorSet::set(const Change& change) noexcept {
  std::erase(rejected_, change.fd);
  if (change.now.events != Events::none) {
    const int error = add(set_.get(), change.fd, change.now.events, change.generation);
    // A descriptor that is not open is reported by the poller.
    return error == EBADF ? 0 : error;
  }
  epoll_event event{};
  // Fails if the descriptor was closed, which has removed the registration or left it behind.
  system_call(Call::epoll_remove, ::epoll_ctl, set_.get(), EPOLL_CTL_DEL, change.fd, &event);
  return 0;
}

void MirrorSet::drop_stale(FdRecords& records) noexcept {
  std::array<epoll_event, 64> events;
  const int count = system_call(Call::epoll_wait, ::epoll_wait, set_.get(), events.data(),
                                static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t data = events[static_cast<std::size_t>(i)].data.u64;
    const FdRecord& record = records.at(static_cast<int>(data & 0xffffffff));
    if (record.generation == data >> generation_shift) continue;
    // If it fails, the set stays readable, and the next wait tries again.
    static_cast<void>(open(records));
    return;
  }
}

}  // namespace tambour::detail::backend
